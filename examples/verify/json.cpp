#include "verify/json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "palimpsa/io/tensor.hpp"
#include "palimpsa/version.hpp"

namespace io = palimpsa::io;

namespace verify {
namespace {

using json = nlohmann::ordered_json;

/// JSON has neither infinities nor NaN: they are strings.
json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

json worst_of(io::worst_element const& worst) {
  json place = json::object();
  auto const add = [&](char const* name, std::int64_t index) {
    if (index >= 0) place[name] = index;
  };
  add("sequence", worst.place.sequence), add("token", worst.place.token), add("head", worst.place.head);
  add("row", worst.place.row), add("channel", worst.place.channel);
  return {{"place", place}, {"yours", number(worst.yours)}, {"right", number(worst.right)}};
}

json row_of(io::tensor_report const& row) {
  char const* const words[] = {"ok", "failed", "skipped"};
  bool const compared = row.outcome == io::verdict::ok || row.worst;
  json result{{"tensor", row.tensor}, {"verdict", words[static_cast<int>(row.outcome)]}, {"note", row.note}};
  if (!compared) return result;
  result["yours"] = row.whose == io::on_trial::file ? "file" : "run";
  result["right"] = row.right_from == "the file's" ? "file" : "reference";
  result["error"] = number(row.error);
  result["bound"] = number(row.bound);
  result["max_error"] = number(row.largest);
  json heads = json::array(), sequences = json::array();
  for (auto const& part : row.parts) {
    (part.is_head ? heads : sequences)
        .push_back({{"index", part.index}, {"error", number(part.error)}, {"bound", number(part.bound)}, {"held", part.held}});
  }
  result["heads"] = heads;
  result["sequences"] = sequences;
  if (row.worst) result["worst"] = worst_of(*row.worst);
  if (!row.diagnosis.empty()) result["fits"] = row.diagnosis;
  return result;
}

json file_of(file_report const& one) {
  json result{{"file", one.file}};
  if (!one.error.empty()) {
    result["error"] = one.error;
    return result;
  }
  result["case"] = one.report.name;
  result["unused"] = one.unused;
  if (!one.nothing_compared.empty()) result["nothing_compared"] = one.nothing_compared;
  if (!one.written.empty()) result["written"] = one.written;
  result["tensors"] = json::array();
  for (auto const& row : one.report.rows) result["tensors"].push_back(row_of(row));
  return result;
}

}  // namespace

void print_json(std::ostream& out, std::span<file_report const> files, options const& options, int exit_code) {
  char const* const paths[] = {"sequential", "chunked", "step"};
  char const* const types[] = {"f64", "f32", "bf16", "f16"};
  json document{{"format", "palimpsa-verify-1"}, {"version", version_text()}};
  document["run"] = {{"dtype", types[static_cast<int>(options.how.type)]},
                     {"path", paths[static_cast<int>(options.how.path)]},
                     {"chunk", options.how.chunk},
                     {"device", options.on_gpu ? "cuda" : "cpu"}};
  if (options.how.tolerance > 0) document["run"]["tolerance"] = options.how.tolerance;
  document["files"] = json::array();
  io::tally sums;
  for (auto const& one : files) {
    document["files"].push_back(file_of(one));
    auto const more = io::count({&one.report, 1});
    sums.passed += more.passed, sums.failed += more.failed, sums.skipped += more.skipped;
  }
  document["passed"] = sums.passed;
  document["failed"] = sums.failed;
  document["skipped"] = sums.skipped;
  document["exit_code"] = exit_code;
  out << document.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
}

}  // namespace verify
