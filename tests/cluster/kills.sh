#!/usr/bin/env bash
# A run on this computer, killed a hundred times at random moments: the same bytes as an
# undisturbed run, and no lock that has to be removed by hand.
port=0
. "$(dirname "$0")/lib.sh"
links 12
extract() { # FOLDER
    microtome extract -q slides -o "$1" --random 20 --patch 64 --tissue-fraction 0 --white 1 --label-rule none \
        --threads 1 >"$1.txt" 2>"$1.err"
}
extract one || fail "the run that is left alone"
RANDOM=7
killed=0
for round in $(seq 1000); do
    extract hurt &
    child=$!
    sleep "0.0$((RANDOM % 60 + 10))"
    # of the run itself: the shell around it is ours
    run=$(ps -o pid= --ppid $child | tr -d ' ')
    [ -n "$run" ] && kill -9 "$run" 2>/dev/null && killed=$((killed + 1))
    wait $child 2>/dev/null
    [ "$killed" -lt 100 ] || break
    if [ "$(ls hurt/*.h5 2>/dev/null | wc -l)" = 12 ]; then rm hurt/s0*.h5; fi
done
[ "$killed" = 100 ] || fail "only $killed kills in $round rounds"
extract hurt || fail "$(cat hurt.err)"
same one hurt
ls hurt/*.part 2>/dev/null && fail "a half-written file is left"
echo "ok: $killed kills"
