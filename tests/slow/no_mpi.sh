#!/usr/bin/env bash
# Without MPI the program builds, trains on one rank, and says what it cannot do.
set -eu
build=${SCRATCH:?}/no-mpi-build work=$SCRATCH/no-mpi
rm -rf "$work" && mkdir -p "$work"
cmake -G Ninja -S "${SOURCE:?}" -B "$build" -DMICROTOME_MPI=OFF -DMICROTOME_TESTS=OFF >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
cmake --build "$build" --target microtome -j 2 >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
! ldd "$build/microtome" | grep libmpi
cd "$work"
"$build/microtome" phantom -q -o cohort --slides 4 --size 2048 --seed 1
"$build/microtome" extract -q cohort/slides.csv -o stores --random 8 --patch 160 >/dev/null
set -- train -q --threads 1 --set data.train=stores --set network.input_px=144 --set train.epochs=1 --set train.batch=4
"$build/microtome" "$@" -o one >/dev/null
"${MICROTOME:?}" "$@" -o other >/dev/null
cmp one/model.safetensors other/model.safetensors
refuses() { # the text that must be said, then the command
    text=$1
    shift
    ! "$@" >said 2>&1
    grep -q "$text" said || { cat said; exit 1; }
}
refuses 'this build has no MPI' "$build/microtome" "$@" -o two --ranks 2
refuses 'started as one of 4 ranks, but this build has no MPI' env OMPI_COMM_WORLD_SIZE=4 "$build/microtome" "$@" -o two
rm -rf "$build"
