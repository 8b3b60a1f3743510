#!/usr/bin/env bash
# A task that is killed, one that exits with 1, one whose whole job is killed, a node that crashes in
# mid-task and comes back; then the submitting process killed between two submissions. The rest goes
# on, what is missing is stated, and the same command again makes it complete: nothing twice,
# nothing lost, the same bytes.
port=21200
export NODE_TIMEOUT=5
. "$(dirname "$0")/lib.sh"
slurm_up 3
links 8
cat >wrap <<'W'
for task; do :; done # the last argument
[ "$task" = --finish ] && exec "$@"
echo "$task" | tee -a "$HERE/began" >>"$HERE/tries"
tries=$(grep -cx "$task" "$HERE/tries")
case $task.$tries in
1.1) "$@" & kill -9 $!; wait $!; exit $? ;;
2.*) [ -e "$HERE/repaired" ] || exit 1 ;;
3.1) kill -9 $PPID; exit 1 ;;
4.1) echo "$SLURMD_NODENAME" >"$HERE/node"; sleep 600 ;;
esac
"$@"
W
export HERE=$here
site "$here/wrap"
extract() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome extract -q slides -o "$folder" --random 3 --patch 32 --tissue-fraction 0 --white 1 \
        --label-rule none "$@"
}
extract one >/dev/null || fail "the local run"
extract hurt --on slurm --site site.yaml --wait >hurt.txt 2>hurt.err &
submitted=$!
for _ in $(seq 300); do [ -s node ] && break; sleep 0.1; done
DIR=$here/slurm "$tests/slurm" crash "$(cat node)"
for _ in $(seq 100); do sinfo -h -N -n "$(cat node)" -t down | grep -q . && break; sleep 0.5; done
DIR=$here/slurm "$tests/slurm" start "$(cat node)"
wait $submitted && fail "the last job saw nothing missing"
grep -q '2 of 8 tasks have no result' hurt.err || fail "$(cat hurt.err)"
grep -q 'task 3, s3: did not begin' hurt.err || fail "$(cat hurt.err)"
[ "$(ls hurt/*.h5 | wc -l)" = 6 ] || fail "$(ls hurt)"
[ "$(grep -cx 4 began)" = 2 ] || fail "the task of the lost node ran $(grep -cx 4 began) times"
microtome status hurt | grep -q 'the same command again\|2 of 8' || fail "$(microtome status hurt)"
touch repaired
: >began
extract hurt --on slurm --site site.yaml --wait >again.txt || fail "the second run"
[ "$(sort began | xargs)" = "2 3" ] || fail "the second run did tasks $(sort began | xargs)"
same one hurt
[ -z "$(ls hurt/tasks/work)" ] || fail "left in tasks/work: $(ls hurt/tasks/work)"

# The submitting process is killed after the array, before the last job.
real=$(command -v sbatch)
cat >bin/sbatch <<W
#!/bin/bash
case "\$*" in *last-*) touch $here/between; sleep 100 ;; esac
exec $real "\$@"
W
chmod +x bin/sbatch
setsid microtome extract -q slides -o cut --random 3 --patch 32 --tissue-fraction 0 --white 1 --label-rule none \
    --on slurm >/dev/null 2>&1 &
for _ in $(seq 100); do [ -e between ] && break; sleep 0.1; done
kill -9 -- "-$(ps -o pgid= $! | tr -d ' ')"
wait $! 2>/dev/null
rm bin/sbatch
for _ in $(seq 100); do [ -z "$(squeue -h)" ] && break; sleep 0.2; done
extract cut --on slurm --wait >/dev/null || fail "the run after the killed one"
same one cut
echo ok
