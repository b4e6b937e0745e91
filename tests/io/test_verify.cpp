// Verification as a library: errors and bounds as numbers, and every kind of wrong tensor caught in its own row.

#if defined(PALIMPSA_TEST_VERIFY)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/file_builder.hpp"
#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/verify.hpp"
#include "support/catch.hpp"
#include "verify/rules.hpp"

namespace io = palimpsa::io;
using namespace test_io;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

io::case_file shipped(std::string const& name) {
  return io::read_case(std::string(PALIMPSA_TEST_CASES) + "/" + name + ".safetensors");
}

io::tensor_report row(io::case_report const& report, std::string const& tensor) {
  for (auto const& one : report.rows) {
    if (one.tensor == tensor) return one;
  }
  return {"no row " + tensor, io::verdict::skipped, not_a_number, not_a_number, not_a_number, ""};
}

/// The names of the rows that failed, one a line.
std::string failures(io::case_report const& report) {
  std::string names;
  for (auto const& one : report.rows) {
    if (one.outcome == io::verdict::failed) names += one.tensor + "\n";
  }
  return names;
}

/// The rule that the case names, held against it.
io::case_report verified(io::case_file const& given, io::run_options const& how = {}) {
  auto const rule = verify::rule_of(given);
  return io::verify_case(given, rule.facts, rule.run, rule.run, how);
}

}  // namespace

TEST_CASE("the error is relative to the right value, element by element of nothing else", "[io]") {
  std::vector<double> const right{3, 0, 4}, x{3, 0.1, 4};
  CHECK(io::distance_between(x, right).relative == Approx(0.02).epsilon(1e-14));
  CHECK(io::distance_between(x, right).largest == Approx(0.1).epsilon(1e-14));
  CHECK(io::distance_between(right, right).relative == 0);
  // Zeros are right only to 1e-30 an element.
  std::vector<double> const zeros{0, 0, 0, 0}, dust{2e-30, 0, 0, 0}, huge{1e300, 2e-3, 0, 0}, huge_right{1e300, 0, 0, 0};
  CHECK(io::distance_between(dust, zeros).relative == Approx(1).epsilon(1e-14));
  CHECK(io::distance_between(zeros, zeros).relative == 0);
  CHECK(io::distance_between(huge, huge_right).relative < 1e-300);
  CHECK(io::distance_between({}, {}).relative == 0);
  for (double const odd : {not_a_number, infinity, -infinity}) {
    std::vector<double> const bad{3, odd, 4};
    CHECK(io::distance_between(bad, right).relative == infinity);
    CHECK(io::distance_between(right, bad).relative == infinity);
    CHECK(io::distance_between(bad, bad).relative == infinity);
  }
  CHECK(io::distance_between(x, zeros).relative == infinity);  // sizes that differ
}

TEST_CASE("bounds follow from type, length and condition", "[io]") {
  using io::dtype;
  CHECK(io::stored_bound(dtype::f64, 100, 0) == 1e-12);
  CHECK(io::stored_bound(dtype::f32, 0, 0) == 5e-7);
  CHECK(io::stored_bound(dtype::f32, 1, 0) == 5e-7);
  CHECK(io::stored_bound(dtype::f32, 100, 0) == Approx(5e-6).epsilon(1e-14));
  CHECK(io::stored_bound(dtype::f32, 1000, 0) == 1e-5);
  CHECK(io::stored_bound(dtype::bf16, 1000, 0) == 1e-5 + 1.0 / 256);
  CHECK(io::stored_bound(dtype::f16, 1000, 0) == 1e-5 + 1.0 / 2048);
  CHECK(io::stored_bound(dtype::f32, 1000, 2) == 1e-5);
  CHECK(io::stored_bound(dtype::f32, 1000, 1024) == 8 * 1024.0 / 8388608);
  CHECK(io::stored_bound(dtype::f64, 1000, 1e6) == Approx(8e6 * 2.220446049250313e-16).epsilon(1e-14));
  CHECK(io::stored_bound(dtype::f32, 1000, infinity) == 0.5);
  CHECK(io::type_in_call("grad_q", dtype::bf16) == dtype::bf16);
  CHECK(io::type_in_call("final_eta", dtype::bf16) == dtype::f32);
  CHECK(io::type_in_call("beta", dtype::f64) == dtype::f64);
}

