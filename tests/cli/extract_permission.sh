# A slide that may not be read and a folder that may not be written. Root may do all, so root steps
# down first.
run="microtome"
if [ "$(id -u)" -eq 0 ]; then
    setpriv --reuid=65534 --regid=65534 --clear-groups "$(command -v microtome)" --version >/dev/null 2>&1 ||
        { echo "runs as root, and cannot step down" >&2; exit 77; }
    run="setpriv --reuid=65534 --regid=65534 --clear-groups $(command -v microtome)"
fi
microtome phantom -q -o cohort --slides 2 --size 1024 --seed 1 || exit
chmod -R a+rX cohort
mkdir open closed && chmod 777 open && chmod 555 closed
chmod 000 cohort/slides/patient_000_node_0.tiff
$run extract -q cohort/slides -o open --dense --tissue-fraction 0.01 | awk 'NR > 1 { print $1, $NF }'
$run extract -q cohort/slides -o closed/out --dense
echo "exit $?"
ls closed
