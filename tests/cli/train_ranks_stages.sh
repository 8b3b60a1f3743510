# A network in stages over ranks (parallel.stages): after 20 steps the weights of one process with as many
# micro-batches in a step, bit for bit in one-way schedules. In two-way schedules even and odd micro-batches are
# summed apart, as two data replicas do: what is learnt is theirs, and running statistics are those of one process to
# rounding, not the mean of both (the control). Skips cross cuts; stages are named or measured. Memory as promised: one
# set of activations on a rank in mast and master, and in 1f1b with recomputation one set and inputs.
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "no numpy" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 5, batch: 2, accumulate: 4, clip: 0.05, monitor: last }
schedule: { learning_rate: 0.002 }
ranks: { scale_rate: false }
Y
train() { microtome train run.yaml -q --threads 1 "$@" 2>err.txt >/dev/null || { sed -n 1,3p err.txt; false; }; }
staged() { # FOLDER STAGES SCHEDULE ..
    folder=$1 stages=$2 schedule=$3
    shift 3
    train -o "$folder" --ranks "$stages" --set parallel.stages="$stages" --set parallel.schedule="$schedule" "$@"
}
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
memory() { # FOLDER: sets of each rank, and inputs in micro-batches of its largest stage; predicted to a fifth
    /usr/bin/python3 - "$1" <<'P'
import json, sys
pipeline = json.load(open(sys.argv[1] + "/run.json"))["pipeline"]
for rank in pipeline["ranks"]:
    inputs = max(pipeline["stages"][stage - 1]["input_bytes"] for stage in rank["stages"])
    near = abs(rank["peak_bytes"] / rank["predicted_bytes"] - 1) < 0.2
    print("%s: rank %d: stages %s, %d set%s, inputs of %g%s" % (sys.argv[1], rank["rank"], rank["stages"], rank["sets"],
          "" if rank["sets"] == 1 else "s", rank["input_bytes"] / inputs,
          "" if near else ", NOT as predicted: %d, %d" % (rank["peak_bytes"], rank["predicted_bytes"])))
P
}
train -o one && train -o start --set schedule.learning_rate=1e-12 --set train.epochs=1 || exit
ASAN_OPTIONS=$leaks staged 1f1b 4 1f1b || { grep -q 'no MPI' err.txt && exit 77; exit 1; }
same one 1f1b
grep -c '^  cut: \[[^]]*,[^]]*,[^]]*\]' 1f1b/config.yaml
staged basic 2 basic --set parallel.cut='[layer2.0.conv1]' && same one basic
staged gpipe 3 gpipe --set parallel.cut='[stem,layer3.0.conv2]' && same one gpipe
staged zb-h1 3 zb-h1 && same one zb-h1

echo "--- two ways"
train -o halves --ranks 2 --set train.accumulate=2
staged master2 2 master && apart halves master2 && apart one master2
staged master3 3 master --set parallel.times=2 && apart one master3
ASAN_OPTIONS=$leaks staged master4 4 master --set parallel.times=2 && apart halves master4
train -o pair --set parallel.micro_batch=4
staged mast 2 mast && apart pair mast

echo "--- replicas of pipelines"
train -o data --ranks 2 --set train.epochs=2
staged both 2 zb-h1 --ranks 4 --set train.epochs=2 && same data both
train -o sync --ranks 2 --set train.epochs=2 --set ranks.sync_bn=true
staged both_sync 2 1f1b --ranks 4 --set train.epochs=2 --set ranks.sync_bn=true && same sync both_sync
staged hybrid 2 master --ranks 4 --set train.epochs=2 --set ranks.sync_bn=true && apart sync hybrid

echo "--- memory"
memory 1f1b
memory gpipe
memory master4
memory mast
