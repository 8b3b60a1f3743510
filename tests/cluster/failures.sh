#!/usr/bin/env bash
# A task that is killed, one that exits with 1, one whose whole job is killed, a node that crashes in
# mid-task and comes back; then the submitting process killed between two submissions. The rest
# continues, what is missing is reported, and the same command again completes it: nothing twice,
# nothing lost, the same bytes.
port=21200
export NODE_TIMEOUT=5
. "$(dirname "$0")/lib.sh"
slurm_up 3
links 8
failing_site '4.1) echo "$SLURMD_NODENAME" >"$HERE/node"; sleep 600 ;;'
extract one >/dev/null || fail "the local run"
extract hurt --on slurm --site site.yaml --wait >hurt.txt 2>hurt.err &
submitted=$!
for _ in $(seq 300); do [ -s node ] && break; sleep 0.1; done
DIR=$here/slurm "$tests/slurm" crash "$(cat node)"
for _ in $(seq 100); do sinfo -h -N -n "$(cat node)" -t down | grep -q . && break; sleep 0.5; done
DIR=$here/slurm "$tests/slurm" start "$(cat node)"
wait $submitted && fail "the last job saw nothing missing"
[ "$(grep -cx 4 began)" = 2 ] || fail "the task of the lost node ran $(grep -cx 4 began) times"
missing_then_whole slurm 8

# The submitting process is killed after the array, before the last job.
real=$(command -v sbatch)
cat >bin/sbatch <<W
#!/bin/bash
case "\$*" in *last-*) touch $here/between; sleep 100 ;; esac
exec $real "\$@"
W
chmod +x bin/sbatch
set -m # a process group of its own
extract cut --on slurm >/dev/null 2>&1 &
set +m
for _ in $(seq 100); do [ -e between ] && break; sleep 0.1; done
kill -9 -- "-$!"
wait $! 2>/dev/null
rm bin/sbatch
for _ in $(seq 100); do [ -z "$(squeue -h)" ] && break; sleep 0.2; done
extract cut --on slurm --wait >/dev/null || fail "the run after the killed one"
same one cut
echo ok