TEST_CASE("conditions are those of the systems, nearly", "[io]") {
  // One head, no gates, keys along the axes: diag(prior) + J is diagonal, its condition known by hand.
  auto given = shipped("mesa_net_basic");
  given.q = given.k = io::case_tensor<double>{{1, 2, 1, 2}, {2, 0, 0, 1}, io::dtype::f64};
  given.v = io::case_tensor<double>{{1, 2, 1, 1}, {1, 1}, io::dtype::f64};
  given.prior = io::case_tensor<double>{{1}, {0.5}, io::dtype::f64};
  given.beta.reset(), given.log_decay.reset(), given.initial_evidence.reset();
  CHECK(io::precision_condition(given) == Approx(9).epsilon(1e-3));  // (0.5 + 4)/0.5 after the first token
  given.initial_evidence = io::case_tensor<double>{{1, 1, 2, 2}, {0, 0, 0, 40}, io::dtype::f64};
  CHECK(io::precision_condition(given) == Approx(41.5 / 4.5).epsilon(1e-3));  // the larger: after the second
  given.log_decay = io::case_tensor<double>{{1, 2, 1}, {-infinity, 0}, io::dtype::f64};
  CHECK(io::precision_condition(given) == Approx(9).epsilon(1e-3));

  // Two equal unit keys, gain 1: I + L = [1 0; 1 1], whose condition is (3 + √5)/2; apart in chunks of one token.
  auto delta = shipped("delta_net_basic");
  delta.q = delta.k = io::case_tensor<double>{{1, 2, 1, 2}, {1, 0, 1, 0}, io::dtype::f64};
  delta.v = given.v;
  delta.beta.reset();
  CHECK(io::triangle_condition(delta, false, 64) == Approx((3 + std::sqrt(5.0)) / 2).epsilon(1e-3));
  CHECK(io::triangle_condition(delta, false, 1) == Approx(1).epsilon(1e-3));
  CHECK(io::triangle_condition(delta, true, 64) == Approx((9 + std::sqrt(17.0)) / 8).epsilon(1e-3));  // L = 1/2
  delta.log_decay = io::case_tensor<double>{{1, 2, 1}, {0, -infinity}, io::dtype::f64};
  CHECK(io::triangle_condition(delta, false, 64) == Approx(1).epsilon(1e-3));
}

TEST_CASE("a right case passes in every type, by every path", "[io]") {
  auto const given = shipped("palimpsa_packed");
  for (auto const type : {io::dtype::f64, io::dtype::f32, io::dtype::bf16, io::dtype::f16}) {
    for (auto const path : {io::scan_path::sequential, io::scan_path::chunked, io::scan_path::step}) {
      auto const report = verified(given, {type, path, 7});
      INFO(io::name_of(type) << ", path " << static_cast<int>(path));
      CHECK(failures(report) == "");
      CHECK(report.rows.size() >= 12);
      bool const narrow = type == io::dtype::bf16 || type == io::dtype::f16;
      CHECK((row(report, "out").note.find("inputs rounded to") != std::string::npos) == narrow);
    }
  }
}

TEST_CASE("each tensor fails alone when its right value is another", "[io]") {
  auto const given = shipped("palimpsa_state");
  for (auto const name : io::right_value_names) {
    for (auto const type : {io::dtype::f64, io::dtype::f32, io::dtype::bf16}) {
      auto wrong = given;
      auto& values = (wrong.*io::member_named(name))->values;
      *std::max_element(values.begin(), values.end()) *= 1.25;
      INFO(name << " in " << io::name_of(type));
      auto const report = verified(wrong, {type, io::scan_path::sequential, 64});
      CHECK(failures(report).find(std::string(name)) == 0);
      for (auto const other : io::right_value_names) {
        if (other != name) CHECK(row(report, std::string(other)).outcome == io::verdict::ok);
      }
    }
  }
}

