# What must be equal on ranks, with a real mpirun. N ranks x b = 1 rank x N b: to 1e-6 without batch norm;
# with batch norm over all ranks (ranks.sync_bn, on one rank too) the same, near without it on one rank
# (statistics in float), far without it on ranks. The sharded optimizer = the whole one, bit for bit, also
# when a run is resumed the other way; a run is resumed with a different number of ranks.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 2, batch: 6, clip: 1 }
schedule: { learning_rate: 0.005 }
checkpoint: { every_steps: 1, keep: 20 }
Y
train() { microtome train run.yaml -q --threads 1 "$@" 2>err.txt >/dev/null || { sed -n 1,3p err.txt; false; }; }
apart() { # the largest difference of weights in two folders, against a limit
    /usr/bin/python3 - "$@" <<'P'
import sys
import numpy as np
from weights import read
a, b = read(sys.argv[1]), read(sys.argv[2])
most = max(float(np.abs(a[k] - b[k]).max()) for k in a)
sense, limit = sys.argv[3][0], float(sys.argv[3][1:])
ok = most <= limit if sense == "<" else most > limit
print("%s and %s: %s by %s" % (sys.argv[1], sys.argv[2], "apart" if ok else "NOT apart (%g)" % most, sys.argv[3]))
P
}
train -o sgd2 --ranks 2 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }

echo "--- without batch norm"
vit="--set network.name=vit_small_patch16_224 --set network.input_px=32 --set train.epochs=1 --set checkpoint.every_steps=0"
train -o vit1 $vit --set train.batch=18 --set schedule.learning_rate=0.01
train -o vit3 $vit --ranks 3 --set train.batch=6 --set schedule.learning_rate=0.003333333333333333
apart vit1 vit3 "<1e-6"
rm -rf vit1 vit3

echo "--- batch norm over all ranks"
train -o one --set train.epochs=1 --set train.batch=36 --set schedule.learning_rate=0.015 --set ranks.sync_bn=true
train -o floats --set train.epochs=1 --set train.batch=36 --set schedule.learning_rate=0.015
ASAN_OPTIONS=$leaks train -o synced --set train.epochs=1 --set train.batch=12 --ranks 3 --set ranks.sync_bn=true
train -o apart --set train.epochs=1 --set train.batch=12 --ranks 3
apart one synced "<1e-6"
apart floats synced "<1e-4"
apart one apart ">1e-3"

echo "--- the optimizer in parts"
ASAN_OPTIONS=$leaks train -o parts --ranks 2 --set ranks.shard_optimizer=true && same sgd2 parts
for kind in adam lars; do
    train -o $kind --ranks 3 --set optimizer.name=$kind --set train.batch=4
    train -o $kind-parts --ranks 3 --set optimizer.name=$kind --set train.batch=4 --set ranks.shard_optimizer=true &&
        same $kind $kind-parts
done
until_step() { # leaves of a folder's copy what stood there after step $3
    cp -r "$1" "$2"
    rm -f "$2"/*.*
    for file in "$2"/checkpoints/*; do
        number=${file##*-}
        number=$((10#${number%.safetensors}))
        case $file in
        */step-*) [ "$number" -le "$3" ] || rm "$file" ;;
        *) [ "$3" -ge $(((number + 1) * $4)) ] || rm "$file" ;;
        esac
    done
}
until_step adam again 2 3
train -o again --ranks 3 --resume --set optimizer.name=adam --set train.batch=4 --set ranks.shard_optimizer=true && same adam again
until_step adam-parts back 4 3
train -o back --ranks 3 --resume --set optimizer.name=adam --set train.batch=4 && same adam back

echo "--- another number of ranks"
train -o sync2 --ranks 2 --set ranks.sync_bn=true
until_step sync2 fewer 2 3
microtome train run.yaml -q --threads 1 -o fewer --resume --set ranks.sync_bn=true --set train.batch=12 >/dev/null
apart sync2 fewer "<5e-3"
until_step sync2 more 2 3
train -o more --ranks 4 --resume --set ranks.sync_bn=true --set train.batch=3 --set parallel.data=4
apart sync2 more "<5e-3"
ls more/checkpoints | grep -c step
train -o more --resume --set ranks.sync_bn=true --set train.batch=5 --set schedule.learning_rate=0.1
until_step sync2 wider 4 3
microtome train run.yaml --threads 1 -o wider --resume --set ranks.sync_bn=true 2>&1 >/dev/null | grep "^started on"

echo "--- activations computed again"
train -o again2 --ranks 2 --set ranks.sync_bn=true --set train.memory=recompute && same sync2 again2
