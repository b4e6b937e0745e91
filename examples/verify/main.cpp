// palimpsa-verify: holds what another program wrote, or the library, against the right values of case files.

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/nearest_name.hpp"
#include "palimpsa/io/reader.hpp"
#include "palimpsa/io/report.hpp"
#include "palimpsa/io/verification.hpp"
#include "palimpsa/io/writer.hpp"
#include "verify/device.hpp"
#include "verify/json.hpp"
#include "verify/options.hpp"
#include "verify/rules.hpp"

namespace io = palimpsa::io;

namespace {

/// Tells why something could not be done.
void complain(std::string const& sentence) { std::cerr << "palimpsa-verify: " << sentence << '\n'; }

/// Tells of tensors that nothing looks at: each that may be a misspelt name, and how many others.
void tell_unused(std::string const& file, std::vector<std::string> const& unused) {
  std::size_t others = 0;
  for (auto const& name : unused) {
    auto const near = io::nearest_name(name);
    if (near.empty()) {
      ++others;
      continue;
    }
    complain(file + ": tensor '" + name + "' is not one of a case and is left alone: did you mean '" + std::string(near) + "'?");
  }
  if (others == 0) return;
  complain(file + ": " + std::to_string(others) + (others == 1 ? " tensor is" : " tensors are") + " not of a case, and left alone");
}

/// Adds the right values that a file lacks. @return the names of what it added
std::string write_completed(std::string const& target, io::tensor_file contents, io::case_file const& given,
                            io::case_runner const& reference) {
  std::string added;
  auto const complete = io::completed_case(given, reference);
  for (auto const name : io::right_value_names) {
    auto const& tensor = complete.*io::member_named(name);
    if (!tensor || given.*io::member_named(name)) continue;
    contents.tensors[std::string(name)] =
        io::make_tensor(io::dtype::f64, tensor->shape, std::span<double const>(tensor->values));
    added += (added.empty() ? "" : ", ") + std::string(name);
  }
  io::write(target, contents);
  return added;
}

bool has_right_value(io::case_file const& given) {
  return std::any_of(io::right_value_names.begin(), io::right_value_names.end(),
                     [&](std::string_view name) { return (given.*io::member_named(name)).has_value(); });
}

/// Why nothing was compared in a file; empty if something was.
std::string nothing_compared(io::case_report const& report, io::case_file const& given) {
  auto const sums = io::count({&report, 1});
  if (sums.passed + sums.failed > 0) return {};
  if (has_right_value(given)) return "nothing was compared: every tensor was skipped";
  std::string text = "nothing was compared: it has none of out, out_variance, final_eta, final_evidence, grad_q, ...";
  for (auto const& name : given.unknown) {
    auto const near = io::nearest_name(name);
    if (io::is_right_value(near)) text += "; its '" + name + "' may be meant for '" + std::string(near) + "'";
  }
  return text;
}

/// One file, start to end. @throws what says that the file cannot be read, run or written
void verify_file(verify::file_report& result, verify::options const& options) {
  auto contents = io::read(result.file);
  auto const given = io::to_case(contents, result.file);
  result.unused = given.unknown;
  result.has_right_values = has_right_value(given);
  tell_unused(result.file, given.unknown);
  auto const rule = verify::rule_of(given);
  auto const under_test = options.on_gpu ? verify::rule_on_gpu(given) : io::case_runner(rule.run);
  result.report = io::verify_case(given, rule.facts, under_test, rule.run, options.how);
  io::require(result.report, options.required);
  if (io::count({&result.report, 1}).failed > 0) {
    if (options.write) complain(*options.write + ": not written, since a comparison failed");
    return;
  }
  if (options.write) {
    auto const added = write_completed(*options.write, std::move(contents), given, rule.run);
    result.written = *options.write;
    if (options.json) return;
    std::cout << "wrote " << *options.write << ": " << (added.empty() ? "nothing was missing" : "added " + added) << '\n';
  } else {
    result.nothing_compared = nothing_compared(result.report, given);
    if (!result.nothing_compared.empty()) complain(result.file + ": " + result.nothing_compared);
  }
}

/// The same; where a report could not be had, why is told.
verify::file_report try_file(std::string const& file, verify::options const& options) {
  verify::file_report result;
  result.file = file;
  try {
    verify_file(result, options);
    return result;
  } catch (io::file_error const& error) {
    result.error = error.what();
  } catch (std::bad_alloc const&) {
    result.error = file + ": expected a case that fits in memory";
  } catch (std::exception const& error) {
    result.error = file + ": " + error.what();
  }
  complain(result.error);
  return result;
}

/// 2 where a file could not be had; 1 where a comparison failed, a file had nothing to compare, or nothing at all was compared.
int exit_code(std::vector<verify::file_report> const& files, verify::options const& options) {
  io::tally sums;
  bool all_read = true, bare = false;
  for (auto const& one : files) {
    auto const more = io::count({&one.report, 1});
    sums.passed += more.passed, sums.failed += more.failed;
    all_read = all_read && one.error.empty();
    bare = bare || !(one.has_right_values || options.write);
  }
  if (!all_read) return 2;
  bool const compared = sums.passed + sums.failed > 0 || options.write;
  return sums.failed > 0 || bare || !compared ? 1 : 0;
}

void print(std::vector<verify::file_report> const& files, verify::options const& options, int code) {
  if (options.json) return verify::print_json(std::cout, files, options, code);
  std::vector<io::case_report> reports;
  for (auto const& one : files) reports.push_back(one.report);
  io::print_table(std::cout, reports);
  auto const sums = io::count(reports);
  std::cout << sums.passed << " passed, " << sums.failed << " failed, " << sums.skipped << " skipped\n";
}

int run(verify::options const& options) {
  if (options.on_gpu) verify::require_gpu();
  std::vector<verify::file_report> files;
  for (auto const& file : options.files) files.push_back(try_file(file, options));
  int const code = exit_code(files, options);
  print(files, options, code);
  std::cout.flush();
  if (std::cout) return code;
  complain("standard output: cannot be written");
  return 2;
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const options = verify::parse_options({words + 1, words + count});
    if (!options.help && !options.version) return run(options);
    std::cout << (options.help ? verify::help_text : "palimpsa-verify " + verify::version_text() + "\n");
    return 0;
  } catch (verify::usage_error const& error) {
    complain(std::string(error.what()) + "; --help lists what is understood");
  } catch (std::exception const& error) {
    complain(error.what());
  }
  return 2;
}
