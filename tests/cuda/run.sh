#!/usr/bin/env bash
# Everything that needs a GPU, in one go: configures, builds for the card it finds, runs the tests, the case files, the sanitizers and
# the benchmark, and ends with one table. Continues after a step that fails; the exit code is then 1.
#
#   tests/cuda/run.sh [--quick] [--no-bench] [--no-sanitizer]
#
#   --quick        the default units (35 rules and types) instead of all 162
#   BUILD=folder   where to build (build-cuda)            OUT=folder   logs go to $OUT/logs (the build folder)
#   JOBS=n         compilers at a time (all cores)        JSON=folder  a checkout of nlohmann/json, where no package of it is installed
#
# On 16 cores it takes under 10 minutes, about half of it nvcc.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
source_folder=$PWD
build=${BUILD:-$source_folder/build-cuda}
logs=${OUT:-$build}/logs
jobs=${JOBS:-$(nproc)}
every=ON bench=yes sanitizer=yes
for option in "$@"; do
  case $option in
    --quick) every=OFF ;;
    --no-bench) bench=no ;;
    --no-sanitizer) sanitizer=no ;;
    *) sed -n '2,13p' "${BASH_SOURCE[0]}"; exit 2 ;;
  esac
done
mkdir -p "$logs" || exit 2
rm -f "$logs"/*.row "$logs"/*.log
began=$SECONDS
count=0

# step <name> <seconds> <command...>: runs, logs, and leaves a row for the table.
step() {
  count=$((count + 1))
  run_step "$(printf '%s/%02d.row' "$logs" "$count")" "$SECONDS" "$@"
}
# side_by_side <name> <seconds> <command...>: the same in the background; `wait` for it.
side_by_side() {
  count=$((count + 1))
  run_step "$(printf '%s/%02d.row' "$logs" "$count")" "$SECONDS" "$@" &
}
run_step() {
  local row=$1 start=$2 name=$3 limit=$4 log=$logs/$3.log result code=0
  shift 4
  timeout "$limit" "$@" >"$log" 2>&1 || code=$?
  case $code in
    0) if grep -q 'skipped: no CUDA device' "$log"; then result='skipped: no CUDA device'; else result=ok; fi ;;
    124) result="FAILED: more than $limit s" ;;
    *) result="FAILED: exit code $code" ;;
  esac
  local said
  said=$(grep -hE '^(All tests passed|test cases:|[0-9]+ passed|========= ERROR SUMMARY)' "$log" | tail -1)
  printf '%s\t%s%s\t%d\n' "$name" "$result" "${said:+ (${said#========= })}" "$((SECONDS - start))" >"$row"
  [ "$code" = 0 ]
}

finish() {
  local failed=0 name result seconds
  printf '\n%-28s %-72s %s\n' step result seconds
  while IFS=$'\t' read -r name result seconds; do
    printf '%-28s %-72s %7s\n' "$name" "${result:0:72}" "$seconds"
    case $result in FAILED*) failed=1 ;; esac
  done < <(cat "$logs"/*.row)
  printf '%-28s %-72s %7s\n' total "logs in $logs" "$((SECONDS - began))"
  for row in "$logs"/*.row; do
    IFS=$'\t' read -r name result seconds <"$row"
    case $result in FAILED*) printf '\n--- %s\n' "$name"; grep -E 'error|FAILED|FAIL |relative error|seed|=========' "$logs/$name.log" | head -12 ;; esac
  done
  tail -n +1 "$logs"/*.log >"$logs.txt"  # all of them in one file
  exit $failed
}

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d .)
[ -n "$capability" ] || echo "nvidia-smi names no GPU: building for sm_90; tests will be skipped"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | sed 's/^/GPU: /'

step configure 120 cmake -S "$source_folder" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O2 \
  -DPALIMPSA_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${capability:-90}-real" "-DPALIMPSA_TEST_EVERY_RULE=$every" \
  -DFETCHCONTENT_FULLY_DISCONNECTED=ON ${JSON:+"-DFETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON=$JSON"} || finish
has() { ninja -C "$build" -t query "$1" >/dev/null 2>&1; }
programs=(palimpsa-test-device)
for program in palimpsa-verify example_cuda_compare bench_cuda; do
  if has "$program"; then programs+=("$program"); fi
done
# -k 0: one unit that fails does not hide the others.
step build 420 ninja -C "$build" -j "$jobs" -k 0 "${programs[@]}" || finish

tests=$build/tests/palimpsa-test-device
for file in "$source_folder"/tests/cuda/device_*.cpp; do
  name=$(basename "$file" .cpp)
  side_by_side "$name" 240 "$tests" --filenames-as-tags "[#$name]"
done
wait

verify=$(find "$build" -name palimpsa-verify -type f -perm -u+x | head -1)
if [ -n "$verify" ]; then
  for path in sequential step; do
    for type in f32 bf16 f16; do
      side_by_side "verify_${path}_$type" 120 "$verify" --device cuda --dtype $type --path $path "$source_folder"/tests/cases/*.safetensors
    done
  done
  wait
fi
compare=$(find "$build" -name example_cuda_compare -type f -perm -u+x | head -1)
if [ -n "$compare" ]; then step example_cuda_compare 60 "$compare"; fi

# A few rules over odd pointers, packing, pools and hostile numbers. initcheck needs memory that nothing has poisoned.
if [ $sanitizer = yes ]; then
  export PALIMPSA_TEST_FEW=1
  for tool in memcheck racecheck synccheck; do
    side_by_side "$tool" 240 compute-sanitizer --tool $tool --error-exitcode 9 "$tests" "[sanitize]"
  done
  PALIMPSA_TEST_UNPOISONED=1 side_by_side initcheck 240 compute-sanitizer --tool initcheck --error-exitcode 9 "$tests" "[sanitize]"
  wait
  unset PALIMPSA_TEST_FEW
fi

program=$(find "$build" -name bench_cuda -type f -perm -u+x | head -1)
if [ $bench = yes ] && [ -n "$program" ]; then
  step bench 120 "$program" --benchmark_repetitions=3 --benchmark_report_aggregates_only=true --benchmark_min_time=0.05
  grep -vE '_(mean|stddev|cv)' "$logs/bench.log"
fi
finish
