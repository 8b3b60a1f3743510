# SIGTERM saves and ends with 75; kill -9 loses at most the steps since the last checkpoint; either
# way --resume ends with the same weights as an uninterrupted run.
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 12 --patch 160 >/dev/null || exit
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5 }
train: { epochs: 6, batch: 4 }
checkpoint: { every_steps: 2 }
Y
microtome train run.yaml -o whole -q --threads 1 >/dev/null || exit
wait_for() { # a checkpoint in the folder
    for _ in $(seq 600); do
        ls "$1"/checkpoints/step-*.safetensors >/dev/null 2>&1 && return
        sleep 0.05
    done
}
microtome train run.yaml -o term -q --threads 1 >/dev/null 2>term.txt &
wait_for term
kill -TERM $!
wait $!
echo "exit $?"
sed 's/[0-9]\+/N/g' term.txt
microtome train run.yaml -o term -q --threads 1 --resume >/dev/null || exit
cmp whole/model.safetensors term/model.safetensors && echo same
microtome train run.yaml -o killed -q --threads 1 >/dev/null 2>&1 &
wait_for killed
sleep "$(printf '0.%02d' $((RANDOM % 20)))" # a random step
{ kill -9 $!; wait $!; } 2>/dev/null # the shell may report the kill before it waits
echo "exit $?"
microtome train run.yaml -o killed -q --threads 1 --resume >/dev/null || exit
cmp whole/model.safetensors killed/model.safetensors && echo same
