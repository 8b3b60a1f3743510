# Deep gradient compression on ranks with a real mpirun: with everything sent it is ordinary momentum;
# with little sent the ranks stay equal (every epoch ends with a comparison), the network learns, and a
# stopped run resumes bit for bit, including what was not sent.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 4, batch: 6 }
optimizer: { weight_decay: 0 }
schedule: { learning_rate: 0.005 }
checkpoint: { every_steps: 1, keep: 20 }
Y
train() { microtome train run.yaml -q --threads 1 --ranks 2 "$@" 2>err.txt >/dev/null || { sed -n 1,3p err.txt; false; }; }
train -o plain --set train.epochs=1 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
ASAN_OPTIONS=$leaks train -o all --set train.epochs=1 --set ranks.compress=true --set ranks.compress_keep=1
/usr/bin/python3 - <<'P'
import numpy as np
from weights import read
a, b = read("plain"), read("all")
print("all sent: within 1e-6:", max(float(np.abs(a[k] - b[k]).max()) for k in a) < 1e-6)
P
few="--set ranks.compress=true --set ranks.compress_keep=0.01 --set ranks.compress_warmup=1"
train -o few $few --set train.clip=1
/usr/bin/python3 - <<'P'
import csv
rows = list(csv.DictReader(open("few/metrics.csv")))
print("learns:", float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"]))
P
ls few/checkpoints | sed -n 's/step-0*12\./12 /p'
cp -r few again
rm again/*.* again/checkpoints/step-*{6,7,8,9,10,11,12}.*
rm -f again/checkpoints/best-*[123].* # of epochs after the first, if one was better
train -o again $few --set train.clip=1 --resume
cmp few/model.safetensors again/model.safetensors && cmp few/scores.csv again/scores.csv && echo "goes on"
for rank in 0 1; do
    cmp few/checkpoints/step-0000000012.rank-$rank.safetensors again/checkpoints/step-0000000012.rank-$rank.safetensors && echo "rank $rank: the same rest"
done
train -o adam $few --set optimizer.name=adam
