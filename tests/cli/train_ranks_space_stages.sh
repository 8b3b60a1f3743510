# Patches divided over ranks (parallel.space) together with stages, replicas and both: bitwise the divided network
# in one stage where micro-batches are summed in one order. Batch norm is over the parts of a replica, and over
# replicas only with ranks.sync_bn. Networks with a class for every pixel.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 160 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 1, batch: 3, monitor: last }
schedule: { learning_rate: 0.0001 }
ranks: { sync_bn: true, scale_rate: false }
parallel: { cut: [layer3.0.conv1] }
Y
train() { microtome train "${config:-run.yaml}" -q --threads 1 "$@" >/dev/null 2>err.txt || { sed -n 1,3p err.txt; false; }; }
apart() { /usr/bin/python3 "$PYTHONPATH/apart.py" "$@"; }
stages="--set parallel.space=1x2 --set parallel.stages=2"
train -o replicas --ranks 4 --set parallel.space=1x2 --set train.accumulate=2 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
train -o cube --ranks 8 $stages --set parallel.schedule=zb-h1 --set train.accumulate=2 && same replicas cube
train -o both-ways --ranks 4 $stages --set parallel.schedule=master --set train.accumulate=2 &&
    train -o alone --set train.accumulate=2 && apart both-ways alone 1e-5
resnet="--set network.name=resnet18 --set network.input_px=64 --set train.batch=2 --set train.accumulate=3"
train -o one-stage $resnet --ranks 2 --set parallel.space=1x2
ASAN_OPTIONS=$leaks train -o stages $resnet --ranks 4 $stages --set parallel.cut=[layer2.0.conv1] && same one-stage stages
grep -c '"activation_bytes": [1-9]' stages/run.json

echo "--- batch norm over the parts of a replica alone"
train -o synced --ranks 2
train -o own --ranks 2 --set ranks.sync_bn=false
train -o own-rows --ranks 4 --set ranks.sync_bn=false --set parallel.space=2x1
apart own own-rows 1e-5
apart own synced 1e-5

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
