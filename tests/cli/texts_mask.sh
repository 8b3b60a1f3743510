# Masked tokens: learnt from texts without labels, the same bit for bit when resumed; the encoder starts a classifier;
# what does not go together is refused.
here=$(dirname "$0")
python3 "$here/make_reports.py" . 60 || exit
python3 - <<'P'
import csv
for name in ("train", "val"):
    rows = [row["text"] for row in csv.DictReader(open(name + ".csv", newline=""))]
    with open(name + "_plain.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["text"]] + [[row] for row in rows])
P
cat >run.yaml <<'Y'
objective: mask
network: { name: bert_tiny }
data: { train: train_plain.csv, val: val_plain.csv, text: text, max_tokens: 32, long: windows, vocabulary: 300 }
train: { epochs: 4, batch: 8, clip: 1 }
optimizer: { name: adamw }
schedule: { learning_rate: 0.002 }
checkpoint: { every_steps: 2, keep: 100 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null; }
train -o pre || exit
head -n 1 pre/metrics.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } NR == 2 { first = $c["val_loss"] } NR > 2 && $c["val_loss"] < first && $c["val_accuracy"] > 0 { found = 1 } END { print (found ? "learns" : first " " $0) }' pre/metrics.csv
grep -o '"objective.*"\|"tokenizer.*"\|"num_classes.*[0-9]' pre/config.json

echo "--- resumed"
cp -r pre part
rm -f part/*.* part/checkpoints/step-000000001[1-9]* part/checkpoints/step-00000000[2-9]* part/checkpoints/best-000000000[1-9]*
ls part/checkpoints | grep step | tail -n 1
train -o part --resume && cmp pre/model.safetensors part/model.safetensors && echo same

echo "--- a classifier starts from it"
classify() { microtome train run.yaml --threads 1 --set objective=classify --set data.train=train.csv --set data.val=val.csv --set network.weights=pre/model.safetensors --set train.epochs=1 "$@"; }
classify -o run --set data.tokenizer=pre/vocab.txt 2>&1 | grep -o '[0-9]* parameters loaded.*'
cmp pre/vocab.txt run/vocab.txt && echo "same vocabulary"
train -o on --set network.weights=run/model.safetensors --set data.tokenizer=run/vocab.txt --set train.epochs=1 && echo "and the other way round"
train -o before --set network.name=prenorm_tiny --set train.epochs=1 && grep -c lm_head.dense.weight before/model.safetensors

echo "--- refused"
classify -o no -q --set data.vocabulary=200 || echo "exit $?"
train -o no --set network.name=t5_mini || echo "exit $?"
train -o no --set data.balance=weights || echo "exit $?"
train -o no --set "data.text=''" || echo "exit $?"
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n' >few.txt
train -o no --set data.tokenizer=few.txt || echo "exit $?"
microtome predict val.csv --model pre -o no -q || echo "exit $?"
microtome explain words val.csv --model pre -o no -q || echo "exit $?"
microtome model run a.png --model pre || echo "exit $?"
