# One slide over several ranks by bands of rows (parallel.bands): the weights of one rank, to rounding, and
# with data x bands those of data alone; ranks stay bitwise equal; stopped and resumed, also with the
# optimizer in parts, it ends bitwise the same. What cannot be divided is refused by name.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
leaks=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export PYTHONPATH=$(realpath "$(dirname "$0")/support") PYTHONDONTWRITEBYTECODE=1
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 4 --centers 0 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
cat >run.yaml <<'Y'
network: { name: scan_tiny, norm: ws, head: lse }
data: { slides: cohort/slides.csv, mpp: 0.5, folds: 2 }
train: { memory: stream, tile_px: 128, epochs: 2, batch: 1 }
schedule: { learning_rate: 0.01 }
ranks: { scale_rate: false }
checkpoint: { every_steps: 1, keep: 20 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null 2>err.txt || { sed -n 1,3p err.txt; false; }; }
apart() {
    /usr/bin/python3 - "$@" <<'P'
import sys
import numpy as np
from weights import read
a, b, start = (read(folder) for folder in sys.argv[1:4])
most = max(float(np.linalg.norm(a[k] - b[k]) / max(np.linalg.norm(a[k] - start[k]), 1e-6)) for k in a)
print("%s and %s: %s" % (sys.argv[1], sys.argv[2], "apart by less than 0.001 of what was learnt" if most < 1e-3 else most))
P
}
train -o start --set schedule.learning_rate=1e-12 || exit
train -o one
ASAN_OPTIONS=$leaks train -o two --ranks 2 --set parallel.bands=2 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
apart one two start
for bands in 3 4; do
    train -o bands$bands --ranks $bands --set parallel.bands=$bands --set train.tile_px=0
    apart one bands$bands start
done
train -o data --ranks 2
train -o both --ranks 4 --set parallel.bands=2
apart data both start

echo "--- parts of the optimizer, and resuming"
train -o parts --ranks 2 --set parallel.bands=2 --set ranks.shard_optimizer=true
cmp two/model.safetensors parts/model.safetensors && echo same
cp -r two again
rm -f again/*.* again/checkpoints/best* again/checkpoints/step-*[2-9].safetensors
train -o again --ranks 2 --set parallel.bands=2 --resume && cmp two/model.safetensors again/model.safetensors && echo same
train -o again --ranks 3 --set parallel.bands=3 --resume

echo "--- refused"
train -o bad --ranks 8 --set parallel.bands=8
train -o bad --ranks 2 --set parallel.bands=2 --set train.memory=plain
train -o bad --ranks 2 --set parallel.bands=2 --set ranks.compress=true
train -o bad --ranks 3 --set parallel.bands=2
microtome train run.yaml --ranks 4 --set parallel.bands=2 --set ranks.bind=none --threads 1 --dry-run
