// Tensors as callers have them: slices of a fused buffer, repeated elements, pitches of any size, elements past 2³¹.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "palimpsa/error.hpp"
#include "palimpsa/storage_eigen.hpp"
#include "support/step_call.hpp"

using namespace palimpsa_test;
using palimpsa::sequential;
using palimpsa::view;

namespace {

/// Copies dense row-major values into a [B,T,H,C] view.
template <class T> void fill(view<T> v, numbers const& dense) {
  std::size_t i = 0;
  for (std::int64_t b = 0; b < v.extent[0]; ++b)
    for (std::int64_t t = 0; t < v.extent[1]; ++t)
      for (std::int64_t h = 0; h < v.extent[2]; ++h)
        for (std::int64_t c = 0; c < v.extent[3]; ++c) v(b, t, h, c) = tensor<T>::from_double(dense[i++]);
}

/// q, k, v and out as slices of one [B, T, width] buffer that starts at an odd element and has an odd pitch.
template <class Storage> void check_fused(kind write, std::uint64_t n) {
  recipe r = any_sizes(n);
  r.B = 2;
  problem const p = rounded<Storage>(draw({write}, r, n));
  INFO(p);
  call<Storage> c(p);
  results<Storage> const apart = c.run();

  std::int64_t const keys = r.HK * r.K, values = r.HV * r.V, width = (2 * keys + 2 * values) | 1, start = 3;
  std::vector<Storage> buffer(static_cast<std::size_t>(start + r.B * r.T * width),
                              tensor<Storage>::from_double(std::nan("")));
  auto const slice = [&](std::int64_t offset, std::int64_t heads, std::int64_t channels) {
    return view<Storage>(buffer.data() + start + offset, {r.B, r.T, heads, channels},
                         {r.T * width, width, channels, 1});
  };
  view<Storage> const q = slice(0, r.HK, r.K), k = slice(keys, r.HK, r.K), v = slice(2 * keys, r.HV, r.V),
                      out = slice(2 * keys + values, r.HV, r.V);
  fill(q, p.q), fill(k, p.k), fill(v, p.v);
  c.in.q = q, c.in.k = k, c.in.v = v;
  results<Storage> fused = c.outputs();
  auto scratch = scratch_of(scan_workspace(p.rule, sequential{1}, c.in));
  run_scan(p.rule, sequential{1}, c.in, {out, fused.out_variance, fused.final_eta, fused.final_evidence},
           palimpsa::workspace(scratch));
  numbers dense;
  for (std::int64_t b = 0; b < r.B; ++b)
    for (std::int64_t t = 0; t < r.T; ++t)
      for (std::int64_t h = 0; h < r.HV; ++h)
        for (std::int64_t i = 0; i < r.V; ++i)
          dense.push_back(static_cast<double>(palimpsa::storage<Storage>::load(out(b, t, h, i))));
  CHECK(dense == apart.out.values());
  CHECK(fused.final_eta.bits() == apart.final_eta.bits());
}

/// A tensor's first element, repeated along every axis.
template <class T> view<T const> repeated(tensor<T> const& x) {
  view<T const> v = x;
  for (auto& s : v.stride) s = 0;
  return v;
}

}  // namespace

// Planted: the pitch of v taken for that of q; rows loaded as contiguous whatever their step.
TEST_CASE("Slices of a fused buffer at odd addresses are tensors like others") {
  std::uint64_t n = 70;
  for (kind write : every_kind) {
    check_fused<double>(write, ++n);
    check_fused<float>(write, n);
    if (instantiated<Eigen::bfloat16>({write})) check_fused<Eigen::bfloat16>(write, n);
  }
}

TEST_CASE("Every input may lie anyhow, every output too") {
  std::uint64_t n = 80;
  for (kind write : every_kind)
    for (arrangement in : every_arrangement)
      for (arrangement out : every_arrangement) {
        ++n;
        recipe r = any_sizes(n);
        r.prior_per_key = true;
        problem const p = draw({write}, r, n);
        INFO(p << ", inputs " << in << ", outputs " << out);
        results<double> const x = call<double>(p, in).run(out);
        CHECK(same_bits(call<double>(p).run(), x));
        CHECK(x.gaps_untouched());
      }
}

