# Long texts in windows: scores are the mean over windows that are cut here by hand, also in validation; texts that fit
# are as if they were truncated, bit for bit, in training and in scores; what goes with windows is checked.
python3 - <<'P'
import csv, random
draw = random.Random(3)
words = ["w%02d" % i for i in range(60)]
open("vocab.txt", "w").write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words) + "\n")
def table(name, n, low, high):
    with open(name, "w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["patient", "label", "text"])
        for i in range(n):
            known = words[20 * (i % 2):][:40]
            text = [draw.choice(known) for _ in range(draw.randint(low, high))]
            rows.writerow([name + str(i), "ab"[i % 2], " ".join(text)])
table("train.csv", 16, 3, 40)
table("val.csv", 12, 3, 40)
table("short.csv", 16, 3, 10)
table("brief.csv", 6, 3, 10)
P
cat >run.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val: val.csv, text: text, tokenizer: vocab.txt, max_tokens: 12, long: windows, workers: 1 }
train: { epochs: 2, batch: 8 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null; }
train -o run || exit
grep -o '"long.*"\|"window_overlap.*[0-9]' run/config.json

echo "--- windows by hand: ten words each, of which the next one has two"
microtome predict val.csv --model run -o long --threads 1 2>/dev/null | cut -d, -f 1
python3 - <<'P'
import csv
with open("parts.csv", "w", newline="") as stream:
    rows = csv.writer(stream)
    rows.writerow(["label", "text"])
    for i, row in enumerate(csv.DictReader(open("val.csv"))):
        words = row["text"].split()
        for start in list(range(0, max(len(words) - 10, 0), 8)) + [max(len(words) - 10, 0)]:
            rows.writerow([i, " ".join(words[start:start + 10])])
P
microtome predict parts.csv --model run -o parts --threads 1 -q >/dev/null
python3 - <<'P'
import csv
means, kept, made = {}, list(csv.DictReader(open("run/scores.csv"))), list(csv.DictReader(open("long/scores.csv")))
for row in csv.DictReader(open("parts/scores.csv")):
    means.setdefault(int(row["label"]), []).append(float(row["score_a"]))
assert sum(len(m) > 1 for m in means.values()) > 6 and len(made) == len(means) == len(kept)
for what, scores in (("predict", [float(row["score_a"]) for row in made]), ("validation", [float(row["prob_a"]) for row in kept])):
    apart = max(abs(scores[i] - sum(m) / len(m)) for i, m in means.items())
    first = max(abs(scores[i] - m[0]) for i, m in means.items())
    print(what, "is the mean" if apart < 1e-6 else "differs by %g" % apart, "and not the first window" if first > 1e-4 else "")
P

echo "--- short texts"
microtome predict brief.csv --model run -o brief --threads 1 -q >/dev/null
cp -r run cut && sed -i 's/"windows"/"truncate"/; /window_overlap/d' cut/config.json
microtome predict brief.csv --model cut -o as_cut --threads 1 -q >/dev/null && cmp brief/scores.csv as_cut/scores.csv && echo "scores as truncated"
few() { train --set data.train=short.csv --set data.val=brief.csv "$@"; }
few -o few && few -o few_cut --set data.long=truncate
cmp few/model.safetensors few_cut/model.safetensors && cmp few/scores.csv few_cut/scores.csv && echo "weights as truncated"
train -o head --set data.long=truncate
cmp -s run/model.safetensors head/model.safetensors || echo "long ones are learnt from other windows"

echo "--- bad settings"
train -o no --set data.window_overlap=1 || echo "exit $?"
train -o no --set data.long=truncate --set data.window_overlap=0.5 || echo "exit $?"
