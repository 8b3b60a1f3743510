# A classifier of recordings (make_recordings.py): trained on some speakers, it finds the class of the recordings of
# others, whatever rate and format their files have, also from a table without labels in another folder. Stopped and
# resumed it is the same bit for bit; frames that do not fit into data.window_mb are read again. The model says how
# recordings become frames, and predict obeys.
here=$(dirname "$0")
python3 "$here/make_recordings.py" data || exit
cat >run.yaml <<'Y'
network: { name: audio_encoder_tiny }
data: { train: data/train.csv, val: data/val.csv, audio: file, id: id, patient_column: speaker, max_seconds: 0.48 }
train: { epochs: 8, batch: 6, clip: 1, monitor: accuracy }
optimizer: { name: adamw }
schedule: { learning_rate: 0.001, warmup_epochs: 1 }
checkpoint: { every_steps: 5, keep: 100 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null; }

echo "--- new speakers"
train -o run || exit
grep -o '"objective.*"\|"audio"\|"sample_rate_hz.*\|"window_sam.*\|"hop.*\|"mels.*\|"max_fr.*\|"long.*\|"column.*\|"id.*"' run/config.json
[ ! -e run/model.onnx ] && echo "no ONNX"
microtome predict data/test.csv --model run -o scores --threads 1 -q | awk '{ print $1, $2, ($3 >= 0.9 * $5 ? "found" : "missed: " $0) }'
head -n 1 scores/scores.csv
[ "$(cut -d, -f 1,2 scores/scores.csv)" = "$(cut -d, -f 1,3 data/test.csv | tr -d '\r')" ] && echo "ids and labels of the table"
microtome evaluate roc scores/scores.csv | awk '$2 == "macro" { print ($3 > 0.95 ? "AUC above .95" : $0) }'
microtome evaluate confusion scores/scores.csv | sed -n 1p

echo "--- the scores of validation"
microtome predict data/val.csv --model run/model.safetensors -o again --threads 2 -q >/dev/null
python3 - <<'P'
import csv
kept, made = (list(csv.reader(open(name))) for name in ("run/scores.csv", "again/scores.csv"))
assert len(kept) == len(made) == 13
most = max(abs(float(a) - float(b)) for k, m in zip(kept[1:], made[1:]) for a, b in zip(k[3:], m[2:]))
print("equal" if most < 1e-5 else "differ by %g" % most)
P

echo "--- without labels, with absolute paths"
awk -F, -v here="$PWD/data/" 'NR == 1 { print "file,id"; next } { sub(/\r/, ""); print here $4 "," $1 }' data/test.csv >plain.csv
microtome predict plain.csv --model run -o plain --threads 1 -q --json
cut -d, -f 3- plain/scores.csv | cmp - <(cut -d, -f 3- scores/scores.csv) && echo "the same scores"

echo "--- another card"
cp -r run other
sed -i 's/"hop_samples": 160/"hop_samples": 200/' other/config.json
microtome predict data/test.csv --model other -o others --threads 1 -q >/dev/null
cmp -s others/scores.csv scores/scores.csv || echo "other scores"

echo "--- resumed"
cp -r run part
rm -f part/*.* # as if it had been killed in the fourth epoch, of 8 steps
for file in part/checkpoints/*; do
    number=${file##*-}
    number=$((10#${number%.safetensors}))
    case $file in
    */step-*) [ "$number" -le 30 ] || rm "$file" ;;
    *) [ "$number" -le 2 ] || rm "$file" ;;
    esac
done
ls part/checkpoints | grep step | tail -n 1
train -o part --resume && cmp run/model.safetensors part/model.safetensors && cmp run/scores.csv part/scores.csv && echo same

echo "--- read again"
train -o large --set train.epochs=1 --set data.test=data/test.csv
train -o small --set train.epochs=1 --set data.test=data/test.csv --set data.window_mb=1
cmp large/model.safetensors small/model.safetensors && cmp large/test_scores.csv small/test_scores.csv && echo same
microtome predict data/test.csv --model large -o third --threads 1 -q >/dev/null
python3 - <<'P'
import csv
kept, made = (list(csv.reader(open(name))) for name in ("small/test_scores.csv", "third/scores.csv"))
assert len(kept) == len(made) == 25
most = max(abs(float(a) - float(b)) for k, m in zip(kept[1:], made[1:]) for a, b in zip(k[3:], m[2:]))
print("equal" if most < 1e-5 else "differ by %g" % most)
P
