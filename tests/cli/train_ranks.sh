# Training on ranks with a real mpirun: results are bitwise the same with and without overlap; a stop on any
# rank saves and ends all with 75; a killed rank ends all; resuming gives bitwise the result of an
# uninterrupted run; ranks with different data, settings or code are found. scan_tiny has batch norm: epochs end with
# a comparison of all weights and statistics over the ranks, here after every second step.
root=
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 4, batch: 6 }
schedule: { learning_rate: 0.005 }
checkpoint: { every_steps: 1, keep: 20 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" 2>err.txt >/dev/null; }
ASAN_OPTIONS=$leaks train -o two --ranks 2 || { cat err.txt; grep -q 'no MPI' err.txt && exit 77; exit 1; }
grep -c . two/scores.csv
grep '"ranks"' two/run.json
train -o plain --ranks 2 --set ranks.overlap=false && same two plain
microtome extract -q cohort/slides.csv -o few --random 4 --patch 160 >/dev/null || exit
hidden() { # what was summed while the backward pass ran, of 45 MB in buckets of 1 MB; two steps
    train -o "$1" --ranks 2 --set data.train=few --set network.name=resnet18 --set network.input_px=64 --set data.resize_px=64 \
        --set train.epochs=1 --set train.batch=2 --set ranks.bucket_mb=1 --set checkpoint.every_steps=0 --set ranks.overlap="$2"
    bytes=$(sed -n 's/.*"bytes": \([0-9]*\).*/\1/p' "$1/run.json")
    part=$(sed -n 's/.*"hidden_bytes": \([0-9]*\).*/\1/p' "$1/run.json")
    [ "$bytes" -gt 0 ] && [ "$part" -le "$bytes" ] && echo "overlap $2: $([ "$part" -gt 0 ] && echo some || echo none)"
}
hidden shown false
hidden hidden true
same shown hidden
mpirun $root -n 2 --bind-to none microtome train run.yaml -q --threads 1 -o by_hand >/dev/null && same two by_hand

echo "--- SIGTERM to one rank"
train -o term --ranks 2 &
rank=$(second_rank term)
wait_for term
kill -TERM "$rank"
wait $!
echo "exit $?"
sed 's/[0-9]\+/N/g' err.txt
train -o term --ranks 2 --resume && same two term

echo "--- SIGTERM to the program"
microtome train run.yaml -q --threads 1 -o program --ranks 2 2>err.txt >/dev/null &
wait_for program
kill -TERM $!
wait $!
echo "exit $?"
sed 's/[0-9]\+/N/g' err.txt
train -o program --ranks 2 --resume && same two program

echo "--- kill -9 of one rank"
train -o killed --ranks 2 &
rank=$(second_rank killed)
wait_for killed
kill -9 "$rank"
began=$(date +%s)
wait $!
echo "exit $?"
[ $(($(date +%s) - began)) -lt 20 ] || echo "the others took too long to end"
grep '^microtome' err.txt # Open MPI may have a word of its own about a neighbour that is gone
train -o killed --ranks 2 --resume && same two killed

echo "--- not the same on all ranks"
microtome extract -q cohort/slides.csv -o elsewhere/stores --random 12 --patch 160 --seed 5 >/dev/null
cp run.yaml elsewhere
differ() { # what mpirun is to start, as two lists
    mpirun $root --bind-to none "$@" 2>&1 >/dev/null | sed -n 's/ ([^)]*)//g; /^microtome/p'
}
one="-n 1 microtome train run.yaml -q --threads 1 -o $PWD/differ"
differ $one : -wdir elsewhere $one
differ $one : $one --set seed=3
cp "$(realpath "$(command -v microtome)")" other
echo >>other
differ $one : -n 1 ./other train run.yaml -q --threads 1 -o "$PWD/differ"
echo "--- a broken store on one rank"
cp -r stores broken
for store in broken/*.h5; do truncate -s $(($(stat -c %s "$store") * 6 / 10)) "$store"; done
mkdir apart
cp run.yaml apart
mv broken apart/stores
differ $one : -wdir apart $one
