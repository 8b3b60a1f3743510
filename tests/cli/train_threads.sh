# The same weights, scores and metrics, bit for bit, on 1, 2 and 3 threads; also with recomputation.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 8 --patch 72 >/dev/null || exit
cat >run.yaml <<'Y'
network: { name: resnet18, input_px: 64 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 1, batch: 4, clip: 1, ema: 0.9 }
schedule: { learning_rate: 0.005 }
Y
train() { microtome train run.yaml -q "$@" >/dev/null || exit; }
same() { cmp "$1/model.safetensors" "$2/model.safetensors" && cmp "$1/scores.csv" "$2/scores.csv" && echo "$1 = $2"; }
train --threads 1 -o one
train --threads 2 -o two
train --threads 3 -o three
train --threads 3 -o recomputed --set train.memory=recompute
same one two
same one three
same one recomputed
