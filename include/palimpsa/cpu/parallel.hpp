#pragma once
/// @file
/// Independent tasks over the threads OpenMP gives, or one after another without it. A task's result never depends on the thread
/// that runs it, so results do not depend on the number of threads.

#include <cstdint>

#include "palimpsa/detail/config.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// How many threads `count` tasks will use when the caller allows `limit` (0 = no limit of its own).
inline int thread_count(std::int64_t count, int limit) {
#if defined(_OPENMP)
  int threads = limit > 0 ? limit : omp_get_max_threads();
#else
  int threads = 1;
  static_cast<void>(limit);
#endif
  if (count < threads) threads = static_cast<int>(count);
  return threads < 1 ? 1 : threads;
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
