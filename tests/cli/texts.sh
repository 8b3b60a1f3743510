# A classifier of made-up reports (make_reports.py): trained on some patients, it finds the class of the reports of
# others, also from a text without the labels; the vocabulary is learnt, or a file of 'model vocabulary' or of Hugging
# Face. Stopped and resumed it is the same bit for bit; two ranks give the weights of one with batches twice as large.
here=$(dirname "$0")
python3 "$here/make_reports.py" . 150 || exit
cat >run.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val: val.csv, text: text, id: id, max_tokens: 64, long: head_tail, vocabulary: 700 }
train: { epochs: 8, batch: 8, clip: 1, monitor: accuracy }
optimizer: { name: adamw }
schedule: { learning_rate: 0.001, warmup_epochs: 1 }
checkpoint: { every_steps: 5, keep: 100 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null; }

echo "--- new patients"
train -o run || exit
grep -o '"objective.*"\|"tokenizer.*"\|"long.*"\|"id.*"' run/config.json
[ ! -e run/model.onnx ] && head -n 5 run/vocab.txt | tr '\n' ' ' && wc -l <run/vocab.txt
microtome predict test.csv --model run -o scores --threads 1 -q | awk '{ print $1, $2, ($3 >= 0.95 * $5 ? "found" : "missed: " $0) }'
head -n 1 scores/scores.csv
[ "$(cut -d, -f 1,2 scores/scores.csv | sed 1d)" = "$(python3 -c '
import csv
for row in csv.DictReader(open("test.csv")): print(row["id"] + "," + row["label"])')" ] && echo "ids and labels of the table"
microtome evaluate roc scores/scores.csv | awk '$2 == "macro" { print ($3 > 0.99 ? "AUC above .99" : $0) }'
microtome evaluate confusion scores/scores.csv | sed -n 1p

echo "--- the scores of validation"
microtome predict val.csv --model run/model.safetensors -o again --threads 2 -q >/dev/null
python3 - <<'P'
import csv
kept, made = (list(csv.reader(open(name))) for name in ("run/scores.csv", "again/scores.csv"))
assert len(kept) == len(made)
most = max(abs(float(a) - float(b)) for k, m in zip(kept[1:], made[1:]) for a, b in zip(k[3:], m[2:]))
print("equal" if most < 1e-5 else "differ by %g" % most)
P

echo "--- without labels"
python3 - <<'P'
import csv
rows = list(csv.DictReader(open("test.csv")))
with open("plain.csv", "w", newline="") as stream:
    table = csv.writer(stream)
    table.writerow(["text", "id"])
    table.writerows([row["text"], row["id"]] for row in rows)
P
microtome predict plain.csv --model run -o plain --threads 1 -q --json
cut -d, -f 3- plain/scores.csv | cmp - <(cut -d, -f 3- scores/scores.csv) && echo "the same scores"

echo "--- resumed"
cp -r run part
rm -f part/*.* # as if it had been killed in the fourth epoch, of 18 steps
for file in part/checkpoints/*; do
    number=${file##*-}
    number=$((10#${number%.safetensors}))
    case $file in
    */step-*) [ "$number" -le 60 ] || rm "$file" ;;
    *) [ "$number" -le 2 ] || rm "$file" ;;
    esac
done
ls part/checkpoints | grep step | tail -n 1
train -o part --resume && cmp run/model.safetensors part/model.safetensors && cmp run/scores.csv part/scores.csv && echo same
cmp run/vocab.txt part/vocab.txt && echo "same vocabulary"

echo "--- less memory"
train -o one --set train.epochs=1
train -o twice --set train.epochs=1 --set train.memory=recompute && cmp one/model.safetensors twice/model.safetensors && echo same

echo "--- other tokenizers and networks"
microtome model vocabulary train.csv --tokens 400 -o vocab.txt -q && wc -l <vocab.txt
train -o words --set data.train=val.csv --set data.val=test.csv --set data.tokenizer=vocab.txt --set train.epochs=1 --set network.name=prenorm_tiny && cmp vocab.txt words/vocab.txt && echo kept
train -o pairs --set data.train=val.csv --set data.val=test.csv --set data.tokenizer="$here/../golden/text/tokenizer.json" --set train.epochs=1 --set network.name=t5_mini
cmp "$here/../golden/text/tokenizer.json" pairs/tokenizer.json && microtome predict test.csv --model pairs -o scored -q --threads 1 | cut -d, -f 1
train -o warm --set network.weights=run/model.safetensors --set train.epochs=1 && awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "val_accuracy") c = i } NR == 2 { print ($c > 0.9 ? "starts from weights" : $0) }' warm/metrics.csv
