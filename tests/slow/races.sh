#!/usr/bin/env bash
# ThreadSanitizer over whole commands on several threads: extract, train and predict on a phantom slide,
# with all of our code built by Clang for it (libraries are not looked at: they are not built for it, see
# threads.sh for OpenMP). A race that is there on purpose must be found first. Skipped without Clang, its
# OpenMP or libarcher.
set -u
work=${SCRATCH:?}/races build=${SCRATCH}/races-build
clang=$(command -v clang) || { echo "skipped: no clang"; exit 77; }
library=$("$clang" -print-resource-dir)/../..
[ -e "$library/libarcher.so" ] || { echo "skipped: no libarcher.so (libomp-dev)"; exit 77; }
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
cmake -G Ninja -S "${SOURCE:?}" -B "$build" -DCMAKE_C_COMPILER="$clang" -DCMAKE_BUILD_TYPE=Debug -DMICROTOME_TESTS=OFF \
    -DCMAKE_C_FLAGS="-fsanitize=thread -Wno-error" >log 2>&1 && ninja -C "$build" microtome >>log 2>&1 ||
    { tail -n 20 log; exit 1; }
"$clang" -std=c11 -D_GNU_SOURCE -g1 -O1 -fsanitize=thread -I"$SOURCE/src" "$SOURCE/tests/threads/race.c" \
    "$SOURCE"/src/base/{pool,err}.c -pthread -o race >>log 2>&1 || { tail -n 20 log; exit 1; }
export LD_LIBRARY_PATH=$library OMP_TOOL_LIBRARIES=$library/libarcher.so
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66"
./race >race.txt 2>&1
code=$?
if [ "$code" -ne 66 ] || ! grep -q "data race" race.txt; then
    echo "a race on purpose was not found (exit $code):"
    head -n 20 race.txt
    exit 1
fi
failed=0
try() { # NAME ARGUMENT...: the command under the sanitizer
    name=$1
    shift
    "$build/microtome" "$@" -q --threads 3 >"$name.out" 2>"$name.err"
    code=$?
    [ "$code" -eq 0 ] && ! grep -q "WARNING: ThreadSanitizer" "$name.err" && return
    echo "$name (exit $code):"
    head -n 60 "$name.err"
    failed=1
}
"${MICROTOME:?}" phantom -q -o cohort --slides 5 --size 1024 --seed 1 || exit 1
try extract extract cohort/slides.csv -o stores --random 12 --patch 160 --stain macenko
try dense extract cohort/slides.csv -o dense --dense --patch 128 --stride 64 --layout blocks --stain macenko
try train train -o run --set data.train=stores --set data.val_fraction=0.5 --set network.input_px=144 \
    --set train.epochs=2 --set train.batch=4 --set data.workers=2 --set checkpoint.every_steps=2
try predict predict cohort/slides/patient_000*.tiff -o heat --model run --stride 64 --export tiles-csv,overlay
try stores predict dense/patient_000*.h5 -o heat2 --model run --mode window
exit $failed
