// A function or constant that is not inline would be defined twice here, and the link would fail; one that is static would have
// two addresses.
#include <iostream>

#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "palimpsa/palimpsa.hpp"
#include "palimpsa/version.hpp"

palimpsa::version_number const* version_seen_elsewhere();

int main() {
  bool const same = version_seen_elsewhere() == &palimpsa::version;
  std::cout << "two units see " << (same ? "one" : "two") << " palimpsa::version\n";
  return same ? 0 : 1;
}
