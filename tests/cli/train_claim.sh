# A training owns its folder: a second one is rejected and names the owner; `cancel` ends the running
# one, which saves. Commands that write stay out of a folder that jobs may be using.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i "s/,test$/,train/" cohort/slides.csv # two patients: one to validate on
microtome extract -q cohort/slides.csv -o stores --random 4 --patch 160 >/dev/null || exit
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5 }
train: { epochs: 1000, batch: 4 }
Y
microtome train run.yaml -o run -q --threads 1 >/dev/null 2>first.txt &
first=$!
for _ in $(seq 600); do [ -e run/metrics.csv ] && break; sleep 0.05; done
named() { sed "s/process $first\b/process FIRST/; s/ on [^ ,]*, since [^)]*/ on HOST, since TIME/; s/ on [^ ]* has the folder.*/ has it/"; }
echo "== a second one"
microtome train run.yaml -o run -q --threads 1 --overwrite 2>&1 | named
microtome status run | grep -c "^process $first on"
kill -0 $first && echo "the first one continues"
echo "== cancel"
microtome cancel run | named
wait $first
echo "exit $?"
sed 's/[0-9]\+/N/g' first.txt
ls -A run | grep lock
echo "== jobs"
mkdir -p jobs/tasks
echo '{"scheduler": "slurm", "name": "mt00000000", "number": 1, "tasks": 1, "jobs": 1, "arrays": 1, "time_s": 0, "at": 1}' >jobs/tasks/submission.json
none=$PWD/none; mkdir none; ln -s "$(command -v microtome)" none/microtome # no scheduler here
PATH=$none microtome train run.yaml -q -o jobs
PATH=$none microtome tissue -q cohort/slides -o jobs
PATH=$none microtome extract -q cohort/slides --dense -o jobs
PATH=$none microtome phantom -q --slides 1 -o jobs
ls jobs
