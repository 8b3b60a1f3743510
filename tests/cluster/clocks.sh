#!/usr/bin/env bash
# Nodes whose clocks are two minutes behind, or ten minutes ahead of the submitting machine: --wait
# reports the end of this submission, not of the previous one, and never that nothing started.
port=21600
. "$(dirname "$0")/lib.sh"
[ -e "${SHIFTED_CLOCK_LIBRARY:-}" ] || skip "no library that shifts clocks"
slurm_up 1
links 3
shifted() { # SECONDS
    echo "for task; do :; done
[ -z \"\${BROKEN:-}\" ] || [ \"\$task\" = --finish ] || exit 2
ASAN_OPTIONS=\${ASAN_OPTIONS:-}:verify_asan_link_order=0 SHIFT_S=$1 \\
    LD_PRELOAD=$SHIFTED_CLOCK_LIBRARY exec \"\$@\"" >wrap
    site "$here/wrap"
}
extract one >/dev/null || fail "the local run"
for shift in -120 600; do
    shifted $shift
    extract "shift$shift" --on slurm --site site.yaml --wait >/dev/null 2>said || fail "$shift s: $(cat said)"
    same one "shift$shift"
    grep -q '"began":[0-9. ]*' "shift$shift/tasks/record/1.json" || fail "no record"
    rm "shift$shift/s2.h5" # missing now, and its task fails: the verdict of before is not this one's
    BROKEN=1 extract "shift$shift" --on slurm --site site.yaml --wait >/dev/null 2>said &&
        fail "$shift s: exit 0 with a store missing"
    grep -q "1 of 3 tasks have no result" said || fail "$shift s: $(cat said)"
    microtome status "shift$shift" | grep -q "finished: 1 of 3" || fail "$(microtome status "shift$shift")"
    extract "shift$shift" --on slurm --site site.yaml --wait >/dev/null 2>said || fail "$shift s: $(cat said)"
    same one "shift$shift"
done
echo ok
