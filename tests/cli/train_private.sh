# Private training on phantom patches: what it says, what it writes, the key, the patches that are kept
# out for audits, and what it refuses.
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv
microtome extract -q cohort/slides.csv -o raw --random 12 --patch 144 2>/dev/null >/dev/null || exit
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144, norm: group }
data: { train: raw }
train: { epochs: 2, batch: 4, accumulate: 3 }
privacy: { epsilon: 8, delta: 1e-3, multiplicity: 2, accountant: rdp }
Y
train() { microtome train run.yaml --threads 2 "$@" 2>&1 | sed 's/[0-9.]* s\b/T s/; s/waiting.*//; s/; [0-9.]* patches.*//; s/ in T s.*//'; }
train -o run
ls run
grep -A21 '"privacy"' run/run.json
cut -d, -f1,3-4,13 run/metrics.csv
sed -n '/"privacy"/,/}/p' run/config.json
train -o run
train -o run --resume # finished

echo "--- kept out"
train -q -o held --set privacy.hold_out=0.5 | sed "s/epsilon.*/epsilon/"
head -n 1 held/members.csv
[ $(($(wc -l <held/members.csv) + $(wc -l <held/others.csv))) = 74 ] && echo all are listed
cut -d, -f1 held/members.csv held/others.csv | sort | uniq -d # the header
wc -c <held/hold_out.seed

echo "--- prv needs less noise"
train -o prv --set privacy.accountant=prv | grep sigma

echo "--- only a part is learnt"
train -o tuned --set network.weights=run/model.safetensors --set privacy.tune='[adapters, norms, fc.*]' --set privacy.rank=2 |
    grep -E 'parameters|best'
microtome model run raw -q --model tuned >scores.txt && wc -l <scores.txt
train -o no --set privacy.tune=[adapters]
train -o no --set network.weights=run/model.safetensors --set privacy.tune=[fc.*,gc.*] | tail -n 1

echo "--- a generator"
train -o generator --set objective=generate --set network.name=unet_tiny --set network.input_px=16 --set network.norm=batch \
    --set train.epochs=1 --set generate.condition=class | grep -E 'best|microtome'
grep -E '"(objective|unit|process)"' generator/config.json

echo "--- refused"
train -o no --set network.norm=batch
train -o no --set train.mixup=0.2
train -o no --set data.balance=sampling
train -o no --set data.val=raw
train -o no --set data.folds=2
train -o no --set train.monitor=auc
train -o no --set train.clip=1
train -o no --set schedule.name=plateau
train -o no --set parallel.stages=2
train -o no --set privacy.sigma=0.3
train -o no --set privacy.clip=inf
train -o no --set privacy.multiplicity=5
train -o no --set privacy.public_data=[train]
train -o no --set privacy.epsilon=0 --set privacy.sigma=1
train -o no --set train.batch=100
train -o no --set privacy.unit=patient
train -o no --set objective=regress
ls no 2>&1
