# --plan-parallel: every grid and schedule for ranks that are not there, as a table with the reason, as JSON,
# and as a chart; a memory limit changes the choice, and one that nothing fits names the least. Nothing is trained.
mkdir data
cat >run.yaml <<'Y'
data: { train: data }
network: { name: scan_tiny, input_px: 144 }
train: { batch: 2, accumulate: 2 }
Y
plan() { microtome train run.yaml --plan-parallel --threads 1 "$@"; }
wire="--latency-us 5 --bandwidth-gb 1 --machine-ranks 1"

echo "--- table"
plan --ranks 4 $wire -o plan | sed -E 's/takes .* forward, .* back/takes F forward, B back/; s/[0-9]+ MB a rank/N MB a rank/; s/with [0-9]+ processors?/with P processors/' >table
sed -n '1,7p' table
grep -E '^(chosen|why|config)' table | sed -E 's/; the next.*//'
grep -A 3 '^config' table | tail -n 2
ls plan data
file plan/parallel.png | grep -o 'PNG image data'
grep -c '<svg' plan/parallel.svg

echo "--- JSON"
plan --ranks 128 $wire --json >all.json
python3 - <<'P'
import json
a = json.load(open("all.json"))
c = a["choices"]
print(a["ranks"], a["step_samples"], a["connection"], a["batch_norm_fixes_micro_batch"], a["latency_s"], a["bytes_per_s"])
print(all(x["data"] * x["stages"] == 128 for x in c), sorted({x["stages"] for x in c})[:3])
print(sorted({x["schedule"] or "-" for x in c}))
print(all(x["micro_batch"] * x["micro_batches"] * x["data"] == a["step_samples"] for x in c))
print(all(p["step_s"] <= q["step_s"] * (1 + 1e-5) for p, q in zip(c, c[1:]) if q["fits"]))
print(all(len(x["last_layers"]) == x["stages"] - 1 and x["heads"] == 1 for x in c))
# the memory of one choice between the least and the most: what fits then is first
need = sorted(x["rank_bytes"] for x in c)
open("some", "w").write(str((need[0] + need[-1]) // 2 // 1000000))
P
plan --ranks 128 $wire --json --memory-mb "$(cat some)" >less.json
python3 - <<'P'
import json
a = json.load(open("less.json"))
c = a["choices"]
fit = [x["fits"] for x in c]
print(0 < a["fit"] < len(c), fit == sorted(fit, reverse=True), a["fit"] == sum(fit), a["memory"])
P

echo "--- refused"
try() { "$@" >/dev/null 2>err.txt; echo "exit $?"; sed -E 's/least is [0-9]+ MB/least is N MB/; s/\(data .*\)/(..)/' err.txt; }
try plan --ranks 4 $wire --memory-mb 1
try plan --ranks 4 $wire --set parallel.stages=3
try plan --ranks 4 $wire --set parallel.micro_batch=3
try plan --ranks 4 --on slurm
try plan --ranks 4 --sweep seed=1,2
try plan --ranks 4 --set network.name=unknown
try plan --ranks 4 --latency-us 0
try microtome train run.yaml -o out --machine-ranks 2
echo "rank" >plain; try plan --ranks 4 $wire -o plain/x
try plan --ranks 4 $wire -o plain
try plan --ranks 2 --set train.batch=none
try microtome train none.yaml --plan-parallel --ranks 2
try plan --ranks 0

echo "--- in part given, in part assumed; one rank"
plan --ranks 4 --machine-ranks 1 --latency-us 5 | grep '^connection'
plan --ranks 4 --machine-ranks 1 --bandwidth-gb 2 | grep '^connection'
plan $wire | grep -A 1 '^chosen'

echo "--- heads of a Transformer: copies are faster where messages are late, heads take less memory"
cat >run.yaml <<'Y'
data: { train: data, window_mb: 1 }
network: { name: vit_small_patch32_224, input_px: 64 }
optimizer: { momentum: 0 }
train: { batch: 2 }
parallel: { micro_batch: 2 }
Y
wire="--latency-us 2000 --bandwidth-gb 100 --machine-ranks 1"
heads() { plan --ranks 2 $wire "$@" | sed -nE '/^(chosen|heads|config)/p; /^  parallel/p' | sed -E 's/[0-9.]+ (times|MB)/N \1/; s/[0-9]+ %/N %/'; }
heads
plan --ranks 2 $wire --json >heads.json
python3 - <<'P'
import json
c = json.load(open("heads.json"))["choices"]
print(sorted({(x["data"], x["stages"], x["heads"]) for x in c}))
print(all(0 < x["sums_in_layers"] < 1 if x["heads"] > 1 else x["sums_in_layers"] == 0 for x in c))
divided, others = (min(x["rank_bytes"] for x in c if (x["heads"] > 1) == h) for h in (True, False))
open("some", "w").write(str((divided + others) // 2 // 1000000))
P
heads --memory-mb "$(cat some)" -o divided
grep -c 'one rank is shown' divided/parallel.svg
heads --set ranks.compress=true
try plan --ranks 4 $wire --set parallel.heads=4
try plan --ranks 2 $wire --set parallel.heads=2 --set optimizer.name=lars

echo "--- texts: copies and heads, no stages; the vocabulary is the largest that may be learnt, or that of a file"
python3 "$(dirname "$0")/make_reports.py" . 12
cat >run.yaml <<'Y'
data: { train: train.csv, text: text, max_tokens: 24, vocabulary: 300 }
network: { name: bert_tiny }
train: { batch: 2 }
Y
plan --ranks 2 $wire | sed -nE 's/^network     (.*) tokens, (.*) M parameters; a text .*/\1 tokens, \2 M/p; s/^a step +//p; s/.*(texts\/s).*/\1/p'
plan --ranks 2 $wire --json >texts.json
plan --ranks 2 $wire --json --set parallel.sequence=true >tokens.json
python3 - <<'P'
import json
whole, tokens = (json.load(open(name)) for name in ("texts.json", "tokens.json"))
print(sorted({(x["data"], x["stages"], x["heads"]) for x in whole["choices"]}), whole["tokens"])
def most(plan, heads):
    return max(x["rank_bytes"] for x in plan["choices"] if x["heads"] == heads)
saved = [most(plan, 1) - most(plan, 2) for plan in (whole, tokens)]  # of one process: another one's own memory differs
print("less memory with tokens divided:", saved[1] > saved[0] > 0)
P
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n' >vocab.txt
plan --ranks 2 $wire --set data.tokenizer=vocab.txt | sed -nE 's/^network     (.*) tokens, (.*) M parameters.*/\1 tokens, \2 M/p'
try plan --ranks 2 $wire --set parallel.stages=2
try plan --ranks 2 $wire --set objective=mask
sed -i 's/^data.*/data: { train: train.csv, audio: text }/' run.yaml
try plan --ranks 2 $wire --set network.name=audio_encoder_tiny
