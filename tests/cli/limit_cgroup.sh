# In a control group whose memory is limited, as SLURM and containers limit jobs: page cache counts there,
# so a store larger than the limit is written within it, and predict runs in what --memory allows.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to limit under the sanitizers" >&2; exit 77; }
if [ -d /sys/fs/cgroup/memory ]; then # version 1
    group=/sys/fs/cgroup/memory/microtome-$$ limit=memory.limit_in_bytes
else
    group=/sys/fs/cgroup/microtome-$$ limit=memory.max
fi
mkdir "$group" 2>/dev/null || { echo "no control group can be made here" >&2; exit 77; }
trap 'rmdir "$group"' EXIT
[ -w "$group/$limit" ] || { echo "control groups here have no memory limit" >&2; exit 77; }
limited() { # MB ARGUMENTS...
    echo $(($1 << 20)) >"$group/$limit" || exit
    (echo "$BASHPID" >"$group/cgroup.procs" && exec microtome "${@:2}" >/dev/null)
    echo "$2 in $1 MB: exit $?"
}
microtome phantom -q -o c --slides 1 --size 8192 --seed 1 || exit
limited 200 extract -q c/slides -o stores --dense --tissue-fraction 0 --layout fda --threads 2
[ "$(stat -c %s stores/*.h5)" -gt $((200 << 20)) ] && echo "the store is larger than that"
limited 200 predict -q c/slides -o heat --memory 200 --network scan_tiny --init-seed 1 --stride 64 --threads 2
