#!/usr/bin/env bash
# Without MPI the program trains on one rank, and says what it cannot do. The program of this test,
# microtome_no_mpi, takes all objects but one from the build with MPI; that a build without MPI would
# make the same of them is seen in what it would run.
set -eu
without=${BINARIES:?}/microtome_no_mpi configured=${SCRATCH:?}/no-mpi-build work=$SCRATCH/no-mpi
[ -x "$without" ] || { echo "skipped: the build itself is without MPI"; exit 77; }
rm -rf "$work" "$configured" && mkdir -p "$work"
cmake -G Ninja -S "${SOURCE:?}" -B "$configured" -DMICROTOME_MPI=OFF -DMICROTOME_TESTS=OFF \
    -DCMAKE_BUILD_TYPE="$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$BINARIES/../CMakeCache.txt")" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; exit 1; }
commands() { # BUILD: how all but the file of ranks is compiled, without the folders of MPI's headers
    grep '"command"' "$1/compile_commands.json" | grep -v '/tests/\|/bench/\|/ranks_\(mpi\|none\)\.c"' |
        sed "s#$(realpath "$1")#BUILD#g; s# -isystem [^ ]*/[a-z]*mpi[^ ]*##g" | sort
}
diff <(commands "$(dirname "$BINARIES")") <(commands "$configured")
grep -q 'src/dist/ranks_none.c"' "$configured/compile_commands.json"
! grep 'ranks_mpi\.c' "$configured/build.ninja"
! ldd "$without" | grep libmpi
cd "$work"
"$without" phantom -q -o cohort --slides 4 --size 2048 --seed 1
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
"$without" extract -q cohort/slides.csv -o stores --random 8 --patch 160 >/dev/null
set -- train -q --threads 1 --set data.train=stores --set network.input_px=144 --set train.epochs=1 --set train.batch=4
"$without" "$@" -o one >/dev/null
"${MICROTOME:?}" "$@" -o other >/dev/null
cmp one/model.safetensors other/model.safetensors
refuses() { # the text that must be said, then the command
    text=$1
    shift
    ! "$@" >said 2>&1
    grep -q "$text" said || { cat said; exit 1; }
}
refuses 'this build has no MPI' "$without" "$@" -o two --ranks 2
refuses 'started as one of 4 ranks, but this build has no MPI' env OMPI_COMM_WORLD_SIZE=4 "$without" "$@" -o two
refuses 'this build has no MPI' "$without" doctor --mpi --ranks 2
refuses 'this build has no MPI' "$without" doctor --mpi
rm -rf "$configured"
