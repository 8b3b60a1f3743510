# Connections between ranks: figures that make sense, as columns and as JSON, and what is refused.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
microtome doctor --mpi --ranks 2 --largest 300000 >text 2>err.txt
code=$?
grep -q 'no MPI' err.txt && { echo "built without MPI" >&2; exit 77; }
cat err.txt >&2
echo "exit $code"
grep '^#' text | sed "s/$(hostname)/HOST/g"
[ "$(grep -c "^[0-9]" text)" -ge 14 ] || cat text
sed -n '/^latency /s/[0-9.e+]* us, [0-9.e+]* GB\/s: ..*/FIGURES/p; /^parallel.stages/s/:.*//p; /^train --plan-parallel/p' text |
    sed 's/ [0-9][0-9.e+-]*/ N/g'
microtome doctor --mpi --ranks 3 --largest 1024 --json | python3 -c '
import json, math, socket, sys
found = json.load(sys.stdin)
assert found["hosts"] == [socket.gethostname()] * 3, found["hosts"]
(pair,) = found["pairs"]
assert pair["ranks"] == [0, 1] and pair["one_host"]
for rows, times in ((pair["messages"], ("latency_s", "bytes_per_s", "both_ways_bytes_per_s")), (found["sums"], ("seconds",))):
    sizes = [row["bytes"] for row in rows]
    assert sizes == [4 ** i for i in range(1, len(sizes) + 1)], sizes
    for row in rows:
        assert all(math.isfinite(row[t]) and row[t] > 0 for t in times), row
        assert 0 <= row["overlap"] <= 1, row
small = min(row["latency_s"] for row in pair["messages"] if row["bytes"] <= 256)
assert found["latency_s"] == small and found["bytes_per_s"] == max(row["bytes_per_s"] for row in pair["messages"])
# a message cannot be faster than memory
assert 1e-8 < small and found["bytes_per_s"] < 1e12
print(sorted(found))'
microtome doctor --mpi
echo "alone: $?"
microtome doctor --ranks 2
echo "without --mpi: $?"
microtome doctor /tmp --mpi --ranks 2
echo "with a folder: $?"
OMPI_COMM_WORLD_SIZE=2 microtome doctor --mpi --ranks 2
echo "twice: $?"
microtome doctor --largest 1024
echo "a size without --mpi: $?"
env -u SLURM_JOB_ID -u PE_HOSTFILE taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')" \
    microtome doctor --mpi --ranks 33 --largest 4
echo "too many: $?"
