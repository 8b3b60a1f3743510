#!/usr/bin/env bash
# train --on slurm|sge --ranks 2: reaches its time limit, saves, is requeued, continues and
# ends: the weights are bitwise those of an uninterrupted run. A pipeline on four ranks in a SLURM job: those of one process.
port=21500
. "$(dirname "$0")/lib.sh"
command -v mpirun >/dev/null || skip "no mpirun"
export CPUS=2
slurm_up 2
sge_up
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || fail phantom
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
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
trap : USR1 # Grid Engine warns every process of the job
[ "${SLURM_RESTART_COUNT:-${RESTARTED:-0}}" = 0 ] || exec "$@"
"$@" &
child=$!
until ls "$RESULTS"/checkpoints/step-*.safetensors >/dev/null 2>&1; do sleep 0.02; done
for pid in $(pgrep -f 'train run.yaml'); do # mpirun starts them by srun: they are not its children
    tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^OMPI_COMM_WORLD_RANK=' && ranks="${ranks:-} $pid"
done
kill -STOP $ranks
trap 'touch "$RESULTS.warned"; kill -CONT $ranks; kill -TERM $child' TERM
wait $child
code=$?
while [ $code -gt 128 ] && kill -0 $child 2>/dev/null; do wait $child; code=$?; done
echo $code >"$RESULTS.code"
exit $code
W
site "$here/wrap"
echo 'mpi_environment: smp' >>site.yaml
goes_on() { # SCHEDULER TIME
    local cut=cut_$1
    RESULTS=$here/$cut microtome train run.yaml -q -o "$cut" --ranks 2 --on "$1" --time "$2" --site site.yaml --wait \
        >"$cut.txt" 2>"$cut.err" || fail "on $1: $(cat "$cut.err")"
    [ -e "$cut.warned" ] && [ "$(cat "$cut.code")" = 75 ] || fail "no warning before the time limit on $1: code $(cat "$cut.code")"
    cmp whole/model.safetensors "$cut/model.safetensors" || fail "the weights differ on $1"
    cmp whole/scores.csv "$cut/scores.csv" || fail "the scores differ on $1"
    grep -q 'model.safetensors' "$cut.txt" || fail "$(cat "$cut.txt")"
    microtome status "$cut" | grep -q 'all results are merged' || fail "$(microtome status "$cut")"
}
(goes_on slurm 1m) & # SLURM counts in minutes; both wait at the same time
on_slurm=$!
(goes_on sge 60s) || { kill $on_slurm; exit 1; }
wait $on_slurm || exit 1
microtome train run.yaml -q -o one --threads 1 --set train.batch=2 --set train.accumulate=4 >/dev/null || fail "one process"
# Nodes share the machine's name but not its process numbers: shared memory between them does not work.
OMPI_MCA_btl=self,tcp microtome train run.yaml -q -o stages --ranks 4 --set train.batch=2 --set train.accumulate=4 \
    --set parallel.stages=4 --on slurm --time 5m --wait >stages.txt 2>stages.err || fail "stages: $(cat stages.err)"
cmp one/model.safetensors stages/model.safetensors || fail "the weights of four stages differ"
cmp one/scores.csv stages/scores.csv || fail "the scores of four stages differ"
generate="--set objective=generate --set network.name=unet_tiny --set network.input_px=32 --set train.epochs=1"
# shellcheck disable=SC2086
microtome synthesize train run.yaml -q -o gen --ranks 2 --threads 1 $generate >/dev/null || fail "a generator"
# shellcheck disable=SC2086
OMPI_MCA_btl=self,tcp microtome synthesize train run.yaml -q -o gen-slurm --ranks 2 $generate --on slurm --time 5m --wait \
    >gen.txt 2>gen.err || fail "a generator on slurm: $(cat gen.err)"
cmp gen/model.safetensors gen-slurm/model.safetensors || fail "the weights of generators differ"
echo ok