// Planted: a stride of 0 taken for "absent".
TEST_CASE("Inputs may repeat one element by strides of 0") {
  for (kind write : every_kind) {
    recipe r;
    r.T = 20, r.log_decays = {-0.05};
    problem p = draw({write}, r, 170);
    for (numbers* x : {&p.q, &p.k, &p.v, &p.beta, &p.log_decay, &p.prior, &p.initial_eta})
      if (!x->empty()) x->assign(x->size(), x->front() / 4);
    INFO(p);
    call<double> c(p);
    results<double> const dense = c.run();
    c.in.q = repeated(c.q), c.in.k = repeated(c.k), c.in.v = repeated(c.v), c.in.log_decay = repeated(c.log_decay);
    c.in.beta = repeated(c.beta), c.in.prior = repeated(c.prior), c.in.initial_eta = repeated(c.initial_eta);
    CHECK(same_bits(dense, c.run()));
  }
}

// Planted: an offset, then a row times its stride, calculated in int32.
TEST_CASE("Elements past 2^31 are reached") {
  std::int64_t const far = (std::int64_t{1} << 31) + 7;
  std::size_t const bytes = static_cast<std::size_t>(far + 4096) * sizeof(float);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) SKIP("no address space for " << bytes << " bytes, of which a few pages are used");
  auto* const base = static_cast<float*>(memory);
  float* next = base;
  auto const sparse = [&](std::initializer_list<std::int64_t> extents,
                          int axis) {  // one axis of 2 with a far second element
    view<float> v(nullptr, extents);
    std::int64_t step = 1;
    for (int a = v.rank - 1; a >= 0; --a) v.stride[a] = a == axis ? far : step, step *= a == axis ? 1 : v.extent[a];
    v.data = next, next += step;
    return v;
  };
  for (kind write : {kind::palimpsa, kind::mesa_net}) {
    for (int axis : {0, 1, 2, 3}) {
      recipe r;
      r.B = r.T = r.HK = r.HV = r.K = r.V = 2;
      problem const p = rounded<float>(draw({write}, r, 171));
      INFO(p << ", axis " << axis);
      call<float> c(p);
      results<float> const near = c.run();
      next = base;
      view<float> const q = sparse({2, 2, 2, 2}, axis), k = sparse({2, 2, 2, 2}, axis), v = sparse({2, 2, 2, 2}, axis),
                        out = sparse({2, 2, 2, 2}, axis);
      view<float> const eta = sparse({2, 2, 2, 2}, axis), evidence = sparse({2, 2, 2, 2}, axis);
      fill(q, p.q), fill(k, p.k), fill(v, p.v);
      auto a = pool<float>(p, 2).arguments(c);
      a.q = c.in.q = q, a.k = c.in.k = k, a.v = c.in.v = v, a.out = out;
      c.in.initial_eta = eta, c.in.initial_evidence = evidence;
      auto const check = [&](char const* what, auto f) {
        fill(eta, p.initial_eta), fill(evidence, p.initial_evidence);
        fill(out, numbers(16, std::nan("")));
        f();
        numbers o, e, J;
        for (int i = 0; i < 16; ++i) {
          o.push_back(static_cast<double>(out(i >> 3, i >> 2 & 1, i >> 1 & 1, i & 1)));
          e.push_back(static_cast<double>(eta(i >> 3, i >> 2 & 1, i >> 1 & 1, i & 1)));
          J.push_back(static_cast<double>(evidence(i >> 3, i >> 2 & 1, i >> 1 & 1, i & 1)));
        }
        INFO(what);
        CHECK((o == near.out.values() && e == near.final_eta.values() && J == near.final_evidence.values()));
      };
      auto scratch = scratch_of(scan_workspace({write}, sequential{1}, c.in) + 4096);
      check("scan", [&] {
        run_scan({write}, sequential{1}, c.in, {out, {}, eta, evidence}, palimpsa::workspace(scratch));
      });
      a.eta = eta, a.evidence = evidence;
      check("step", [&] { run_step({write}, sequential{1}, a, palimpsa::workspace(scratch)); });
    }
  }
  munmap(memory, bytes);
}