TEST_CASE("a gate's gradient that is wrong in one band fails in that band, though the whole passes", "[io]") {
  auto given = shipped("palimpsa_gate_strong");
  auto const& gates = given.log_decay->values;
  io::run_options const how{io::dtype::f32, io::scan_path::sequential, 64};
  CHECK(failures(verified(given, how)) == "");
  for (auto const& band : io::gate_bands) {
    if (band.lower == 0) continue;  // its entries are the large ones: the whole shows them
    auto wrong = given;
    std::size_t hit = 0;
    for (std::size_t i = 0; i < gates.size(); ++i) {
      if (-gates[i] < band.lower || -gates[i] >= band.upper) continue;
      // As small a part of the whole as would go unseen, as large a part of its band as must not.
      double const most = band.lower < 4 ? 1 + 1e-5 : 1 + 1e-4;
      wrong.grad_log_decay->values[i] *= most;
      ++hit;
    }
    INFO(band.text);
    REQUIRE(hit > 0);
    auto const report = verified(wrong, how);
    CHECK(failures(report) == "grad_log_decay " + std::string(band.text) + "\n");
  }
}

TEST_CASE("a backward pass that is wrong in one band is seen", "[io]") {
  auto const given = shipped("palimpsa_gate_strong");
  auto const clipped = [](io::case_file const& x, io::run_options const& how) {
    auto results = verify::rule_of(x).run(x, how);
    auto& gradient = results.at("grad_log_decay").values;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (x.log_decay->values[i] < -16) gradient[i] = 0;  // what clamping the exponent does
    }
    return results;
  };
  auto const rule = verify::rule_of(given);
  auto const report = io::verify_case(given, rule.facts, clipped, rule.run, {io::dtype::f32, io::scan_path::sequential, 64});
  CHECK(failures(report) == "grad_log_decay [16,64)\n");
}

TEST_CASE("NaN and infinities fail on either side, in the same place too", "[io]") {
  auto const given = shipped("palimpsa_state");
  for (double const odd : {not_a_number, infinity}) {
    auto wrong = given;
    wrong.out->values[3] = odd;
    auto const report = verified(wrong);
    CHECK(failures(report) == "out\n");
    CHECK(row(report, "out").note == "the file's value is not finite");
    wrong.v->values[0] = odd;
    auto const both = verified(wrong);
    CHECK(row(both, "out").outcome == io::verdict::failed);
    CHECK(row(both, "out").note == "the file's value is not finite; the right value is not finite");
    CHECK(row(both, "grad_v").outcome == io::verdict::ok);  // which does not see v
  }
}

TEST_CASE("what another program wrote is held to the bound of its type", "[io]") {
  auto const given = shipped("palimpsa_state");
  struct kernel {
    io::dtype stored;
    double good, bad;  // errors, relative and uniform
  };
  for (auto const& one : {kernel{io::dtype::f32, 2e-6, 8e-6}, kernel{io::dtype::bf16, 3e-3, 5e-3},
                          kernel{io::dtype::f16, 3e-4, 7e-4}, kernel{io::dtype::f64, 5e-13, 2e-12}}) {
    for (double const error : {one.good, one.bad}) {
      auto theirs = given;
      theirs.out->stored = one.stored;
      for (double& x : theirs.out->values) x *= 1 + error;
      INFO(io::name_of(one.stored) << " off by " << error);
      CHECK(failures(verified(theirs)) == (error == one.good ? "" : "out\n"));
    }
  }
}

TEST_CASE("inputs that a type cannot hold are rounded, and that is said", "[io]") {
  auto given = shipped("palimpsa_state");
  for (double& x : given.v->values) x *= 1 + 1e-9;  // F32 no longer
  CHECK(failures(verified(given)) != "");
  auto right = given;
  for (auto const name : io::right_value_names) (right.*io::member_named(name)).reset();
  right = io::completed_case(right, verify::rule_of(right).run);
  auto const report = verified(right, {io::dtype::f32, io::scan_path::sequential, 64});
  CHECK(failures(report) == "");
  CHECK(row(report, "grad_v").note == "right value anew from inputs rounded to F32");
  // The file's own right values are of other inputs: computing them anew must not hide it.
  auto const wrong = verified(given, {io::dtype::f32, io::scan_path::sequential, 64});
  CHECK(row(wrong, "out").outcome == io::verdict::failed);
  CHECK(row(wrong, "out").whose == io::on_trial::file);
  CHECK(row(wrong, "out").note == "inputs as they are");
}

