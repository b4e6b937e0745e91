// min, max and small are macros on some platforms. Defined after std and Eigen (which undefine or guard them), they must not
// change a line of this library.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <Eigen/Dense>
#include <nlohmann/json.hpp>

#define min(a, b) palimpsa_must_not_call_min_as_a_macro
#define max(a, b) palimpsa_must_not_call_max_as_a_macro
#define small palimpsa_must_not_name_anything_small

#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "palimpsa/palimpsa.hpp"

// A standard header that came late has undefined them, and nothing was tested: include it above.
#if !defined(min) || !defined(max)
#error "min and max were undefined on the way"
#endif
