# Texts on ranks: two ranks with batches of 4 give the weights of one with batches of 8, dropout, windows and masked
# tokens included; ranks are bitwise equal and a run is resumed.
here=$(dirname "$0")
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
export PYTHONPATH=$(realpath "$here/support") PYTHONDONTWRITEBYTECODE=1 ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
python3 "$here/make_reports.py" . 60 || exit
cat >run.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val: val.csv, text: text, max_tokens: 32, long: windows, vocabulary: 400, workers: 1 }
train: { epochs: 2, batch: 4 }
schedule: { learning_rate: 0.01 }
ranks: { scale_rate: false }
checkpoint: { every_steps: 1, keep: 20 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" 2>err.txt >/dev/null || { sed -n 1,3p err.txt; false; }; }
train -o two --ranks 2 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
train -o one --set train.batch=8
train -o other --set train.batch=8 --set seed=1
python3 "$here/support/apart.py" one two 2e-6
python3 "$here/support/apart.py" one other 2e-6
train -o masked --set train.batch=8 --set objective=mask --set train.epochs=1
train -o masked_two --ranks 2 --set objective=mask --set train.epochs=1
python3 "$here/support/apart.py" masked masked_two 2e-6
cp -r two again
rm -f again/*.* again/checkpoints/step-000000000[6-9]* again/checkpoints/step-000000001* again/checkpoints/best-0000000001*
train -o again --ranks 2 --resume && cmp two/model.safetensors again/model.safetensors && echo resumed
