# A disk that fills up while a slide is written: an error, no half files, and the run can go on.
[ "$(id -u)" -eq 0 ] || { echo "mounting a small disk needs root" >&2; exit 77; }
mkdir disk
mount -t tmpfs -o size=64k none disk 2>/dev/null || { echo "no tmpfs here" >&2; exit 77; }
trap 'umount disk' EXIT
microtome phantom -o disk/cohort --slides 1 --size 1024 --quiet
echo "$?"
find disk -type f
mount -o remount,size=64m disk
microtome phantom -o disk/cohort --slides 1 --size 1024 --quiet && ls disk/cohort/slides
