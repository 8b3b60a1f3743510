# --ranks when mpirun really cannot start ranks, or MPI fails in them: missing components, a missing
# hostfile. The reason is printed exactly once.
# An error of a rank is printed by that rank alone.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0
mkdir data
echo 'data: { train: data }' >run.yaml
try() {
    echo "--- $*"
    env "$@" microtome train run.yaml -q --threads 1 -o out --ranks 2 2>err.txt
    echo "exit $?"
    grep -q 'no MPI' err.txt && exit 77
    grep 'microtome train:' err.txt | sed 's/\(cannot start 2 ranks\).*/\1/'
    grep -c 'microtome train:' err.txt
}
try OMPI_MCA_plm=nosuch
grep -o 'Framework: plm Component: nosuch; fix.*' err.txt
try OMPI_MCA_pml=nosuch
grep -o 'Framework: pml Component: nosuch; fix.*' err.txt
try OMPI_MCA_orte_default_hostfile=/nonexistent
try OMPI_MCA_rmaps_base_oversubscribe=1
