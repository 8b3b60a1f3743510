# Patches divided over ranks (parallel.space): after 20 steps the weights of one process, to ten times what
# rounding alone does (the same step over two replicas with batch norm over both); ranks stay bitwise equal, also
# with the optimizer in parts; stopped and resumed, it ends bitwise the same, and it goes on over another grid. What
# cannot be divided is refused by name. Batch norm is over all parts, and over replicas with ranks.sync_bn.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 160 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 4, batch: 6, tta: true, monitor: last }
schedule: { learning_rate: 0.0005 }
ranks: { sync_bn: true, scale_rate: false }
checkpoint: { every_steps: 1, keep: 30 }
Y
train() { microtome train "${config:-run.yaml}" -q --threads 1 "$@" >/dev/null 2>err.txt || { sed -n 1,3p err.txt; false; }; }
apart() { # of weights and scores in FOLDER and those of REFERENCE, against the rounding between REFERENCE and OTHER
    /usr/bin/python3 - "$@" <<'P'
import csv
import sys
import numpy as np
from weights import read

def vector(folder):
    values = read(folder)
    return np.concatenate([values[k].ravel().astype(float) for k in sorted(values)])

def scores(folder):
    rows = csv.DictReader(open(folder + "/scores.csv"))
    return np.array([float(row.get("prob_tumor", row.get("dice_nuclei"))) for row in rows])

folder, reference, other = sys.argv[1:4]
distance = np.linalg.norm(vector(folder) - vector(reference))
rounding = np.linalg.norm(vector(other) - vector(reference))
ok = 0 < distance <= 10 * rounding and np.abs(scores(folder) - scores(reference)).max() < 1e-3
print("%s and %s: %s" % (folder, reference, "apart by no more than ten times rounding" if ok else (distance, rounding)))
P
}
train -o one || exit
train -o data --ranks 2 --set train.batch=3 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
ASAN_OPTIONS=$leaks train -o columns --ranks 2 --set parallel.space=1x2 && apart columns one data
train -o rows --ranks 2 --set parallel.space=2x1 && apart rows one data
train -o both --ranks 4 --set parallel.space=2x2 && apart both one data
train -o grid --ranks 4 --set parallel.space=1x2 --set train.batch=3 && apart grid one data
grep -c . grid/metrics.csv
resnet="--set network.name=resnet18 --set network.input_px=64 --set train.epochs=1 --set train.tta=false"
resnet="$resnet --set schedule.learning_rate=5e-5 --set checkpoint.every_steps=0"
train -o resnet $resnet
train -o resnet-floats $resnet --set ranks.sync_bn=false
train -o resnet-both $resnet --ranks 4 --set parallel.space=2x2 && apart resnet-both resnet resnet-floats

echo "--- a class for every pixel"
microtome phantom -q -o nuclei --slides 4 --size 1024 --seed 3 --centers 0 --fields 2 || exit
cat >pixels.yaml <<'Y'
objective: segment
network: { name: segment_unet, input_px: 64 }
data: { train: nuclei/fields, folds: 2, patient: '^(patient_[0-9]+)_', spacing_um_px: 0.5 }
train: { epochs: 2, batch: 2, loss: dice, monitor: last }
schedule: { learning_rate: 0.001 }
ranks: { sync_bn: true, scale_rate: false }
Y
config=pixels.yaml
train -o pixels || exit
train -o pixels-data --ranks 2 --set train.batch=1
train -o pixels-both --ranks 4 --set parallel.space=2x2 && apart pixels-both pixels pixels-data
config=run.yaml

echo "--- batch norm over the parts of a patch alone, without it over replicas"
short="--set train.epochs=1 --set schedule.learning_rate=1e-4 --set checkpoint.every_steps=0 --set train.tta=false"
train -o synced --ranks 2 $short --set train.batch=3
train -o apart --ranks 2 $short --set train.batch=3 --set ranks.sync_bn=false
train -o apart-rows --ranks 4 $short --set train.batch=3 --set ranks.sync_bn=false --set parallel.space=2x1
/usr/bin/python3 - <<'P'
import numpy as np
from weights import read

def distance(a, b):
    a, b = read(a), read(b)
    return max(float(np.abs(a[k] - b[k]).max()) for k in a)

near, far = distance("apart", "apart-rows"), distance("apart", "synced")
print("as in replicas that are not divided" if near < 1e-5 and far > 1e-2 else (near, far))
P

echo "--- parts of the optimizer, less memory, resuming"
train -o parts --ranks 2 --set parallel.space=1x2 --set ranks.shard_optimizer=true --set train.memory=recompute &&
    same columns parts
for folder in resumed moved back; do # after step 15 of 24, in the third epoch
    mkdir -p $folder/checkpoints
    cp columns/checkpoints/step-*1[0-5].safetensors columns/checkpoints/best-*[01].safetensors $folder/checkpoints
done
train -o resumed --ranks 2 --set parallel.space=1x2 --resume && same columns resumed
train -o moved --ranks 4 --set parallel.space=2x2 --resume && apart moved one data
train -o back --resume && apart back one data
microtome train run.yaml -o note --threads 1 --ranks 2 --set parallel.space=2x1 --set train.epochs=1 2>&1 >/dev/null |
    grep '^parallel.space' | sed -E 's/[0-9.]+ to [0-9.]+ MB/N to N MB/'
/usr/bin/python3 -c 'import json; s = json.load(open("note/run.json"))["space"]; print(s["rows"], s["columns"], len(s["activation_bytes"]), min(s["activation_bytes"]) > 0)'

echo "--- refused"
train -o bad --ranks 4 --set parallel.space=2x2 --set network.name=resnet18 --set network.input_px=32
train -o bad --ranks 2 --set parallel.space=1x2 --set network.name=vit_small_patch16_224
train -o bad --ranks 3 --set parallel.space=1x2
train -o bad --set parallel.space=two
train -o bad --ranks 2 --set parallel.space=1x2 --set parallel.bands=2
microtome train run.yaml --ranks 4 --set parallel.space=2x2 --set ranks.bind=none --threads 1 --dry-run
