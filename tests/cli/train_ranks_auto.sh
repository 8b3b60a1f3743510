# parallel: auto: the first rank measures and all take its choice, which is written to config.yaml and taken again by
# --resume; the weights are those of the same settings written out. One process has nothing to choose.
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 1, batch: 2, accumulate: 1 }
parallel: auto
Y
train() { microtome train run.yaml --threads 1 "$@" 2>&1; }
chosen() { sed -n '/^parallel:/,/^[a-z]/p' "$1/config.yaml" | grep -E '^  (auto|data|stages):' | tr -d '\n'; echo; }
train --ranks 2 -o auto | grep -o 'parallel: auto: data 2, 1 micro-batch of 2'
chosen auto
train -q --ranks 2 -o written --set parallel.auto=false --set parallel.data=2 >/dev/null
cmp auto/model.safetensors written/model.safetensors && echo "same weights"
train --ranks 2 -o auto --resume | grep -E 'auto:'
train -q -o alone >/dev/null
chosen alone
echo "--- texts, whose heads and tokens are divided"
python3 "$(dirname "$0")/make_reports.py" . 12
cat >texts.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val: val.csv, text: text, max_tokens: 16, vocabulary: 300, workers: 1 }
train: { epochs: 1, batch: 2 }
parallel: { auto: true, heads: 2, sequence: true }
Y
microtome train texts.yaml --threads 1 --ranks 2 -o texts 2>&1 | grep -oE 'parallel: auto: data 1 x heads 2|^parallel.heads: 2 parts of every attention and MLP, of tokens between them'
sed -nE '/^parallel:/,/^[a-z]/s/^  (data|heads|sequence): /\1 /p' texts/config.yaml
microtome train texts.yaml --threads 1 -q -o one_text --set parallel.heads=1 >/dev/null && sed -nE '/^parallel:/,/^[a-z]/s/^  (data|heads|sequence): /\1 /p' one_text/config.yaml
echo "--- refused"
train -q --ranks 2 -o small --set train.memory=auto --set train.memory_mb=8 | sed -E 's/least is [0-9]+ MB \(.*\)/least is N MB (..)/'
train -q --ranks 2 -o bands --set parallel.bands=2
train -q --ranks 2 -o space --set parallel.space=1x2
