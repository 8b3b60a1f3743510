# NUMA: on a machine that hwloc makes up, doctor shows the nodes, --dry-run what each rank would get, and a
# training what it did; binding changes no result. With one node nothing is bound and nothing is said. Processors that
# the launcher chose stay.
. "$(dirname "$0")/support/ranks.sh"
export HWLOC_SYNTHETIC="numa:2 core:4 pu:2"
look() { microtome doctor | grep -A 1 ' NUMA '; }
look
HWLOC_SYNTHETIC="numa:1 core:4 pu:2" look
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5, workers: 1 }
train: { epochs: 1, batch: 6 }
Y
plan() {
    echo "--- --dry-run $*"
    microtome train run.yaml --dry-run --threads 2 "$@" 2>&1
    echo "exit $?"
}
plan
plan --ranks 4
plan --ranks 3
plan --ranks 2 --set ranks.bind=none
HWLOC_SYNTHETIC="numa:1 core:4 pu:2" plan --ranks 2
plan --ranks 66 | tail -n 3
plan --ranks 2 --set parallel.data=3
plan --ranks 2 --set parallel.heads=2
plan --ranks 2 --set ranks.bind=cores
plan --ranks 2 --wait

echo "--- training"
train() { microtome train run.yaml --threads 1 --ranks 2 "$@" 2>err.txt >/dev/null || { cat err.txt; grep -q 'no MPI' err.txt && exit 77; exit 1; }; }
told() { grep NUMA err.txt || echo "nothing about NUMA"; }
train -o bound
told
train -o free --set ranks.bind=none
told
same bound free
HWLOC_SYNTHETIC="numa:1 core:4 pu:2" train -o one
told
same bound one

echo "--- bound by the launcher"
taskset -c 1 true 2>/dev/null || { echo "one processor" >&2; exit 77; }
root=
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
rank='microtome train run.yaml --threads 1 -o launched'
HWLOC_THISSYSTEM=1 HWLOC_SYNTHETIC="numa:2 core:1 pu:1" mpirun $root --oversubscribe --bind-to none \
    --mca mpi_yield_when_idle 1 -n 1 taskset -c 0 $rank : -n 1 taskset -c 1 $rank 2>err.txt >/dev/null
told
same bound launched
