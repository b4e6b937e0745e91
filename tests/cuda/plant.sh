#!/usr/bin/env bash
# Plants faults in the kernels one by one, and sees the test fail that is there to catch each: a test that cannot fail is a defect.
# Only faults that take a GPU to see; tests/cuda/test_twin*.cpp see the others without one. Works on a copy; needs what run.sh needs.
#
#   tests/cuda/plant.sh [first [last]]     the faults from number first to last; about 20 s each on 16 cores
#
#   BUILD=folder   where to copy and build (build-plant)     JOBS=n   compilers at a time     JSON=folder   as for run.sh
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=${BUILD:-$PWD/build-plant}
copy=$build/source
first=${1:-1}
last=${2:-99}
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d .)
mkdir -p "$copy" || exit 2

# What is planted | its file, by name under cuda/palimpsa or by path | text, a Perl expression | what it becomes | tests that must see it.
faults() {
  cat <<'LIST'
no fault||||device_bits device_check device_discipline device_errors device_pools device_rules device_thrust
launched on the legacy stream|execution.cuh|shared, stream\)|shared, nullptr)|device_discipline
the stream waited for inside a call|execution.cuh|detail::expect\(code, "cudaLaunchKernel"\);|detail::expect(code, "cudaLaunchKernel"); detail::expect(cudaStreamSynchronize(stream), "sync");|device_discipline
an allocation inside a call|execution.cuh|void\* arguments\[\] =|void* waste = nullptr; detail::expect(cudaMalloc(&waste, 16), "cudaMalloc"); detail::expect(cudaFree(waste), "cudaFree"); void* arguments[] =|device_discipline
CUDA's error left behind|execution.cuh|static_cast<void>\(cudaGetLastError\(\)\);||device_errors
outputs not checked before the launch|scan.cuh|check_shapes<Rule>\(out, s\);||device_errors
no barrier between a tile's arrival and its use|row_kernel.cuh|__syncthreads\(\);  // the tile is here[^\n]*||device_bits device_rules
no barrier between a tile's widening and its use|row_kernel.cuh|(last one's reads are complete.*?)__syncthreads\(\);|$1|device_bits device_rules
no barrier in a sum over a block|head_kernel.cuh|__syncthreads\(\);\n(\s*float total)|$1|device_bits device_rules
K x K of every block in one place|head_kernel.cuh|static_cast<std::int64_t>\(blockIdx.x\) \* keys \* keys|0|device_rules
a grid longer than an axis|execution.cuh|n < 65535 \? n : 65535|n|device_pools
heads beyond the grid left out|execution.cuh|head \+= gridDim.y|head = s.value_heads|device_pools
sequences beyond the grid left out|execution.cuh|sequence \+= gridDim.z|sequence = s.sequences|device_pools
16-byte accesses of a state from any address|state_cells.hpp|&&\s*reinterpret_cast<std::uintptr_t>\(state.data\) % 16 == 0||device_rules device_pools
16-byte copies of tokens from any address|block.hpp|&&\s*reinterpret_cast<std::uintptr_t>\(tensor.data\) % 16 == 0||device_rules
a pool taken for aligned|generic_rows.cuh|&&\s*reinterpret_cast<std::uintptr_t>\(pool.data\) % 16 == 0||device_pools
steps with other lanes than the scan|tuning.hpp|tile<96, 8, 1, 64, 1, 6>|tile<96, 4, 1, 64, 1, 6>|device_bits
a reciprocal of 15 bits|lanes.hpp|return y;|return __uint_as_float(__float_as_uint(y) & 0xffffff00u);|device_rules device_thrust
a state rounded to 16 bits on its way out|state_cells.hpp|__stcs\(at, x\);|__stcs(at, __uint_as_float(__float_as_uint(x) & 0xffff0000u));|device_rules device_bits
flags that overwrite each other|problem.hpp|atomicOr\(status, bit\);|*status = bit;|device_check device_pools
an inert row left as it was|direct_kernel.cuh|if \(place.inert\) return clear[^;]*;|if (place.inert) return;|device_pools
the aligned step's rows one part too few|stream_kernel.cuh|left - Tile::block_rows > stop|left - 2 * Tile::block_rows > stop|device_pools device_bits
workspace read before it is written|head_block.hpp|solved\(t, j\) = |if (t > 0) solved(t, j) = |device_bits device_rules
offsets of 32 bits|include/palimpsa/view.hpp|offset \+= given\[axis\] \* stride\[axis\];|offset += static_cast<int>(given[axis] * stride[axis]);|device_pools
LIST
}

number=0 missed=0
printf '%-4s %-52s %s\n' '' fault seen
while IFS='|' read -r name file text becomes tests; do
  number=$((number + 1))
  if [ $number -gt 1 ] && { [ $((number - 1)) -lt "$first" ] || [ $((number - 1)) -gt "$last" ]; }; then continue; fi
  for folder in CMakeLists.txt include cuda tests docs; do
    rsync -rc --delete "$folder" "$copy/" 2>/dev/null || cp -ru "$folder" "$copy/"
  done
  case $file in
    */*) target=$copy/$file ;;
    *) target=$(find "$copy/cuda/palimpsa" -name "${file:-none}") ;;
  esac
  if [ $number -gt 1 ]; then
    cp "$target" "$build/before"
    TEXT=$text BECOMES=$becomes perl -0pi -e '
      my ($t, $b) = @ENV{qw(TEXT BECOMES)};
      s/$t/my $r = $b; my $one = $1; $r =~ s{\$1}{$one}g if defined $one; $r/gse' "$target"
    if cmp -s "$target" "$build/before"; then
      printf '%-4s %-52s %s\n' $((number - 1)) "$name" "NOT PLANTED: $file has no such text"
      missed=1
      continue
    fi
  fi
  [ -f "$build/b/build.ninja" ] ||
    cmake -S "$copy" -B "$build/b" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DPALIMPSA_CUDA=ON \
      -DPALIMPSA_EXAMPLES=OFF -DPALIMPSA_BENCH=OFF -DPALIMPSA_TEST_FEW_RULES=ON -DPALIMPSA_WERROR=OFF \
      "-DCMAKE_CUDA_ARCHITECTURES=${capability:-90}-real" -DFETCHCONTENT_FULLY_DISCONNECTED=ON \
      ${JSON:+"-DFETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON=$JSON"} >"$build/configure.log" 2>&1 || { tail -5 "$build/configure.log"; exit 2; }
  if ! ninja -C "$build/b" -j "${JOBS:-$(nproc)}" palimpsa-test-device >"$build/build.log" 2>&1; then
    printf '%-4s %-52s %s\n' $((number - 1)) "$name" "NOT BUILT"
    grep -m3 error "$build/build.log"
    missed=1
  else
    seen=
    for test in $tests; do
      # One case counts the compiled rules, which are few here.
      timeout 120 "$build/b/tests/palimpsa-test-device" --filenames-as-tags "[#$test]~*is compiled*" >"$build/test.log" 2>&1 || seen="$seen $test"
    done
    if [ $number = 1 ]; then
      verdict="none, as it should be"
      if [ -n "$seen" ]; then verdict="FAILS WITHOUT A FAULT:$seen" missed=1; fi
    else
      verdict="by$seen"
      if [ -z "$seen" ]; then verdict="NOT SEEN by $tests" missed=1; fi
    fi
    printf '%-4s %-52s %s\n' $((number - 1)) "$name" "$verdict"
  fi
  if [ $number -gt 1 ]; then cp "$build/before" "$target"; fi
done < <(faults)
exit $missed
