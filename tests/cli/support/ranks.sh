# What the tests of training on ranks share: MPI, or a skip; stores of four small slides; comparisons.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
# Leaks are looked for in one run of each kind ($leaks): to tell ours from Open MPI's takes whole stacks, and
# four times the time. Other errors of memory are looked for in all.
leaks=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
microtome phantom -q -o cohort --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' cohort/slides.csv # none is kept for a test
microtome extract -q cohort/slides.csv -o stores --random 12 --patch 160 >/dev/null || exit
same() { cmp "$1/model.safetensors" "$2/model.safetensors" && cmp "$1/scores.csv" "$2/scores.csv" && echo "$1 = $2"; }
second_rank() { # the process id of the second of two ranks that train from here into folder $1, once both are there
    for _ in $(seq 300); do
        set -- "$1" $(for pid in $(pgrep -f "train run.yaml .*-o $1( |\$)"); do
            [ "/proc/$pid/cwd" -ef . ] && tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -q '^OMPI_COMM_WORLD_RANK=' && echo "$pid"
        done)
        [ $# -lt 3 ] || { echo "$3" && return; }
        sleep 0.1
    done
}
wait_for() { # a checkpoint in folder $1
    for _ in $(seq 1200); do
        ls "$1"/checkpoints/step-*.safetensors >/dev/null 2>&1 && return
        sleep 0.02
    done
}
# For Python: read(folder) of weights.py.
export PYTHONPATH=$(realpath "$(dirname "${BASH_SOURCE[0]}")") PYTHONDONTWRITEBYTECODE=1
