#!/usr/bin/env bash
# More jobs than an array may have: a master job submits several arrays, with offsets. At most
# --max-running run at once, over all arrays. --jobs divides tasks among fewer jobs.
port=21100
. "$(dirname "$0")/lib.sh"
export MAX_ARRAY=6
slurm_up 4
sge_up
links 14
cat >wrap <<'W'
case "$*" in *--finish) exec "$@" ;; esac
echo + >>"$LOG"
sleep 0.4
"$@"
code=$?
echo - >>"$LOG"
exit $code
W
site "$here/wrap"
store() { extract "$@" >"$1.txt" || fail "$1"; } # FOLDER OPTIONS...
most() { awk '$0 == "+" { n++ } $0 == "-" { n-- } n > most { most = n } END { print most }' "$1"; }
store one
for on in slurm sge; do
    export LOG=$here/$on.log
    store limited_$on --on $on --wait --site site.yaml --max-running 2
    same one limited_$on
    [ "$(most "$LOG")" -le 2 ] || fail "$(most "$LOG") at once, not 2, on $on"
    [ "$(grep -cx + "$LOG")" = 14 ] || fail "tasks ran $(grep -cx + "$LOG") times"
    [ "$(grep -c '^submit_array [0-9]' limited_$on/tasks/submit-1.sh)" = 3 ] || fail "not three arrays"
    [ -e limited_$on/tasks/log/submit-1.log ] || fail "no master job"
done
export LOG=$here/wide.log
store wide --on slurm --wait --site site.yaml
same one wide
[ "$(most "$LOG")" -ge 3 ] || fail "arrays of a submission without a limit did not run side by side"
export LOG=$here/shared.log
store shared --on slurm --wait --site site.yaml --jobs 3
same one shared
[ "$(grep -cx + "$LOG")" = 3 ] || fail "14 tasks in 3 jobs were $(grep -cx + "$LOG") calls"
echo ok
