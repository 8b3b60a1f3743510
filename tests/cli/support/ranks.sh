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
# For Python: read(folder) of weights.py.
export PYTHONPATH=$(realpath "$(dirname "${BASH_SOURCE[0]}")") PYTHONDONTWRITEBYTECODE=1
