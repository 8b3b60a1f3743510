# Whole slides on ranks: each has other slides, and their gradients are summed: two ranks with one slide
# a step each learn what one rank learns from two.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
microtome phantom -q -o cohort --slides 6 --size 1024 --seed 4 --centers 0 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
cat >run.yaml <<'Y'
network: { name: scan_tiny, norm: ws }
data: { slides: cohort/slides.csv, mpp: 1, val_fraction: 0.34 }
train: { epochs: 1, batch: 1, memory: stream, tile_px: 64 }
ranks: { scale_rate: false }
Y
microtome train run.yaml -o one -q --threads 1 --set train.batch=2 >/dev/null || exit
microtome train run.yaml -o two -q --threads 1 --ranks 2 >/dev/null 2>said.txt || { grep -q 'no MPI' said.txt && exit 77; cat said.txt; exit 1; }
for run in one two; do cut -d, -f 2,3,6 $run/metrics.csv | tail -n 1; done | python3 -c '
import sys
a, b = [[float(cell) for cell in line.split(",")] for line in sys.stdin]
print("the same" if all(abs(x - y) < 1e-5 * abs(x) for x, y in zip(a, b)) else (a, b))'
cut -d, -f 1-3 one/scores.csv | cmp - <(cut -d, -f 1-3 two/scores.csv) && echo "the same slides"
echo "--- resumed on two"
microtome train run.yaml -o again -q --threads 1 --ranks 2 --set train.epochs=2 --set checkpoint.every_steps=1 >/dev/null || exit
rm again/checkpoints/step-*"$(ls again/checkpoints | grep -o 'step-[0-9]*' | tail -n 1 | tail -c 3)".safetensors
cp again/model.safetensors first.safetensors
microtome train run.yaml -o again -q --threads 1 --ranks 2 --set train.epochs=2 --set checkpoint.every_steps=1 --resume >/dev/null || exit
cmp first.safetensors again/model.safetensors && echo same
