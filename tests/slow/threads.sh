#!/usr/bin/env bash
# ThreadSanitizer over our convolution kernels and the weights that plans share. GCC's OpenMP is not
# instrumented and would be reported all over; Clang's tells the sanitizer of its barriers through
# libarcher. A race that is there on purpose must be found, or the silence about the kernels would
# mean nothing. oneDNN's kernels are not looked at. Skipped without Clang, its OpenMP or libarcher.
set -u
cd "${SOURCE:?}" || exit 1
scratch=${SCRATCH:?}/threads
mkdir -p "$scratch"
clang=$(command -v clang) || { echo "skipped: no clang"; exit 77; }
library=$("$clang" -print-resource-dir)/../..
[ -e "$library/libarcher.so" ] || { echo "skipped: no libarcher.so (libomp-dev)"; exit 77; }
kernels=src/net/kernels
if ! "$clang" -std=c11 -D_GNU_SOURCE -O1 -g1 -fopenmp -fsanitize=thread -ffp-contract=off -Isrc \
    tests/threads/kernels.c $kernels/winograd_{conv,gradient,loops,tiles}.c \
    $kernels/{stem_conv,direct_conv,pool,channel_sums}.c \
    src/net/plan/shared_weights.c src/net/graph/tensor.c src/base/err.c -lm -pthread \
    -o "$scratch/kernels" 2>"$scratch/build"; then
    cat "$scratch/build"
    exit 1
fi
export LD_LIBRARY_PATH=$library OMP_TOOL_LIBRARIES=$library/libarcher.so
export ARCHER_OPTIONS=verbose=1 TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66"
"$scratch/kernels" race >"$scratch/race" 2>&1
code=$?
if [ "$code" -ne 66 ] || ! grep -q "data race" "$scratch/race" || ! grep -q -i archer "$scratch/race"; then
    echo "a race on purpose was not found (exit $code):"
    head -n 20 "$scratch/race"
    exit 1
fi
"$scratch/kernels" >"$scratch/said" 2>&1
code=$?
[ "$code" -eq 0 ] || head -n 60 "$scratch/said"
exit "$code"
