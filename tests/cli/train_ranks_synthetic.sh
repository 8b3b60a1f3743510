# A share of synthetic patches on ranks: two with batches of 4 learn from what one with batches of 8 does.
. "$(dirname "$0")/support/ranks.sh"
/usr/bin/python3 - <<'PY' || exit
import glob, os, shutil
import h5py
os.makedirs("made")
shutil.copy(sorted(glob.glob("stores/*.h5"))[0], "made/samples.h5")
with h5py.File("made/samples.h5", "r+") as store:
    store.attrs["synthetic"] = "{}"
PY
cat >run.yaml <<'YAML'
network: { name: scan_tiny, input_px: 144, norm: group }
data: { train: [stores], synthetic: [made], synthetic_share: 0.4, val_fraction: 0.5, workers: 1 }
train: { epochs: 1, batch: 8 }
optimizer: { momentum: 0 } # which would amplify rounding
schedule: { learning_rate: 0.001 }
ranks: { scale_rate: false }
YAML
loss() { # NAME RANKS BATCH
    microtome train run.yaml -q --threads 1 -o "$1" --ranks "$2" --set "train.batch=$3" >/dev/null 2>err.txt || { cat err.txt >&2; exit; }
    /usr/bin/python3 -c 'import json; print(json.load(open("'"$1"'/metrics.json"))["epochs"][-1]["train_loss"])'
}
/usr/bin/python3 -c 'import sys; a, b = map(float, sys.argv[1:]); print("same loss" if abs(a - b) < 1e-5 else (a, b))' \
    "$(loss single 1 8)" "$(loss pair 2 4)"
