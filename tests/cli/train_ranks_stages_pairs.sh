# A network in stages over ranks, two-way schedules (GEMS): even and odd micro-batches are summed apart, as two data
# replicas do: after 20 steps what is learnt is theirs bit for bit, and that of one process to rounding. Running
# statistics are those of one process to rounding, not the mean of both directions (the control). One set of activations
# on every rank. Replicas of pipelines (GEMS-Hybrid), also with batch norm over replicas: those of plain replicas.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/stages.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 5, batch: 2, accumulate: 4, clip: 0.05, monitor: last }
schedule: { learning_rate: 0.002 }
ranks: { scale_rate: false }
Y
apart() { # A B: what was learnt, against the rounding between the folders one and halves; and running statistics
    /usr/bin/python3 - "$@" <<'P'
import sys
import numpy as np
from weights import read
one, halves, start = (read(folder) for folder in ("one", "halves", "start"))
a, b = read(sys.argv[1]), read(sys.argv[2])
def away(x, y, statistics):
    return np.sqrt(sum(float(np.square(x[k] - y[k]).sum()) for k in x if ("running" in k) == statistics))
learnt, statistics = away(a, b, False), away(a, b, True) / away(a, start, True)
print("%s and %s: learnt %s, statistics %s" % (sys.argv[1], sys.argv[2],
      "the same" if learnt == 0 else "within ten roundings" if learnt <= 10 * away(one, halves, False) else "APART",
      "the same" if statistics == 0 else "to rounding" if statistics < 1e-4 else "apart"))
P
}
train -o one && train -o start --set schedule.learning_rate=1e-12 --set train.epochs=1 || exit
train -o halves --ranks 2 --set train.accumulate=2 || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
staged master2 2 master && apart halves master2 && apart one master2
staged master3 3 master --set parallel.times=2 && apart one master3
cut='[layer2.0.conv1,layer2.0.conv2,layer3.0.conv2]' # for memory: cuts that are measured differ from run to run
ASAN_OPTIONS=$leaks staged master4 4 master --set parallel.times=2 --set parallel.cut="$cut" && apart halves master4
memory master4
train -o pair --set parallel.micro_batch=4
staged mast 2 mast --set parallel.cut='[layer2.0.conv2]' && apart pair mast
memory mast

echo "--- replicas of pipelines"
train -o data --ranks 2 --set train.epochs=2
staged both 2 zb-h1 --ranks 4 --set train.epochs=2 && same data both
train -o sync --ranks 2 --set train.epochs=2 --set ranks.sync_bn=true
staged both_sync 2 1f1b --ranks 4 --set train.epochs=2 --set ranks.sync_bn=true && same sync both_sync
staged hybrid 2 master --ranks 4 --set train.epochs=2 --set ranks.sync_bn=true && apart sync hybrid
