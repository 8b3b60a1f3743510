# A full disk: a clear error, no half file. Needs root for a small tmpfs.
[ "$(id -u)" -eq 0 ] || { echo "needs root to mount a tmpfs" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
mkdir disk && mount -t tmpfs -o size=2m tmpfs disk 2>/dev/null || { echo "cannot mount a tmpfs" >&2; exit 77; }
trap 'umount disk' EXIT
microtome extract -q cohort/slides -o disk/out --dense
echo "exit $?"
ls disk/out
mount -o remount,size=64m disk
microtome extract -q cohort/slides -o disk/out --dense | awk 'NR > 1 { print $NF }'
for size in 4k 8k 12k 16k 20k; do # no room for what HDF5 writes, or for what comes after it
    umount disk && mount -t tmpfs -o size=$size tmpfs disk
    microtome extract -q cohort/slides -o disk/out --random 3 --patch 64 2>few.txt >/dev/null
    echo "$size: exit $?"
    head -n 1 few.txt >&2
done