TEST_CASE("evidence of a full memory is compared after symmetrising", "[io]") {
  auto given = shipped("mesa_net_state");
  REQUIRE(failures(verified(given)) == "");
  std::size_t const K = 24;
  given.grad_initial_evidence->values[1] += 0.25;  // across the diagonal from element K
  given.grad_initial_evidence->values[K] -= 0.25;
  CHECK(failures(verified(given)) == "");
  given.grad_initial_evidence->values[K] += 0.25;
  CHECK(failures(verified(given)) == "grad_initial_evidence\n");
}

TEST_CASE("what cannot be compared is skipped with its reason", "[io]") {
  auto given = shipped("palimpsa_state");
  given.out_variance.reset();
  auto report = verified(given);
  CHECK(row(report, "out_variance").note == "no right value in the file");
  given.grad_out.reset(), given.grad_out_variance.reset();
  given.grad_final_eta.reset(), given.grad_final_evidence.reset();
  report = verified(given);
  CHECK(row(report, "grad_q").note == "no cotangent in the file");
  CHECK(row(report, "out").outcome == io::verdict::ok);

  io::run_options const chunked{io::dtype::f32, io::scan_path::chunked, 16};
  auto const longhorn = verified(shipped("longhorn_state"), chunked);
  auto const delta = verified(shipped("gated_delta_net_per_channel_beta"), chunked);
  for (auto const* refused : {&longhorn, &delta}) {
    REQUIRE(!refused->rows.empty());
    for (auto const& one : refused->rows) {
      CHECK(one.outcome == io::verdict::skipped);
      CHECK(one.note.find("no chunked form: ") == 0);
    }
  }
}