namespace {

/// Memory between two pages that nobody may touch; it starts after the first or ends before the second.
class fenced {
 public:
  fenced(std::size_t size, bool at_end) {
    auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t const inside = (size + page - 1) / page * page;
    size_ = inside + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (inside > 0) REQUIRE(mprotect(base_ + page, inside, PROT_READ | PROT_WRITE) == 0);
    data_ = base_ + page + (at_end ? inside - size : 0);
  }
  ~fenced() { munmap(base_, size_); }
  fenced(fenced const&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::size_t size_;
  std::byte *base_, *data_;
};

/// Contiguous tensors moved between fences; they live as long as this does.
class fences {
 public:
  explicit fences(bool at_end) : at_end_(at_end) {}
  std::byte* bytes(std::size_t size) { return all_.emplace_back(std::make_unique<fenced>(size, at_end_))->data(); }

  template <class T> view<T> move(view<T> v) {
    if (!v.present()) return v;
    std::int64_t n = 1;
    for (int axis = 0; axis < v.rank; ++axis) n *= v.extent[axis];
    auto* const to = reinterpret_cast<std::remove_const_t<T>*>(bytes(static_cast<std::size_t>(n) * sizeof(T)));
    std::copy(v.data, v.data + n, to);
    v.data = to;
    return v;
  }

 private:
  bool at_end_;
  std::vector<std::unique_ptr<fenced>> all_;
};

template <class Storage> void check_fenced(kind write, recipe const& r, bool at_end) {
  problem const p = rounded<Storage>(draw({write}, r, 172));
  INFO(p << (at_end ? ", at the end of a page" : ", at the start of a page"));
  call<Storage> const c(p);
  results<Storage> const right = c.run(), shapes = c.outputs();
  fences f(at_end);
  auto in = c.in;
  in.q = f.move(in.q), in.k = f.move(in.k), in.v = f.move(in.v), in.beta = f.move(in.beta);
  in.log_decay = f.move(in.log_decay), in.prior = f.move(in.prior);
  in.initial_eta = f.move(in.initial_eta), in.initial_evidence = f.move(in.initial_evidence);
  palimpsa::scan_outputs<Storage> const out{f.move(shapes.out.view()), f.move(shapes.out_variance.view()),
                                            f.move(shapes.final_eta.view()), f.move(shapes.final_evidence.view())};
  std::size_t const needed = scan_workspace({write}, sequential{1}, in);
  run_scan({write}, sequential{1}, in, out, palimpsa::workspace(f.bytes(needed), needed));
  CHECK(std::equal(out.out.data, out.out.data + p.v.size(), right.out.view().data));

  if constexpr (sizeof(Storage) > 2) {  // steps are instantiated for float and double
    pool<Storage> const states(p, r.B);
    auto a = states.arguments(c);
    a.q = in.q, a.k = in.k, a.v = in.v, a.beta = in.beta, a.log_decay = in.log_decay, a.prior = in.prior;
    a.eta = f.move(a.eta), a.evidence = f.move(a.evidence), a.out = out.out, a.out_variance = out.out_variance;
    std::size_t const enough = step_workspace({write}, sequential{1}, a);
    run_step({write}, sequential{1}, a, palimpsa::workspace(f.bytes(enough), enough));
    CHECK(std::equal(a.eta.data, a.eta.data + p.initial_eta.size(), out.final_eta.data));
  }
}

}  // namespace

TEST_CASE("Nothing outside a tensor is touched: every tensor lies between forbidden pages") {
  for (kind write : every_kind)
    for (bool at_end : {true, false})
      for (std::int64_t V : {1, 3, 17, 33}) {
        recipe r;
        r.B = 1, r.T = 35, r.HK = 1, r.HV = 2, r.K = V == 3 ? 1 : V + 2, r.V = V;
        check_fenced<double>(write, r, at_end);
        check_fenced<float>(write, r, at_end);
        if (instantiated<Eigen::bfloat16>({write})) check_fenced<Eigen::bfloat16>(write, r, at_end);
      }
}

TEST_CASE("A view of five axes, or with another number of strides than extents, is refused") {
  float x = 0;
  CHECK_THROWS_AS(view<float>(&x, {1, 1, 1, 1, 1}), palimpsa::argument_error);
  CHECK_THROWS_AS(view<float>(&x, {1, 1, 1}, {1, 1}), palimpsa::argument_error);
  view<float> const v(&x, {2, 3, 4});
  CHECK((v.stride[0] == 12 && v.stride[1] == 4 && v.stride[2] == 1 && v.rank == 3));
  CHECK(!view<float>().present());
  CHECK(shape_text(v) == "[2, 3, 4]");
}
