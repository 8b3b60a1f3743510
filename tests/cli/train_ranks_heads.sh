# Attention heads and MLP columns over ranks (parallel.heads): the weights of one process to rounding, dropout, clipping
# and averages included, alone and in two replicas; the model is whole; a run is resumed bit for bit on its grid, and on
# others; what does not go together is refused.
here=$(dirname "$0")
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
export PYTHONPATH=$(realpath "$here/support") PYTHONDONTWRITEBYTECODE=1 ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
apart() { /usr/bin/python3 "$here/support/apart.py" "$@"; }
python3 "$here/make_reports.py" . 40 || exit
cat >run.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val: val.csv, text: text, max_tokens: 24, vocabulary: 300, workers: 1 }
train: { epochs: 1, batch: 8, clip: 0.5, ema: 0.5 }
schedule: { learning_rate: 0.05 }
ranks: { scale_rate: false }
checkpoint: { every_steps: 1, keep: 20 }
Y
train() { microtome train run.yaml --threads 1 "$@" 2>err.txt >/dev/null || { grep '^microtome' err.txt | head -n 1; false; }; }
heads() { train --ranks 2 --set parallel.heads=2 "$@"; }
heads -o two || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
grep -o 'parallel.heads.*parameters' err.txt
grep -o '"heads": {"parts": 2, "parameters": [0-9]*' two/run.json
train -o one
train -o other --set seed=1
apart one two 2e-6
apart one other 2e-6 # the control
train -o four --ranks 4 --set parallel.heads=2 --set train.batch=4
apart one four 2e-6
heads -o waits --set ranks.overlap=false && cmp two/model.safetensors waits/model.safetensors && echo "sums that are waited for: bit for bit"

echo "--- tokens too"
tokens() { heads --set parallel.sequence=true "$@"; }
tokens -o tokens
grep -o 'parallel.heads.*parameters' err.txt
grep -o '"sequence": true' tokens/run.json
apart one tokens 2e-6
tokens -o copies --ranks 4 --set train.batch=4
apart one copies 2e-6
tokens -o waiting --set ranks.overlap=false && cmp tokens/model.safetensors waiting/model.safetensors && echo "bit for bit"

echo "--- the model"
microtome predict test.csv --model two -o scores --threads 1 -q >/dev/null && head -n 1 scores/scores.csv
microtome predict test.csv --model one -o same --threads 1 -q >/dev/null
/usr/bin/python3 - <<'P'
import csv
a, b = (list(csv.reader(open(name + "/scores.csv")))[1:] for name in ("scores", "same"))
print("the scores of one process" if max(abs(float(x) - float(y)) for r, s in zip(a, b) for x, y in zip(r[2:], s[2:])) < 1e-5 else "apart")
P

echo "--- resumed"
begun() { # a copy of folder $1 as $2, as after the second step
    cp -r "$1" "$2"
    rm -f "$2"/*.* "$2"/checkpoints/best-* "$2"/checkpoints/step-000000000[3-9]* "$2"/checkpoints/step-000000001*
}
begun two again && heads -o again --resume && cmp two/model.safetensors again/model.safetensors && echo "bit for bit"
begun two alone && train -o alone --resume && apart one alone 2e-6
begun tokens joined && heads -o joined --resume && apart one joined 2e-6
begun one divided && heads -o divided --resume && apart one divided 2e-6

echo "--- refused"
train -o bad --ranks 3 --set parallel.heads=3
alone() { train -o bad --set parallel.heads=2 "$@"; }
alone
alone --set parallel.bands=2
train -o bad --set parallel.sequence=true
alone --set optimizer.name=lars
alone --set ranks.shard_optimizer=true
alone --set ranks.compress=true
true
