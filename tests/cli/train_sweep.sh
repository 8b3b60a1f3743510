# Sweeps: every combination is the training that --set gives; the same command again keeps what is
# complete and continues the rest; a failure stops no other; the best is chosen by validation.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 6 --patch 160 >/dev/null || exit
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 2, batch: 6 }
Y
train() { microtome train run.yaml -q --threads 1 "$@"; }
rows() { tail -n +2 "$1/sweep.csv" | sed 's/\(left\|stopped\|done\|failed\),.*/\1/'; } # name, values, state
numbers() { sed -E 's/(done +)[0-9]+ +/\1E /; s/[0-9]\.[0-9]{4,}/N/g; s/ +[0-9.]+$//; s/(best by validation): [^ ]+/\1: NAME/'; }

echo "--- two keys"
train -o two --sweep lr=0.01,0.1 --sweep optimizer.name=sgd,adam | numbers
rows two
head -n 1 two/sweep.csv
ls two
train -o alone --set schedule.learning_rate=0.1 --set optimizer.name=adam >/dev/null
cmp alone/model.safetensors two/lr=0.1,optimizer.name=adam/model.safetensors && echo "the same as alone"
[ two/best -ef "two/$(python3 -c 'import json; print(json.load(open("two/sweep.json"))["best"]["name"])')" ] && echo "the link is right"
microtome model show -m two/best >/dev/null && echo "the best is a model"
microtome status two | numbers | sort
microtome report -q two -o page | grep -o 'trained models: 1'
grep -c '<td>.*lr=0' page/index.html

echo "--- again: kept"
touch before && sleep 0.01
microtome train run.yaml --threads 1 -o two --sweep lr=0.01,0.1 --sweep optimizer.name=sgd,adam 2>&1 >/dev/null
[ "two/lr=0.01,optimizer.name=sgd/model.safetensors" -nt before ] || echo "not trained again"
train -o two --sweep lr=0.01,0.1 --sweep optimizer.name=sgd,adam --json | python3 -c 'import json, sys; s = json.load(sys.stdin); print(s["measure"], s["better"], len(s["combinations"]), s["combinations"][1]["settings"])'
train -o two --sweep lr=0.01,0.1 --sweep optimizer.name=sgd,adam --set train.epochs=3
train -o two --sweep lr=0.01,0.1 --sweep optimizer.name=sgd,adam --overwrite >/dev/null
[ "two/lr=0.01,optimizer.name=sgd/model.safetensors" -nt before ] && echo "trained again"

echo "--- the best is not that of the test"
result() { echo "{\"best_epoch\": 1, \"epochs\": 2, \"seconds\": 1, \"val\": {\"loss\": $2, \"auc\": $3}, \"test\": {\"auc\": $4}}" >"two/$1/result.json"; }
result lr=0.01,optimizer.name=sgd 0.5 0.80 0.70
result lr=0.01,optimizer.name=adam 0.4 0.85 0.60
result lr=0.1,optimizer.name=sgd 0.3 0.81 0.99
result lr=0.1,optimizer.name=adam 0.6 0.85 0.90
train -o two --sweep lr=0.01,0.1 --sweep optimizer.name=sgd,adam
readlink two/best
cut -d, -f1,2,5- two/sweep.csv

echo "--- one fails"
train -o some --set train.memory=recompute --sweep memory_mb=900,1,1000 >some.txt
echo "exit $?"
numbers <some.txt
rows some
microtome status some | grep '^memory_mb=1:\|except' | numbers

echo "--- a sweep and a training are not in one folder"
train -o some
train -o some --resume
train -o alone --sweep lr=0.01

echo "--- no validation data"
train -o none --sweep lr=0.01,0.1 --set data.split=attribute | numbers
ls none

echo "--- another objective, by its own measure"
microtome extract -q cohort/slides.csv -o covered --random 6 --patch 144 --label-rule any --target coverage:tumor >/dev/null || exit
train -o regress --set objective=regress --set data.train=covered --sweep lr=0.001,0.002 | grep -o 'val r2\|, r2'
train -o regress --set objective=regress --set train.monitor=loss --sweep train.loss=mse,huber

echo "--- stopped, and killed"
sed -i 's/epochs: 2/epochs: 10/' run.yaml
train -o whole --sweep lr=0.01,0.02 >/dev/null || exit
wait_for() { for _ in $(seq 600); do [ -e "$1" ] && break; sleep 0.02; done; }
microtome train run.yaml -q --threads 1 -o cut --sweep lr=0.01,0.02 >/dev/null 2>cut.txt &
wait_for cut/lr=0.01/metrics.csv
kill -TERM $!
wait $!
echo "exit $?"
cat cut.txt
rows cut
microtome train run.yaml -q --threads 1 -o cut --sweep lr=0.01,0.02 >/dev/null 2>&1 &
wait_for cut/lr=0.02/metrics.csv
{ kill -9 $!; wait $!; } 2>/dev/null
microtome status cut | grep -c 'stopped; 1 of 2 combinations are done'
train -o cut --sweep lr=0.01,0.02 >/dev/null || exit
cmp whole/lr=0.01/model.safetensors cut/lr=0.01/model.safetensors && cmp whole/lr=0.02/model.safetensors cut/lr=0.02/model.safetensors && echo "as if nothing had happened"
rows cut
