# The audit of generators, of every process: attacks, controls, copies; the same for any number of threads.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 2 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 20 --patch 16 --label-rule any >/dev/null || exit
cat >gen.yaml <<'Y'
objective: generate
network: { name: unet_tiny, input_px: 16 }
data: { train: stores, val_fraction: 0.25 }
train: { epochs: 1, batch: 8, ema: 0.9 }
optimizer: { name: adam }
Y
for process in flow edm epsilon v; do
    microtome synthesize train gen.yaml -o $process -q --set generate.process=$process --set privacy.hold_out=0.5 >/dev/null || exit
    microtome synthesize audit --model $process -o audit_$process -q --json --generated 16 >$process.json || exit
    echo "$process: $(grep -c '"auc": [01]\.\?[0-9e.-]*,' $process.json) areas, $(grep -c null $process.json) without a value"
done
sed -n 's/^ *"name": "\(.*\)",/\1/p; s/^ *"\(samples\|planted_duplicates_noticed\)"/\1/p' flow.json | sed 's/"low.*//'
grep -o '<h2>[^<]*' audit_flow/audit.html
echo "--- threads"
microtome synthesize audit --model flow -o one -q --generated 4 --threads 1 --samples 24 >/dev/null
microtome synthesize audit --model flow -o two -q --generated 4 --threads 2 --samples 24 >/dev/null
cmp one/audit.json two/audit.json && cmp one/scores.csv two/scores.csv && echo "the same"
echo "--- a reference, and one of another kind"
microtome synthesize audit --model flow --reference edm -o three -q --generated 0 --samples 24 | cut -c1-40 | sed '1,2d'
cat >net.yaml <<'Y'
network: { name: resnet18, input_px: 16 }
data: { train: stores, val_fraction: 0.25 }
train: { epochs: 1, batch: 16 }
Y
microtome train net.yaml -o net -q >/dev/null || exit
microtome synthesize audit --model flow --reference net -o bad -q
microtome synthesize audit --model net --members stores --others stores -o bad -q 2>&1 | sed "s/.*patch /patch /"
