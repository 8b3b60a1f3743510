# Under a limit of the address space (ulimit -v, Grid Engine's h_vmem) on a machine of many
# processors: what fits ends well and by itself, what does not fit ends with 1 and its reason. 130
# is for runs that somebody stopped.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no limits under the sanitizers" >&2; exit 77; }
microtome phantom -q -o c --slides 1 --size 1024 --seed 1 || exit
limited() { # processors, MB, arguments
    (ulimit -v $(($2 * 1000))
     MANY_PROCESSORS=$1 LD_PRELOAD=$MANY_PROCESSORS_LIBRARY timeout -s KILL 60 \
         microtome "${@:3}" >/dev/null 2>err.txt)
    echo "$3, $1 processors, $2 MB: exit $?"
    grep -om1 'out of memory' err.txt
}
limited 16 1000 tissue -q c/slides -o tissue-16
limited 16 2000 extract -q c/slides -o stores-16 --random 8 --patch 64
limited 64 4000 tissue -q c/slides -o tissue-64
limited 64 4000 extract -q c/slides -o stores-64 --random 8 --patch 64
limited 8 2000 predict -q c/slides -o heat --network scan_tiny --init-seed 1 --stride 256 --export none
limited 64 200 tissue -q c/slides -o none
limited 16 300 predict -q c/slides -o less --network scan_tiny --init-seed 1 --stride 256 --export none
