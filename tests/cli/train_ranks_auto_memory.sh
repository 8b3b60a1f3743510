# parallel: auto: where a limit of memory leaves nothing else, a Transformer is trained with its heads divided.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to limit under the sanitizers" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: vit_small_patch32_224, input_px: 64 }
data: { train: stores, val_fraction: 0.5, workers: 1, window_mb: 1 }
train: { epochs: 1, batch: 2, accumulate: 1, memory: auto }
parallel: auto
Y
train() { microtome train run.yaml --threads 1 --ranks 2 -o divided "$@" 2>&1; }
least=$(train -q --set train.memory_mb=1 | sed -nE 's/.*least is ([0-9]+) MB \(data 1 x heads 2, .*/\1/p')
train --set "train.memory_mb=$((least + 25))" >out.txt || cat out.txt
grep -oE 'parallel: auto: data 1 x heads 2|the whole network on every rank needs|does not fit|^parallel.heads: 2 parts' out.txt
sed -nE '/^parallel:/,/^[a-z]/s/^  (data|heads|stages): /\1 /p' divided/config.yaml
