#!/usr/bin/env bash
# train --on slurm --ranks 2: comes to its time limit, saves, goes back into the queue, goes on and
# ends: the weights are those of a run that was never stopped, bit for bit.
port=21500
. "$(dirname "$0")/lib.sh"
command -v mpirun >/dev/null || skip "no mpirun"
export CPUS=2
slurm_up 2
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || fail phantom
microtome extract -q cohort/slides.csv -o stores --random 12 --patch 160 >/dev/null || fail extract
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 3, batch: 6 }
checkpoint: { every_steps: 1, keep: 20 }
Y
microtome train run.yaml -q -o whole --ranks 2 --threads 1 >/dev/null 2>whole.err || {
    grep -q 'no MPI' whole.err && skip "built without MPI"
    fail "$(cat whole.err)"
}
# The first time the ranks stand still after the first checkpoint, until the warning comes.
cat >wrap <<'W'
case "$*" in *--finish) exec "$@" ;; esac
[ -z "${SLURM_RESTART_COUNT:-}" ] || exec "$@"
"$@" &
child=$!
until ls "$HERE"/cut/checkpoints/step-*.safetensors >/dev/null 2>&1; do sleep 0.02; done
for pid in $(pgrep -f 'train run.yaml'); do # mpirun starts them by srun: they are not its children
    tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^OMPI_COMM_WORLD_RANK=' && ranks="${ranks:-} $pid"
done
kill -STOP $ranks
trap 'touch "$HERE/warned"; kill -CONT $ranks; kill -TERM $child' TERM
wait $child
code=$?
while [ $code -gt 128 ] && kill -0 $child 2>/dev/null; do wait $child; code=$?; done
echo $code >"$HERE/code"
exit $code
W
export HERE=$here
site "$here/wrap"
microtome train run.yaml -q -o cut --ranks 2 --on slurm --time 1m --site site.yaml --wait >cut.txt 2>cut.err ||
    fail "$(cat cut.err)"
[ -e warned ] && [ "$(cat code)" = 75 ] || fail "no warning before the time limit: code $(cat code)"
cmp whole/model.safetensors cut/model.safetensors || fail "the weights differ"
cmp whole/scores.csv cut/scores.csv || fail "the scores differ"
grep -q 'model.safetensors' cut.txt || fail "$(cat cut.txt)"
microtome status cut | grep -q 'all results are put together' || fail "$(microtome status cut)"
echo ok
