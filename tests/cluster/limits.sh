#!/usr/bin/env bash
# A time limit that is too short for a job of several tasks: recognised, stated, and the same command
# again gives those tasks jobs of their own. One that is too short for a single task is refused the
# next time, unless it is longer.
port=21800
. "$(dirname "$0")/lib.sh"
slurm_up 2
microtome phantom -q -o cohort --slides 2 --size 2048 --seed 1 || fail phantom
# Stands still in the middle of a task when it was given several, or while $HERE/slow is there.
cat >wrap <<'W'
case "$*" in *--finish) exec "$@" ;; esac
[ $# -gt 6 ] || [ -e "$HERE/slow" ] || exec "$@"
"$@" &
until grep -qs running "$HERE"/*/tasks/record/*.json; do sleep 0.005; done
kill -STOP $!
wait $!
code=$?
while [ $code -gt 128 ] && kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
W
export HERE=$here
site "$here/wrap"
extract() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome extract -q cohort/slides.csv -o "$folder" --dense --patch 64 --margin 96 --stride 32 --layout fda "$@"
}
extract here --threads 1 >/dev/null || fail "the run here"
extract short --on slurm --jobs 1 --time 1m --site site.yaml --retries 0 --wait >/dev/null 2>said && fail "no limit"
grep -q 'came to its time limit' said || fail "$(cat said)"
microtome status short | grep -q 'time limit of 60 s' || fail "$(microtome status short)"
extract short --on slurm --jobs 1 --time 1m --site site.yaml --wait >/dev/null 2>said || fail "$(cat said)"
awk 'NF != 1' short/tasks/jobs-2.txt | grep -q . && fail "not shared out anew: $(cat short/tasks/jobs-2.txt)"
same here short
echo ok
