#!/usr/bin/env bash
# Requests that cannot work are rejected at once, with the remedy: wrong partition or queue, more memory or
# processors than any node has, no scheduler, nodes that do not see the results.
port=21400
export NODE_TIMEOUT=5
. "$(dirname "$0")/lib.sh"
links 2
refused() { # TEXT OPTIONS...
    local text=$1
    shift
    PATH=${ONLY:-$PATH} microtome extract -q slides -o out --dense "$@" >said 2>&1 && fail "taken: $*"
    grep -q -- "$text" said || fail "$* says: $(cat said)"
}
ONLY=$here/bin refused "scontrol not found" --on slurm
ONLY=$here/bin refused "qconf not found" --on sge
refused "need --on slurm" --wait
refused "is not a time" --on slurm --time soon
slurm_up 1
sge_up
printf 'modules: [gcc]\nmodule: x\n' >bad.yaml
refused "bad.yaml:2: no key 'module'; did you mean modules" --on slurm --site bad.yaml
refused "no 'nope' here; available: p" --on slurm --partition nope
refused "no node of the cluster has 50000 MB" --on slurm --memory 50000
refused "are held in an error state" --on slurm --cpus 64 --wait
microtome cancel out >/dev/null
refused "no 'nope' here; available: all.q" --on sge --queue nope
refused "request less with --memory" --on sge --memory 50000000
refused "parallel environment" --on sge --cpus 2 --site <(echo 'parallel_environment: nope')
mkdir "a'b"
microtome extract -q slides -o "a'b" --dense --on slurm 2>said && fail "a quote in the folder's name"
grep -q "plainer name" said || fail "$(cat said)"
[ -z "$(squeue -h)$(qstat)" ] || fail "refused jobs are in the queue"

# Nodes that do not see the folder.
DIR=$here/slurm "$tests/slurm" crash n1
mkdir hidden
for _ in $(seq 100); do sinfo -h -t down | grep -q . && break; sleep 0.5; done
HIDE=$here/hidden DIR=$here/slurm "$tests/slurm" start n1
for _ in $(seq 100); do sinfo -h -t idle | grep -q . && break; sleep 0.5; done
microtome extract -q slides -o hidden/out --dense --on slurm --wait 2>said && fail "results on a disk that nodes do not see"
grep -q "file system shared by all nodes" said || fail "$(cat said)"
echo ok
