#!/usr/bin/env bash
# A time limit that is too short for a job of several tasks, on SLURM and on Grid Engine: recognised,
# reported, and the same command again gives those tasks separate jobs.
port=21800
. "$(dirname "$0")/lib.sh"
slurm_up 2
sge_up
microtome phantom -q -o cohort --slides 2 --size 2048 --seed 1 || fail phantom
# Hangs in the middle of a task if it was given several, until the time is up: SLURM lets it continue
# before it ends it, Grid Engine warns every process of the job and then kills.
cat >wrap <<'W'
case "$*" in *--finish) exec "$@" ;; esac
trap 'kill -CONT $!' USR1
[ $# -gt 6 ] || exec "$@"
"$@" &
until grep -qs running "$RESULTS"/tasks/record/*.json; do sleep 0.005; done
kill -STOP $!
wait $!
code=$?
while [ $code -gt 128 ] && kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
W
site "$here/wrap"
extract() { # FOLDER OPTIONS...
    export RESULTS=$here/$1
    shift
    microtome extract -q cohort/slides.csv -o "$RESULTS" --dense --patch 64 --margin 96 --stride 32 --layout fda "$@"
}
comes_to_its_limit() { # SCHEDULER TIME SECONDS
    local short=short_$1 job="--on $1 --jobs 1 --time $2 --site site.yaml --wait"
    extract "$short" $job --retries 0 >/dev/null 2>"said_$1" && fail "no limit on $1"
    grep -q 'reached its time limit' "said_$1" || fail "$(cat "said_$1")"
    microtome status "$short" | grep -q "time limit of $3 s" || fail "$(microtome status "$short")"
    extract "$short" $job >/dev/null 2>"said_$1" || fail "$(cat "said_$1")"
    awk 'NF != 1' "$short/tasks/jobs-2.txt" | grep -q . && fail "not divided again: $(cat "$short/tasks/jobs-2.txt")"
    same here "$short"
}
extract here --threads 1 >/dev/null || fail "the run here"
(comes_to_its_limit slurm 1m 60) & # SLURM counts in minutes; both wait at the same time
on_slurm=$!
(comes_to_its_limit sge 20s 20) || { kill $on_slurm; exit 1; }
wait $on_slurm || exit 1
echo ok
