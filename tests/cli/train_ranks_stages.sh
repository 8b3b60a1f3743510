# A network in stages over ranks (parallel.stages), one-way schedules: after 20 steps the weights of one process with
# as many micro-batches in a step, bit for bit. Skips cross cuts; stages are named or measured; dropout; segmentation.
# Memory as promised: with recomputation one set of activations on a rank, and the inputs of what is on its way.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/stages.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 5, batch: 2, accumulate: 4, clip: 0.05, monitor: last }
schedule: { learning_rate: 0.002 }
ranks: { scale_rate: false }
Y
train -o one || exit
ASAN_OPTIONS=$leaks staged 1f1b 4 1f1b || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
same one 1f1b
grep -c '^  cut: \[[^]]*,[^]]*,[^]]*\]' 1f1b/config.yaml
cut='[layer2.0.conv1,layer2.0.conv2,layer3.0.conv2]' # for memory: cuts that are measured differ from run to run
staged named 4 1f1b --set train.epochs=1 --set parallel.cut="$cut" && memory named
staged basic 2 basic --set parallel.cut='[layer2.0.conv1]' && same one basic
staged gpipe 3 gpipe --set parallel.cut='[stem,layer3.0.conv2]' && same one gpipe
memory gpipe
staged zb-h1 3 zb-h1 && same one zb-h1
for mb in 4000 60; do # recompute: auto, with room and without
    staged auto 2 1f1b --overwrite --set train.epochs=1 --set train.memory=auto --set train.memory_mb=$mb
    echo "$mb MB: recomputed on $(grep -c '"recompute": true' auto/run.json) ranks"
done

echo "--- dropout, and another objective"
train -o dropout --set network.name=googlenet --set network.input_px=64 --set train.epochs=1
staged dropout2 2 zb-h1 --set network.name=googlenet --set network.input_px=64 --set train.epochs=1 \
    --set parallel.cut='[inception4c]' && same dropout dropout2
microtome phantom -q -o nuclei --slides 4 --size 1024 --seed 3 --centers 0 --fields 2 || exit
cat >run.yaml <<'Y'
objective: segment
network: { name: segment_unet, input_px: 64 }
data: { train: nuclei/fields, folds: 2, fold: 2, patient: '^(patient_[0-9]+)_', spacing_um_px: 0.5, workers: 1 }
train: { epochs: 2, batch: 1, accumulate: 2, loss: dice }
Y
train -o segment
staged segment3 3 gpipe --set parallel.cut='[down.1,down.2]' && same segment segment3
