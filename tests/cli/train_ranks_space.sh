# Patches divided over ranks (parallel.space): after 3 steps the weights of one process, to ten times what rounding
# alone does (the same steps over two replicas with batch norm over both; for ResNet-18, statistics in float); with the
# optimizer in parts, with activations computed again or sums waited for, bitwise the same to the end. A killed rank
# ends all; resumed, it ends bitwise the same, and it goes on over another grid. What cannot be divided is refused by
# name.
# More steps would compare processors: in the fourth, a value lies within rounding of the kink of a ReLU, and batch norm
# over few cells makes that grow, so that one process ends elsewhere with other instructions too.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 160 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 2, batch: 6, tta: true, monitor: last }
schedule: { learning_rate: 0.0005 }
ranks: { sync_bn: true, scale_rate: false }
checkpoint: { every_steps: 1, keep: 30 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null 2>err.txt || { sed -n 1,3p err.txt; false; }; }
apart() { /usr/bin/python3 "$PYTHONPATH/apart.py" "$@"; }
train -o one || exit
train -o data --ranks 2 --set train.batch=3 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
ASAN_OPTIONS=$leaks train -o columns --ranks 2 --set parallel.space=1x2 && apart columns one data 3
train -o rows --ranks 2 --set parallel.space=2x1 && apart rows one data 3
train -o both --ranks 4 --set parallel.space=2x2 && apart both one data 3
train -o grid --ranks 4 --set parallel.space=1x2 --set train.batch=3 && apart grid one data 3
grep -c . grid/metrics.csv
resnet="--set network.name=resnet18 --set network.input_px=64 --set train.epochs=1 --set train.tta=false"
resnet="$resnet --set schedule.learning_rate=5e-5 --set checkpoint.every_steps=0"
train -o resnet $resnet
train -o resnet-floats $resnet --set ranks.sync_bn=false
train -o resnet-both $resnet --ranks 4 --set parallel.space=2x2 && apart resnet-both resnet resnet-floats

echo "--- parts of the optimizer, less memory; resuming"
train -o parts --ranks 2 --set parallel.space=1x2 --set ranks.shard_optimizer=true --set train.memory=recompute &&
    same columns parts
train -o waits --ranks 2 --set parallel.space=1x2 --set ranks.overlap=false && same columns waits
microtome train run.yaml -q --threads 1 -o killed --ranks 2 --set parallel.space=1x2 >/dev/null 2>err.txt &
rank=$(second_rank killed)
wait_for killed
kill -9 "$rank"
wait $!
echo "exit $?"
grep '^microtome' err.txt
train -o killed --ranks 2 --set parallel.space=1x2 --resume && same columns killed
for folder in moved back; do # after step 2 of 12
    mkdir -p $folder/checkpoints
    cp columns/checkpoints/step-*0[12].safetensors $folder/checkpoints
done
train -o moved --ranks 4 --set parallel.space=2x2 --resume && apart moved one data 3
train -o back --resume && apart back one data 3
microtome train run.yaml -o note --threads 1 --ranks 2 --set parallel.space=2x1 --set train.epochs=1 2>&1 >/dev/null |
    grep '^parallel.space' | sed -E 's/[0-9.]+ to [0-9.]+ MB/N to N MB/'
grep -c '"space": {"rows": 2, "columns": 1, "activation_bytes": \[[1-9][0-9]*, [1-9][0-9]*\]}' note/run.json

echo "--- refused"
train -o bad --ranks 4 --set parallel.space=2x2 --set network.name=resnet18 --set network.input_px=32
train -o bad --ranks 2 --set parallel.space=1x2 --set network.name=vit_small_patch16_224
train -o bad --ranks 3 --set parallel.space=1x2
train -o bad --set parallel.space=two
train -o bad --ranks 2 --set parallel.space=1x2 --set parallel.bands=2
microtome train run.yaml --ranks 4 --set parallel.space=2x2 --set ranks.bind=none --threads 1 --dry-run
