#!/usr/bin/env bash
# The audit finds what is there: a classifier that has learnt 50 random labels by heart is caught, with the epsilon that
# it would have to have; the same training with epsilon 1 is not, and its bound holds; references make the attack stronger.
# So is a generator that has learnt 50 patches of random colours by heart.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cd "$work"
python3 "$SOURCE/tests/cli/make_images.py" 120 0 images 1
python3 "$SOURCE/tests/cli/make_images.py" 120 0 elsewhere 2
cat >run.yaml <<'Y'
classes: ["0", "1"]
network: { name: scan_tiny, input_px: 144 }
data: { train: images, spacing_um_px: 1, val_fraction: 0.17 }
train: { epochs: 25, batch: 10, monitor: last }
optimizer: { name: adam }
schedule: { learning_rate: 0.005 }
Y
value() { python3 -c "import json, sys; a = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))" "$@"; }

expect() { [ "$(value "$1" "$2")" = True ] || { echo "not so: $2"; cat "$1"; exit 1; }; }

"$MICROTOME" train run.yaml -q -o heart --set privacy.hold_out=0.5
"$MICROTOME" synthesize audit --model heart -q -o caught
expect caught/audit.json "a['verdict'] == 'leaks'"
expect caught/audit.json "a['attacks'][0]['auc'] > 0.8"
expect caught/audit.json "a['attacks'][0]['one_run']['epsilon_lower'] > 0.3"
expect caught/audit.json "all(x['chance'] for x in a['attacks'] if x['control'])"

for seed in 1 2; do
    "$MICROTOME" train run.yaml -q -o "reference$seed" --set data.train=elsewhere --set "seed=$seed" --set train.epochs=10
done
"$MICROTOME" synthesize audit --model heart --reference reference1 --reference reference2 -q -o compared
expect compared/audit.json "[x['name'] for x in a['attacks'] if not x['control']] == ['loss threshold', 'RMIA', 'LiRA']"
expect compared/audit.json "all(x['auc'] > 0.75 for x in a['attacks'] if not x['control'])"
expect compared/audit.json "a['verdict'] == 'leaks'"

# A promise that it does not keep is called broken.
"$MICROTOME" synthesize audit --model heart --epsilon 0.05 -q -o broken
expect broken/audit.json "a['verdict'] == 'broken'"

cat >make.yaml <<'Y'
objective: generate
classes: ["0", "1"]
network: { name: unet_tiny, input_px: 12 }
data: { train: images, resize_px: 12, spacing_um_px: 12, val_fraction: 0.17 }
augment: { flip: false, rotate: false }
train: { epochs: 250, batch: 4, monitor: last, ema: 0.99, clip: 1 }
optimizer: { name: adam }
schedule: { learning_rate: 0.003, warmup_epochs: 2 }
privacy: { hold_out: 0.5 }
Y
"$MICROTOME" synthesize train make.yaml -q -o painter --threads 1
"$MICROTOME" synthesize audit --model painter -q -o painted --generated 0 --threads 1
expect painted/audit.json "a['verdict'] == 'leaks'"
expect painted/audit.json "a['attacks'][0]['auc'] > 0.85"
expect painted/audit.json "all(x['chance'] for x in a['attacks'] if x['control'])"

sed -i 's/, val_fraction: 0.17//' run.yaml
"$MICROTOME" train run.yaml -q -o private --set privacy.hold_out=0.5 --set privacy.epsilon=1 --set privacy.delta=1e-3 \
    --set train.epochs=10 --set network.norm=group
"$MICROTOME" synthesize audit --model private -q -o kept
expect kept/audit.json "0 < a['epsilon'] <= 1 and a['delta'] == 0.001"
expect kept/audit.json "a['verdict'] == 'quiet'"
expect kept/audit.json "all(x['one_run']['epsilon_lower'] <= a['epsilon'] for x in a['attacks'] if not x['control'])"
echo "caught where it leaks, quiet where it is private"
