// palimpsa::io brings nlohmann_json along: a file that is not there is refused by name.
#include <iostream>
#include <string>

#include "palimpsa/io/safetensors.hpp"

int main() {
  try {
    palimpsa::io::read("no such file.safetensors");
  } catch (palimpsa::io::file_error const& error) {
    std::cout << error.what() << '\n';
    return std::string(error.what()).find("no such file.safetensors") == std::string::npos ? 1 : 0;
  }
  return 1;
}
