#!/usr/bin/env bash
# On Grid Engine a task that is killed, one that exits with 1 and one whose whole job is killed: the rest
# goes on, what is missing is stated, and the same command again makes it complete: nothing twice,
# nothing lost, the same bytes.
port=21900
. "$(dirname "$0")/lib.sh"
sge_up
links 5
cat >wrap <<'W'
for task; do :; done # the last argument
[ "$task" = --finish ] && exec "$@"
echo "$task" | tee -a "$HERE/began" >>"$HERE/tries"
tries=$(grep -cx "$task" "$HERE/tries")
case $task.$tries in
1.1) "$@" & kill -9 $!; wait $!; exit $? ;;
2.*) [ -e "$HERE/repaired" ] || exit 1 ;;
3.1) kill -9 $PPID; exit 1 ;;
esac
"$@"
W
export HERE=$here
site "$here/wrap"
extract() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome extract -q slides -o "$folder" --random 3 --patch 32 --tissue-fraction 0 --white 1 \
        --label-rule none "$@"
}
extract one >/dev/null || fail "the local run"
extract hurt --on sge --site site.yaml --wait >hurt.txt 2>hurt.err && fail "the last job saw nothing missing"
grep -q '2 of 5 tasks have no result' hurt.err || fail "$(cat hurt.err)"
grep -q 'task 3, s3: did not begin' hurt.err || fail "$(cat hurt.err)"
[ "$(ls hurt/*.h5 | wc -l)" = 3 ] || fail "$(ls hurt)"
[ "$(grep -cx 1 began)" = 2 ] || fail "the killed task ran $(grep -cx 1 began) times"
microtome status hurt | grep -q '2 of 5' || fail "$(microtome status hurt)"
touch repaired
: >began
extract hurt --on sge --site site.yaml --wait >again.txt || fail "the second run"
[ "$(sort began | xargs)" = "2 3" ] || fail "the second run did tasks $(sort began | xargs)"
same one hurt
[ -z "$(ls hurt/tasks/work)" ] || fail "left in tasks/work: $(ls hurt/tasks/work)"
echo ok
