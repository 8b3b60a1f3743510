# A disk that fills up while a heatmap is exported: an error that names the file, no half files, and
# the next run makes what is missing from the scores that are there.
[ "$(id -u)" -eq 0 ] || { echo "mounting a small disk needs root" >&2; exit 77; }
mkdir disk
mount -t tmpfs -o size=128k none disk 2>/dev/null || { echo "no tmpfs here" >&2; exit 77; }
trap 'umount disk' EXIT
microtome phantom -q -o cohort --slides 1 --size 1024 --seed 2 || exit
run() { microtome predict -q cohort/slides -o disk/h --network scan_tiny --init-seed 1 --stride 16 --threads 1 "$@" >/dev/null; }
run --export tiles-csv
head -c 1m /dev/zero >disk/filler 2>/dev/null
truncate -s -16k disk/filler # room for the record of the run
for export in ome-tiff overlay; do
    run --export $export
    echo "exit $?"
done
rm disk/filler
find disk -type f | sort
mount -o remount,size=64m disk
run
echo "exit $?"
find disk -type f | sort
