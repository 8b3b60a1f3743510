# A private training on two ranks is that on one: the same units, the same noise, added once. A training is
# stopped after its first steps, and goes on from there, with the same key, on one rank and on two.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144, norm: group }
data: { train: stores, workers: 1 }
train: { epochs: 4, batch: 8 }
schedule: { learning_rate: 0.005 }
ranks: { scale_rate: false }
checkpoint: { every_steps: 1, keep: 50 }
privacy: { epsilon: 8, delta: 1e-3, accountant: rdp }
Y
microtome train run.yaml -o one -q --threads 1 >/dev/null 2>&1 &
wait_for one
kill -TERM $!
wait $!
echo "exit $?"
stat -c '%a %s %n' one/noise.key
cp -a one two && cp -a one three && cp -a one four
last=$(ls one/checkpoints/step-* | tail -n 1)
microtome train run.yaml -o one -q --threads 1 --resume >/dev/null || exit
microtome train run.yaml -o two -q --threads 1 --resume --ranks 2 --set train.batch=4 >/dev/null 2>err.txt ||
    { grep -q 'no MPI' err.txt && exit 77; cat err.txt; exit 1; }
microtome train run.yaml -o three -q --threads 2 --resume >/dev/null || exit
# The first step after the stop begins from the same weights, so only its sum is rounded in another order. Later steps
# multiply that, by how much depends on the key, which is another one every time.
/usr/bin/python3 - "$last" <<'P'
import re
import sys
import numpy as np
from weights import read
after = re.sub(r"[0-9]+", lambda n: "%010d" % (int(n[0]) + 1), sys.argv[1])
a, b, before = read(after), read(after.replace("one", "two", 1)), read(sys.argv[1])
most = lambda x, y: max(float(np.abs(x[k] - y[k]).max()) for k in x if k.startswith("weights/"))
assert most(a, before) > 1e-5, "nothing was learnt"
print("two ranks: %s" % ("the same to rounding" if most(a, b) < 2.5e-7 else "apart by %g" % most(a, b)))
P
cmp one/model.safetensors three/model.safetensors && echo two threads: the same bytes
ls */noise.key
microtome train run.yaml -o four -q --threads 1 --resume --ranks 2 2>&1 >/dev/null | sed "s/step-[0-9]*/step-N/" # 16 in a step
