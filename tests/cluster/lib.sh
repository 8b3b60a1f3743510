# What the cluster tests share. A test sets `port`, sources this, and gets an empty folder $here, the
# program as `microtome`, and slurm_up, sge_up; what was started ends with the test.
# Skipped (77) where the tests do not run as root, or the schedulers are not installed.
set -u
skip() {
    echo "skipped: $*"
    exit 77
}
fail() {
    echo "FAILED: $*"
    for folder in "$here"/*/tasks; do
        [ -d "$folder" ] && tail -n 5 "$folder"/log/* 2>/dev/null
    done | tail -n 60
    exit 1
}
name=$(basename "$0" .sh)
tests=$(dirname "$(realpath "$0")")
here=$(realpath "${SCRATCH:?}")/cluster/$name
down() {
    DIR=$here/slurm "$tests/slurm" down 2>/dev/null
    [ ! -d "$here/sge" ] || DIR=$here/sge PORT=$((port + 50)) "$tests/sge" down
}
trap down EXIT
[ ! -d "$here" ] || down
rm -rf "$here" && mkdir -p "$here/bin" && cd "$here" || exit 1
ln -s "${MICROTOME:?}" bin/microtome
export PATH=$here/bin:/usr/sbin:$PATH LC_ALL=C

slurm_up() { # NODES
    [ "$(id -u)" = 0 ] || skip "a private SLURM needs root"
    command -v slurmctld munged unshare >/dev/null || skip "slurm-wlm and munge are not installed"
    export SLURM_CONF=$here/slurm/slurm.conf
    DIR=$here/slurm PORT=$port "$tests/slurm" up "$1" || skip "SLURM does not start here"
}
sge_up() {
    [ "$(id -u)" = 0 ] || skip "a private Grid Engine needs root"
    [ -x /usr/sbin/sge_qmaster ] && command -v qsub >/dev/null || skip "gridengine is not installed"
    DIR=$here/sge PORT=$((port + 50)) "$tests/sge" up || skip "Grid Engine does not start here"
    eval "$(DIR=$here/sge PORT=$((port + 50)) "$tests/sge" env)"
}
# The same stores and look-up table as in another folder, and no more of them.
same() { # FOLDER OTHER
    diff <(cd "$1" && sha256sum ./*.h5 lookup.csv) <(cd "$2" && sha256sum ./*.h5 lookup.csv) ||
        fail "$1 and $2 differ"
}
# Small slides in many: links to two phantoms.
links() { # N
    microtome phantom -q -o cohort --slides 2 --size 1024 --seed 3 || fail phantom
    mkdir slides
    local sources=(cohort/slides/*.tiff) i
    for i in $(seq -w "$1"); do ln -s "../${sources[$((10#$i % 2))]}" "slides/s$i.tiff"; done
}
# A site file that puts a command before the program, through which a test meddles with tasks.
site() { # WRAPPER
    printf 'container: bash %s\nprogram: %s\n' "$1" "$here/bin/microtome" >site.yaml
}
# A few small patches of every slide that `links` made.
extract() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome extract -q slides -o "$folder" --random 3 --patch 32 --tissue-fraction 0 --white 1 \
        --label-rule none "$@"
}
# A site on which task 1 is killed once, 2 exits with 1 until there is a file `repaired`, and the whole
# job of 3 is killed once. CASE, of TASK.TRY, adds another. The tasks that began are in the file `began`.
failing_site() { # [CASE]
    export HERE=$here
    cat >wrap <<W
for task; do :; done # the last argument
[ "\$task" = --finish ] && exec "\$@"
echo "\$task" | tee -a "\$HERE/began" >>"\$HERE/tries"
case \$task.\$(grep -cx "\$task" "\$HERE/tries") in
1.1) "\$@" & kill -9 \$!; wait \$!; exit \$? ;;
2.*) [ -e "\$HERE/repaired" ] || exit 1 ;;
3.1) kill -9 \$PPID; exit 1 ;;
${1:-}
esac
"\$@"
W
    site "$here/wrap"
}
# What a run in `hurt` on that site leaves: tasks 2 and 3 of N are missing, which was stated, and the same
# command again does these alone; then all is as in the folder `one`.
missing_then_whole() { # SCHEDULER N
    grep -q "2 of $2 tasks have no result" hurt.err || fail "$(cat hurt.err)"
    grep -q 'task 3, s3: did not start' hurt.err || fail "$(cat hurt.err)"
    [ "$(ls hurt/*.h5 | wc -l)" = $(($2 - 2)) ] || fail "$(ls hurt)"
    [ "$(grep -cx 1 began)" = 2 ] || fail "the killed task ran $(grep -cx 1 began) times"
    microtome status hurt | grep -q "2 of $2" || fail "$(microtome status hurt)"
    touch repaired
    : >began
    extract hurt --on "$1" --site site.yaml --wait >again.txt || fail "the second run"
    [ "$(sort began | xargs)" = "2 3" ] || fail "the second run did tasks $(sort began | xargs)"
    same one hurt
    [ -z "$(ls hurt/tasks/work)" ] || fail "left in tasks/work: $(ls hurt/tasks/work)"
}
