# The launcher of ranks, or mpirun itself, is killed with -9: the ranks end. While one is alive, a
# second training in the folder is rejected; then --resume gives bitwise the result of an
# uninterrupted run.
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 8, batch: 6 }
checkpoint: { every_steps: 1, keep: 3 }
Y
train() { microtome train run.yaml -q --threads 1 --ranks 2 "$@"; }
train -o whole >/dev/null 2>err.txt || { cat err.txt; grep -q 'no MPI' err.txt && exit 77; exit 1; }
ranks() { pgrep -f -- "train run.yaml -o $PWD/$1 --threads 1 -q" | sort -n | xargs; }
begin() { # FOLDER: a training, until its first checkpoint
    microtome train run.yaml -q --threads 1 --ranks 2 -o "$PWD/$1" >/dev/null 2>&1 &
    launcher=$!
    for _ in $(seq 1200); do ls "$1"/checkpoints/step-*.safetensors >/dev/null 2>&1 && break; sleep 0.05; done
}
ended() { # FOLDER: whether its ranks have ended within 20 s
    for _ in $(seq 200); do [ -z "$(ranks "$1")" ] && break; sleep 0.1; done
    [ -z "$(ranks "$1")" ] && echo "$1: the ranks have ended" || { echo "$1: ranks are left"; kill -9 $(ranks "$1"); }
}
begin beside
microtome train run.yaml -q --threads 1 -o beside --overwrite 2>&1 | grep -o 'another run is using this folder'
{ kill -9 $launcher; wait $launcher; } 2>/dev/null
ended beside
[ -e beside/model.safetensors ] && echo "the training went on to its end"
train -o beside --resume >/dev/null && same whole beside
begin alone
kill -9 $(pgrep -P $launcher mpirun)
wait $launcher
echo "exit $?"
ended alone
train -o alone --resume >/dev/null && same whole alone
