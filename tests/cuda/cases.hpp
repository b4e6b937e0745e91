#pragma once
// The case files as problems with right values.

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "palimpsa/io/case_file.hpp"
#include "support/oracle.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// One case. Right values the file has not are empty.
struct known_case {
  std::string name;
  problem question;
  right_values answer;
};

inline kind write_named(std::string const& rule, bool exact) {
  if (rule == "mamba2") return kind::mamba2;
  if (rule == "longhorn") return kind::longhorn;
  if (rule == "delta_net" || rule == "gated_delta_net") return exact ? kind::implicit_delta : kind::delta;
  if (rule == "palimpsa") return kind::palimpsa;
  if (rule == "diagonal_kalman") return kind::diagonal_kalman;
  if (rule == "mesa_net") return kind::mesa_net;
  throw std::logic_error("cases.hpp does not know the rule " + rule);
}

inline known_case known(std::filesystem::path const& path) {
  palimpsa::io::case_file const f = palimpsa::io::read_case(path);
  known_case c;
  c.name = f.name;
  problem& p = c.question;
  p.rule.write = write_named(f.rule, f.gain == palimpsa::io::delta_gain::exact);
  p.rule.preweighted = f.weighting == palimpsa::io::value_weighting::preweighted;
  p.rule.forget = f.rule == "delta_net" ? gates::none : f.log_decay && f.log_decay->shape.size() == 4 ? gates::key : gates::head;
  recipe& s = p.sizes;
  s.B = f.q->shape[0], s.T = f.q->shape[1], s.HK = f.q->shape[2], s.K = f.q->shape[3], s.HV = f.v->shape[2], s.V = f.v->shape[3];
  s.beta = !f.beta ? beta_shape::absent : f.beta->shape.size() == 4 ? beta_shape::channel : beta_shape::head;
  s.gated = f.log_decay.has_value();
  s.initial_state = f.initial_eta.has_value();
  s.prior_per_key = f.prior && f.prior->shape.size() == 2;
  s.scale = f.scale;
  auto const values = [](palimpsa::io::case_file::reals const& x) { return x ? x->values : numbers{}; };
  p.q = values(f.q), p.k = values(f.k), p.v = values(f.v), p.beta = values(f.beta), p.log_decay = values(f.log_decay);
  p.prior = values(f.prior), p.initial_eta = values(f.initial_eta), p.initial_evidence = values(f.initial_evidence);
  if (f.cu_seqlens) p.cu_seqlens = f.cu_seqlens->values;
  c.answer.out = values(f.out), c.answer.out_variance = values(f.out_variance);
  c.answer.final_eta = values(f.final_eta), c.answer.final_evidence = values(f.final_evidence);
  return c;
}

/// All of them, by name.
inline std::vector<known_case> known_cases() {
  std::vector<std::filesystem::path> paths;
  for (auto const& entry : std::filesystem::directory_iterator(PALIMPSA_TEST_CASES))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<known_case> all;
  for (auto const& path : paths) all.push_back(known(path));
  return all;
}

}  // namespace palimpsa_test
