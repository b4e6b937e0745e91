// palimpsa-verify: holds the library, or what another program wrote, against the right values of case files.

#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/reader.hpp"
#include "palimpsa/io/report.hpp"
#include "palimpsa/io/verify.hpp"
#include "palimpsa/io/writer.hpp"
#include "verify/device.hpp"
#include "verify/options.hpp"
#include "verify/rules.hpp"

namespace io = palimpsa::io;

namespace {

/// Tells why something could not be done.
void complain(std::string const& sentence) { std::cerr << "palimpsa-verify: " << sentence << '\n'; }

/// Adds the right values that a file lacks.
void write_completed(std::string const& target, io::tensor_file contents, io::case_file const& given,
                     io::case_runner const& reference) {
  auto const complete = io::completed_case(given, reference);
  for (auto const name : io::right_value_names) {
    auto const& tensor = complete.*io::member_named(name);
    if (!tensor || given.*io::member_named(name)) continue;
    contents.tensors[std::string(name)] =
        io::make_tensor(io::dtype::f64, tensor->shape, std::span<double const>(tensor->values));
  }
  io::write(target, contents);
}

/// One file, start to end. @throws what says that the file cannot be read, run or written
io::case_report verify_file(std::string const& file, verify::options const& options) {
  auto contents = io::read(file);
  auto const given = io::to_case(contents, file);
  for (auto const& name : given.unknown) complain(file + ": tensor '" + name + "' is not one of a case; it is left alone");
  auto const rule = verify::rule_of(given);
  auto const under_test = options.on_gpu ? verify::rule_on_gpu(given) : io::case_runner(rule.run);
  auto report = io::verify_case(given, rule.facts, under_test, rule.run, options.how);
  if (options.write) write_completed(*options.write, std::move(contents), given, rule.run);
  return report;
}

/// The report of a file, or nothing if it could not be had, and why is told.
std::optional<io::case_report> try_file(std::string const& file, verify::options const& options) {
  try {
    return verify_file(file, options);
  } catch (io::file_error const& error) {
    complain(error.what());
  } catch (std::bad_alloc const&) {
    complain(file + ": expected a case that fits in memory");
  } catch (std::exception const& error) {
    complain(file + ": " + error.what());
  }
  return std::nullopt;
}

int run(verify::options const& options) {
  std::vector<io::case_report> reports;
  bool all_read = true;
  if (options.on_gpu) verify::require_gpu();
  for (auto const& file : options.files) {
    auto report = try_file(file, options);
    all_read = all_read && report;
    if (report) reports.push_back(std::move(*report));
  }
  io::print_table(std::cout, reports);
  auto const sums = io::count(reports);
  std::cout << sums.passed << " passed, " << sums.failed << " failed, " << sums.skipped << " skipped\n";
  std::cout.flush();
  if (!std::cout) {
    complain("standard output: cannot be written");
    return 2;
  }
  return !all_read ? 2 : sums.failed > 0 ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const options = verify::parse_options({words + 1, words + count});
    if (!options.help) return run(options);
    std::cout << verify::help_text;
    return 0;
  } catch (verify::usage_error const& error) {
    complain(std::string(error.what()) + "; --help lists what is understood");
  } catch (std::exception const& error) {
    complain(error.what());
  }
  return 2;
}
