# parallel: extents that do not fit, and axes that nothing uses yet, are refused by name before data are
# opened; what fits reaches the data.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
mkdir data
echo 'data: { train: data }' >run.yaml
try() {
    microtome train run.yaml -q --threads 1 -o out "$@" 2>err.txt
    echo "$*: exit $?"
    grep -q 'no MPI' err.txt && exit 77
    cat err.txt
}
for axis in stage space bands heads; do
    try --set parallel.$axis=2
done
try --ranks 2 --set parallel.stage=2
try --ranks 2 --set parallel.data=3
try --set parallel.data=2
try --ranks 2 --set parallel.data=2
try --set parallel.stagess=2
try --set parallel.heads=0
printf 'ranks: { grid: { data: 1, stage: 4 } }\ndata: { train: data }\n' >run.yaml
try
