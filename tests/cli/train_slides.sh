# Whole slides, learnt from their labels alone, tile by tile: what was killed or stopped, also within
# a slide, ends with the same weights. The example is what is run, on smaller images.
microtome phantom -q -o cohort --slides 6 --size 1024 --seed 4 --centers 0 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
small="--set data.mpp=0.5 --set train.tile_px=64 --set train.epochs=3 --set data.folds=2 --set train.batch=1"
small="$SOURCE/examples/whole-image.yaml $small --set network.name=scan_tiny --set checkpoint.every_steps=1 --set data.slides=cohort/slides.csv"
train() { microtome train $small --threads 1 "$@"; }
microtome train $small -o whole --threads 2 2>said.txt >/dev/null || { cat said.txt; exit; }
grep -o '^[0-9]* slides for training.*' said.txt
sed -n 's/.*: \([0-9]* x [0-9]* px: stream, [0-9]* x [0-9]* tiles of 64 px\).*/\1/p' said.txt | head -n 1
grep -c 'measured peak' said.txt
head -n 1 whole/scores.csv
tail -n +2 whole/scores.csv | cut -d, -f 1-3
grep -A 4 '"whole"' whole/config.json
grep -c '"peak_bytes"' whole/run.json
echo "--- stopped and killed"
wait_for() { # a checkpoint in the folder
    for _ in $(seq 600); do
        ls "$1"/checkpoints/step-*.safetensors >/dev/null 2>&1 && return
        sleep 0.05
    done
}
for signal in TERM KILL; do
    microtome train $small -o "$signal" -q --threads 1 >/dev/null 2>&1 &
    wait_for "$signal"
    sleep "$(printf '0.%02d' $((RANDOM % 30)))" # anywhere in a slide
    { kill -"$signal" $!; wait $!; } 2>/dev/null # the shell may report the kill before it waits
    echo "exit $?"
    train -o "$signal" -q --resume >/dev/null || exit
    cmp whole/model.safetensors "$signal"/model.safetensors && echo same
done
echo "--- all at once instead of tile by tile"
train -o plain -q --set train.memory=plain --set train.memory_mb=0 --set train.epochs=1 --set schedule.warmup_epochs=0 >/dev/null || exit
train -o tiles -q --set train.epochs=1 --set schedule.warmup_epochs=0 >/dev/null || exit
for run in plain tiles; do cut -d, -f 3,6 $run/metrics.csv; done | tail -n +2 | python3 -c '
import sys
a, b = [[float(cell) for cell in line.split(",")] for line in sys.stdin if "loss" not in line]
print("the same losses" if all(abs(x - y) < 1e-3 * abs(x) for x, y in zip(a, b)) else (a, b))'
echo "--- predicted: the scores that training had"
microtome predict cohort/slides.csv --model whole --mode whole -o maps -q --threads 1 >/dev/null || exit
python3 - <<'P'
import csv, os
scores = {row["name"]: float(row["score"]) for row in csv.DictReader(open("maps/slides.csv"))}
for row in csv.DictReader(open("whole/scores.csv")):
    name = os.path.splitext(os.path.basename(row["sample"]))[0]
    print(name, "same" if abs(scores[name] - float(row["prob_tumor"])) < 1e-4 else (scores[name], row["prob_tumor"]))
P
echo "--- from other weights"
train -o more -q --set network.weights=whole/model.safetensors --set train.epochs=1 >/dev/null && echo started
echo "--- a number instead of a class"
awk -F, 'NR == 1 { print $0 ",area" } NR > 1 { print $0 "," NR * NR }' cohort/slides.csv >cohort/areas.csv
train -o area -q --set objective=regress --set data.label=area --set data.balance=none --set data.slides=cohort/areas.csv --set train.epochs=1 >/dev/null
head -n 1 area/scores.csv; grep -A 1 '"target"' area/config.json | tail -n 1
