#pragma once
/// @file
/// Independent tasks over the threads OpenMP gives, or one after another without it. A task's result never depends on the thread
/// that runs it, so results do not depend on the number of threads.

#include <algorithm>
#include <cstdint>
#include <thread>

#include "palimpsa/detail/config.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Cell-steps (a cell of a state, over a token) that a thread should have to itself: 0.1 to 0.6 ms of work, where waking a team takes
/// some 10 µs, and more on a busy machine.
inline constexpr double cell_steps_a_thread = 0x1p20;

/// Threads the machine has, asked once: unlike omp_get_max_threads(), nobody changes it between two calls.
inline int hardware_threads() {
  static int const count = (std::max)(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

/// The most threads that `tasks` tasks of `work` cell-steps in all can use: as many as the caller names (`limit`), or for 0 as many as
/// the work is worth. It depends on nothing but the call and the machine, so that a workspace asked for at one time serves at another.
inline int thread_limit(std::int64_t tasks, double work, int limit) {
  double const worth = work / cell_steps_a_thread;
  int const most = hardware_threads();
  int const threads = limit > 0 ? limit : worth < most ? static_cast<int>(worth) : most;
  return static_cast<int>((std::clamp<std::int64_t>)(tasks, 1, (std::max)(threads, 1)));
}

/// How many of `most` threads run now: where the caller named no number, OpenMP's own limit counts.
inline int thread_count(int most, int limit) {
#if defined(_OPENMP)
  return limit > 0 ? most : (std::max)(1, (std::min)(most, omp_get_max_threads()));
#else
  static_cast<void>(most);
  static_cast<void>(limit);
  return 1;
#endif
}

/// f(task, thread) for every task in [0, count), thread in [0, threads). f must not throw.
template <class F>
void parallel_for(std::int64_t count, int threads, F f) {
#if defined(_OPENMP)
  if (threads > 1) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (std::int64_t task = 0; task < count; ++task) f(task, omp_get_thread_num());
    return;
  }
#endif
  static_cast<void>(threads);
  for (std::int64_t task = 0; task < count; ++task) f(task, 0);
}

}  // namespace palimpsa::cpu
