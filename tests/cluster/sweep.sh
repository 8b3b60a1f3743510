#!/usr/bin/env bash
# train --sweep --on slurm|sge: every combination is a task of one array. One that reaches its time
# limit saves, is requeued and continues; one that fails stops no other; the last job writes the table
# and names the best by validation. The weights are bitwise those of a sweep on this computer.
port=21700
. "$(dirname "$0")/lib.sh"
export CPUS=2
slurm_up 2
sge_up
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || fail phantom
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 6 --patch 160 >/dev/null || fail extract
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 3, batch: 6, memory: recompute }
checkpoint: { every_steps: 1, keep: 20 }
Y
sweep() { microtome train run.yaml -q --sweep lr=0.01,0.02 --sweep memory_mb=900,1 "$@"; }
sweep -o here --threads 1 >here.txt 2>here.err && fail "1 MB is too little, but the sweep ended well"
ok=lr=0.02,memory_mb=900 bad=lr=0.02,memory_mb=1
# The first task stands still after its first checkpoint until the warning comes, once.
cat >wrap <<'W'
for task; do :; done # the last argument
trap : USR1 # Grid Engine warns every process of the job
if [ "$task" != 1 ] || [ -e "$RESULTS.warned" ]; then exec "$@"; fi
"$@" &
child=$!
until ls "$RESULTS"/lr=0.01,memory_mb=900/checkpoints/step-*.safetensors >/dev/null 2>&1; do sleep 0.02; done
kill -STOP $child
trap 'touch "$RESULTS.warned"; kill -CONT $child; kill -TERM $child' TERM
wait $child
code=$?
while [ $code -gt 128 ] && kill -0 $child 2>/dev/null; do wait $child; code=$?; done
echo $code >"$RESULTS.code"
exit $code
W
site "$here/wrap"
on() { # SCHEDULER TIME
    local out=on_$1
    RESULTS=$here/$out sweep -o "$out" --on "$1" --time "$2" --retries 0 --site site.yaml --wait >"$out.txt" 2>"$out.err" &&
        fail "on $1: a combination failed, but the command ended well"
    [ "$(cat "$out.code")" = 75 ] || fail "no warning before the time limit on $1: code $(cat "$out.code")"
    for name in lr=0.01,memory_mb=900 $ok; do
        cmp "here/$name/model.safetensors" "$out/$name/model.safetensors" || fail "$name differs on $1"
    done
    grep -q "2 of 4 tasks have no result" "$out.err" || fail "$(cat "$out.err")"
    diff <(cut -d, -f1-10 here/sweep.csv) <(cut -d, -f1-10 "$out/sweep.csv") || fail "the tables differ on $1"
    [ "$(readlink here/best)" = "$(readlink "$out/best")" ] || fail "another best on $1"
    grep -q "^best by validation: $(readlink here/best)," "$out.txt" || fail "$(cat "$out.txt")"
    microtome status "$out" >"$out.status"
    grep -q "^$ok  *1  *1 " "$out.status" && grep -q "$bad, failed on .*1 MB are allowed" "$out.status" || fail "$(cat "$out.status")"
}
(on slurm 1m) & # SLURM counts in minutes; both wait at the same time
on_slurm=$!
(on sge 40s) || { kill $on_slurm; exit 1; }
wait $on_slurm || exit 1
# Ranks: every element of the array is a job of two processes.
if command -v mpirun >/dev/null && microtome train run.yaml -q -o ranks --sweep lr=0.01,0.02 --ranks 2 --threads 1 >ranks.txt 2>ranks.err; then
    microtome train run.yaml -q -o ranks_slurm --sweep lr=0.01,0.02 --ranks 2 --on slurm --wait >/dev/null 2>&1 || fail "ranks on slurm"
    cmp ranks/lr=0.02/model.safetensors ranks_slurm/lr=0.02/model.safetensors || fail "ranks: the weights differ"
else
    grep -q 'no MPI' ranks.err || ! command -v mpirun >/dev/null || fail "$(cat ranks.err)"
fi
echo ok
