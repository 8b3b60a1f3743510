# Networks in stages with all that a training can have: checkpoints hold the whole network, its optimizer and average, so
# a run goes on with other stages or none, bit for bit; stopped or killed, it is resumed on the same stages with the
# same cut. A rank that fails ends all with one message.
. "$(dirname "$0")/support/stages.sh"
root=
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1, balance: weights }
train: { epochs: 3, batch: 2, accumulate: 4, clip: 1, ema: 0.9, mixup: 0.2, smoothing: 0.1, on_nan: skip }
optimizer: { name: adamw }
schedule: { learning_rate: 0.001 }
ranks: { scale_rate: false }
checkpoint: { every_steps: 1, keep: 50 }
Y
back_to() { # FOLDER STEP: as if it had been killed after this step
    rm -f "$1"/*.*
    for file in "$1"/checkpoints/*; do
        number=${file##*-}
        number=$((10#${number%.safetensors}))
        case $file in
        */step-*) [ "$number" -le "$2" ] || rm "$file" ;;
        *) [ "$2" -ge $(((number + 1) * 4)) ] || rm "$file" ;;
        esac
    done
}
train -o one || exit
staged whole 3 zb-h1 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
same one whole
cp -r whole moved
back_to moved 2
train -o moved --resume && same one moved
back_to moved 6
staged moved 2 1f1b --resume --set parallel.recompute=false && same one moved
back_to moved 5
staged moved 4 basic --resume && same one moved

echo "--- another optimizer, frozen norm"
lars="--set optimizer.name=lars --set network.norm=frozen --set train.epochs=1 --set train.mixup=0"
train -o lars $lars
staged lars3 3 gpipe $lars && same lars lars3
train -o lars_data --ranks 2 $lars --set train.accumulate=2
staged lars_master 2 master $lars && same lars_data lars_master

echo "--- stopped"
rank_of() { # FOLDER NUMBER: the process id of a rank, once it is there
    for _ in $(seq 300); do
        for pid in $(pgrep -f "train run.yaml .*-o $1( |\$)"); do
            [ "/proc/$pid/cwd" -ef . ] && tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" &&
                echo "$pid" && return
        done
        sleep 0.1
    done
}
wait_for() {
    for _ in $(seq 1200); do
        ls "$1"/checkpoints/step-*.safetensors >/dev/null 2>&1 && return
        sleep 0.02
    done
}
microtome train run.yaml -q --threads 1 -o whole2 --ranks 2 --set parallel.stages=2 --set parallel.schedule=master >/dev/null 2>&1
microtome train run.yaml -q --threads 1 -o term --ranks 2 --set parallel.stages=2 --set parallel.schedule=master >/dev/null 2>err.txt &
rank=$(rank_of term 1)
wait_for term
kill -TERM "$rank"
wait $!
echo "exit $?"
sed 's/[0-9]\+/N/g' err.txt
cut=$(grep '^  cut:' term/config.yaml)
staged term 2 master --resume && same whole2 term
[ "$cut" = "$(grep '^  cut:' term/config.yaml)" ] && echo "the same cut"

echo "--- killed"
microtome train run.yaml -q --threads 1 -o killed --ranks 2 --set parallel.stages=2 --set parallel.schedule=master >/dev/null 2>err.txt &
rank=$(rank_of killed 1)
wait_for killed
kill -9 "$rank"
began=$(date +%s)
wait $!
echo "exit $?"
[ $(($(date +%s) - began)) -lt 20 ] || echo "the others took too long to end"
grep '^microtome' err.txt
staged killed 2 master --resume && same whole2 killed

echo "--- a store that breaks on one rank"
mkdir apart
cp run.yaml apart
cp -r stores apart/stores
for store in apart/stores/*.h5; do truncate -s $(($(stat -c %s "$store") * 6 / 10)) "$store"; done
one="-n 1 microtome train run.yaml -q --threads 1 -o $PWD/broken --set parallel.stages=2"
timeout 60 mpirun $root --oversubscribe --bind-to none $one : -wdir apart $one 2>&1 >/dev/null | sed -n 's/ ([^)]*)//g; /^microtome/p'