TEST_CASE("a case that breaks the contract is refused, in the library's words", "[io]") {
  auto const refusal = [](io::case_file const& given) {
    try {
      verified(given);
    } catch (palimpsa::argument_error const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto const given = shipped("gated_delta_net_state");
  auto wrong = given;
  wrong.log_decay->values[7] = 0.5;
  CHECK(missing(refusal(wrong), {"log_decay[0, 3, 1]", "at most 0", "given 0.5"}) == "");
  wrong = given;
  wrong.grad_prior = io::case_tensor<double>{{2}, {0, 0}, io::dtype::f64};
  wrong.prior = wrong.grad_prior;
  CHECK(missing(refusal(wrong), {"prior", "keeps no precision"}) == "");
  wrong = given;  // a million heads of no tokens
  wrong.q->shape = wrong.k->shape = {1, 0, 1, 256};
  wrong.v->shape = {1, 0, 1'000'000'000, 256};
  for (auto* tensor : {&wrong.q, &wrong.k, &wrong.v}) (*tensor)->values.clear();
  wrong.beta.reset(), wrong.log_decay.reset(), wrong.initial_eta.reset();
  CHECK(missing(refusal(wrong), {"final_eta", "in proportion to the inputs", "HV = 1000000000"}) == "");
}

TEST_CASE("one tensor of a wrong shape fails alone", "[io]") {
  auto const given = shipped("gated_delta_net_state");
  auto wrong = given;
  wrong.out->shape = {2, 2, 65, 40};
  auto report = verified(wrong);
  CHECK(failures(report) == "out\n");
  CHECK(row(report, "out").note ==
        "shape: expected [2, 65, 2, 40], given [2, 2, 65, 40]: head-major, where token-major is meant");
  CHECK(row(report, "final_eta").outcome == io::verdict::ok);
  wrong = given;
  wrong.final_evidence = wrong.final_eta;
  report = verified(wrong);
  CHECK(failures(report) == "final_evidence\n");
  CHECK(row(report, "final_evidence").note ==
        "expected absent, since this rule keeps no precision, given " + io::detail::shape_text(given.final_eta->shape));
  wrong = given;  // a cotangent: the forward pass is compared still, and the backward pass fails by name
  wrong.grad_final_eta->shape = {2, 2, 24, 40};
  report = verified(wrong);
  CHECK(row(report, "out").outcome == io::verdict::ok);
  CHECK(row(report, "grad_q").outcome == io::verdict::failed);
  CHECK(missing(row(report, "grad_q").note, {"cotangent grad_final_eta", "given [2, 2, 24, 40]"}) == "");
  wrong = given;
  wrong.out.reset();
  wrong.refused.push_back({"out", "dtype: expected F64, F32, BF16 or F16, given I8"});
  CHECK(failures(verified(wrong)) == "out\n");
}

TEST_CASE("errors are relative to the right norm, and say whose value is whose", "[io]") {
  auto const given = shipped("palimpsa_state");
  for (double const factor : {0.0, 0.14, 1 / 0.14}) {
    for (auto const stored : {io::dtype::f64, io::dtype::f32}) {
      auto wrong = given;
      wrong.out->stored = stored;
      for (double& x : wrong.out->values) x *= factor;
      for (auto const type : {io::dtype::f64, io::dtype::f32, io::dtype::bf16}) {
        INFO(factor << " stored as " << io::name_of(stored) << " run in " << io::name_of(type));
        auto const out = row(verified(wrong, {type, io::scan_path::sequential, 64}), "out");
        CHECK(out.outcome == io::verdict::failed);
        CHECK(out.error == Approx(std::abs(factor - 1)).epsilon(1e-6));
        CHECK(out.whose == io::on_trial::file);
        CHECK(out.right_from == "the float64 reference's");
      }
    }
  }
  // A run that is wrong, of a file that is right.
  auto const rule = verify::rule_of(given);
  auto const halved = [&](io::case_file const& x, io::run_options const& how) {
    auto results = rule.run(x, how);
    for (double& y : results.at("out").values) y *= 0.5;
    return results;
  };
  for (auto const type : {io::dtype::f64, io::dtype::f32, io::dtype::bf16}) {
    auto const out = row(io::verify_case(given, rule.facts, halved, rule.run, {type, io::scan_path::sequential, 64}), "out");
    CHECK(out.error == Approx(0.5).epsilon(1e-2));
    CHECK(out.whose == io::on_trial::run);
    REQUIRE(out.worst);
    CHECK(out.worst->yours == Approx(0.5 * out.worst->right).epsilon(1e-2));
  }
}

TEST_CASE("the worst element is named by its place, with both values", "[io]") {
  auto given = shipped("palimpsa_packed");
  auto const& shape = given.out->shape;
  auto const& ends = given.cu_seqlens->values;
  std::int64_t const token = ends[1], head = shape[2] - 1, channel = 3;  // token 0 of sequence 1
  REQUIRE(ends[2] > token);
  auto& x = given.out->values[static_cast<std::size_t>((token * shape[2] + head) * shape[3] + channel)];
  double const right = x;
  x += 7;
  auto const out = row(verified(given), "out");
  REQUIRE(out.worst);
  CHECK(io::text_of(out.worst->place) ==
        "sequence 1, token 0, head " + std::to_string(head) + ", channel " + std::to_string(channel));
  CHECK(out.worst->yours == right + 7);
  CHECK(out.worst->right == Approx(right).epsilon(1e-10));
}

TEST_CASE("a head, and a sequence, of small values is held on its own norm", "[io]") {
  auto given = shipped("palimpsa_state");
  for (auto const name : io::right_value_names) (given.*io::member_named(name)).reset();
  auto const& shape = given.v->shape;
  auto const heads = static_cast<std::size_t>(shape[2]), V = static_cast<std::size_t>(shape[3]);
  auto const head_of = [&](std::size_t i) { return i / V % heads; };
  for (std::size_t i = 0; i < given.v->values.size(); ++i)
    if (head_of(i) == 0) given.v->values[i] *= 0x1p-16;
  given.initial_eta.reset();
  given = io::completed_case(given, verify::rule_of(given).run);
  io::run_options const how{io::dtype::f32, io::scan_path::sequential, 64};
  REQUIRE(failures(verified(given, how)) == "");
  for (double const factor : {0.0, -2e-3, 1.002}) {
    auto wrong = given;
    for (std::size_t i = 0; i < wrong.out->values.size(); ++i)
      if (head_of(i) == 0) wrong.out->values[i] *= factor;
    auto const out = row(verified(wrong, how), "out");
    CHECK(out.outcome == io::verdict::failed);
    if (factor == 1.002) CHECK(out.error < out.bound);  // the tensor's norm hides it
    REQUIRE(io::worst_part(out) != nullptr);
    CHECK(io::worst_part(out)->index == 0);
    CHECK(io::worst_part(out)->error == Approx(std::abs(factor - 1)).epsilon(1e-3));
  }
  auto packed = shipped("palimpsa_packed");
  auto const last = packed.cu_seqlens->values[1];
  for (auto* tensor : {&packed.q}) {
    auto const size = static_cast<std::size_t>((*tensor)->shape[2] * (*tensor)->shape[3] * last);
    for (std::size_t i = 0; i < size; ++i) (*tensor)->values[i] *= 0x1p-16;
  }
  for (auto const name : io::right_value_names) (packed.*io::member_named(name)).reset();
  packed = io::completed_case(packed, verify::rule_of(packed).run);
  REQUIRE(failures(verified(packed, how)) == "");
  auto const first = static_cast<std::size_t>(packed.out->shape[2] * packed.out->shape[3] * last);
  for (std::size_t i = 0; i < first; ++i) packed.out->values[i] *= 1.002;
  auto const out = row(verified(packed, how), "out");
  CHECK(out.outcome == io::verdict::failed);
  CHECK(out.error < out.bound);
}

TEST_CASE("reads of one token that cancel carry their condition", "[io]") {
  auto given = shipped("palimpsa_one_token");
  for (auto const name : io::right_value_names) (given.*io::member_named(name)).reset();
  for (auto const name : io::cotangent_names) (given.*io::member_named(name)).reset();
  given = io::completed_case(given, verify::rule_of(given).run);
  io::run_options const how{io::dtype::f32, io::scan_path::sequential, 64};
  auto const plain = row(verified(given, how), "out");
  CHECK(plain.outcome == io::verdict::ok);
  CHECK(plain.note.find("of the reads") != std::string::npos);
  // One entry of every query is chosen so that the first channel's read is as good as 0, and V = 1: nothing else is in the norm.
  auto one = given;
  one.q = one.k = io::case_tensor<double>{{1, 1, 1, 2}, {1, 1}, io::dtype::f64};
  one.q->values = {1, -1 + 0x1p-14};
  one.v = io::case_tensor<double>{{1, 1, 1, 1}, {0.7f}, io::dtype::f64};
  one.beta = io::case_tensor<double>{{1, 1, 1}, {0.9f}, io::dtype::f64};
  one.prior = io::case_tensor<double>{{1}, {1.3f}, io::dtype::f64};
  one.log_decay.reset(), one.initial_eta.reset(), one.initial_evidence.reset();
  for (auto const name : io::right_value_names) (one.*io::member_named(name)).reset();
  one = io::completed_case(one, verify::rule_of(one).run);
  auto const out = row(verified(one, how), "out");
  CHECK(out.outcome == io::verdict::ok);
  CHECK(out.bound == Approx(8 * 0x1p-23 * 0x1p15).epsilon(1e-3));
}

TEST_CASE("values among the denormals of their storage have its step for a floor", "[io]") {
  auto given = shipped("mamba2_basic");
  for (double& x : given.beta->values) x = 0x1p-19;
  for (auto const name : io::right_value_names) (given.*io::member_named(name)).reset();
  given = io::completed_case(given, verify::rule_of(given).run);
  CHECK(failures(verified(given, {io::dtype::f16, io::scan_path::sequential, 64})) == "");
  // Right values that F16 rounds to its denormals, from another program; and the same off by two steps.
  auto theirs = given;
  theirs.out->stored = io::dtype::f16;
  for (double& x : theirs.out->values) x = io::rounded(x, io::dtype::f16);
  CHECK(failures(verified(theirs)) == "");
  for (double& x : theirs.out->values) x += 0x1p-23;
  CHECK(failures(verified(theirs)).find("out") == 0);
}

TEST_CASE("a tolerance replaces the bounds, and is said", "[io]") {
  auto given = shipped("palimpsa_state");
  for (double& x : given.out->values) x *= 1.01;
  io::run_options how;
  how.tolerance = 0.02;
  auto const out = row(verified(given, how), "out");
  CHECK(out.outcome == io::verdict::ok);
  CHECK(out.bound == 0.02);
  CHECK(out.note == "bound given as --tolerance");
  how.tolerance = 0.005;
  CHECK(row(verified(given, how), "out").outcome == io::verdict::failed);
}

TEST_CASE("what is required and not compared fails", "[io]") {
  auto given = shipped("palimpsa_state");
  given.out_variance.reset();
  auto report = verified(given);
  CHECK(io::passed(report));
  std::vector<std::string> const names{"out", "out_variance"};
  io::require(report, names);
  CHECK(failures(report) == "out_variance\n");
  CHECK(!io::passed(report));
  CHECK(!io::passed({"nothing", {}}));
}

TEST_CASE("16-bit storage is rounding at the door, bit by bit", "[io]") {
  for (auto const* name : {"palimpsa_state", "mesa_net_state", "gated_delta_net_grouped", "longhorn_packed", "mamba2_grouped"}) {
    auto const given = shipped(name);
    for (auto const type : {io::dtype::bf16, io::dtype::f16}) {
      auto const stored = verify::rule_of(given).run(given, {type, io::scan_path::sequential, 64});
      auto const named = [&](auto rule) {
        return io::detail::run_case_narrow<typename decltype(rule)::type>(given, {type, io::scan_path::sequential, 64});
      };
      std::string const rule = given.rule;
      auto const at_the_door = rule == "palimpsa"    ? named(std::type_identity<palimpsa::Palimpsa>{})
                               : rule == "mesa_net"  ? named(std::type_identity<palimpsa::MesaNet>{})
                               : rule == "longhorn"  ? named(std::type_identity<palimpsa::Longhorn>{})
                               : rule == "mamba2"    ? named(std::type_identity<palimpsa::Mamba2>{})
                                                     : named(std::type_identity<palimpsa::GatedDeltaNet>{});
      REQUIRE(stored.size() == at_the_door.size());
      for (auto const& [tensor, values] : stored) {
        INFO(name << " " << tensor << " in " << io::name_of(type));
        CHECK(values.values == at_the_door.at(tensor).values);
      }
    }
  }
}

TEST_CASE("the table is aligned whatever the names, and counts add up", "[io]") {
  std::vector<io::case_report> const cases{
      {"a", {{"out", io::verdict::ok, 3.21e-7, 1e-6, 4e-6, ""}, {"grad_log_decay [16,64)", io::verdict::failed, 1, 2, 3, "why"}}},
      {"a_case_with_a_rather_long_name", {{"out", io::verdict::skipped, 0, 0, 0, "no reason"}}}};
  std::ostringstream text;
  io::print_table(text, cases);
  CHECK(text.str() ==
        "case                            tensor                  rel. error  worst part  max. error  bound    verdict\n"
        "a                               out                     3.2e-07     -           1.0e-06     4.0e-06  ok\n"
        "a                               grad_log_decay [16,64)  -           -           -           -        FAIL  why\n"
        "a_case_with_a_rather_long_name  out                     -           -           -           -        skipped: no reason\n");
  auto const sums = io::count(cases);
  CHECK(sums.passed == 1);
  CHECK(sums.failed == 1);
  CHECK(sums.skipped == 1);
}

#else

#include "support/catch.hpp"

TEST_CASE("cases are verified", "[io]") { SKIP("palimpsa-verify is not built"); }

#endif
