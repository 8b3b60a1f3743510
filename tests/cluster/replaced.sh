#!/usr/bin/env bash
# A slide that is replaced while the tasks of SLURM score it: it fails with the reason, in the tasks
# and at the end; the other slide is done, with the bytes of a run on this computer.
port=21700
. "$(dirname "$0")/lib.sh"
slurm_up 2
microtome phantom -q -o cohort --slides 2 --size 2048 --seed 3 || fail phantom
microtome phantom -q -o other --slides 1 --size 2048 --seed 4 || fail phantom
mkdir slides
i=0
for slide in cohort/slides/*.tiff; do cp "$slide" slides/s$((i += 1)).tiff; done
predict() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome predict -q slides -o "$folder" --network scan_tiny --stride 16 --group 1 --export none \
        --memory 300 "$@"
}
predict here >/dev/null || fail "the local run"

# After whichever of its tasks ends first, s1 is another slide.
export HERE=$here
cat >wrap <<'W'
for task; do :; done # the last argument
"$@"
code=$?
grep -q "^$task,s1," "$HERE/maps/tasks/list.csv" && mkdir "$HERE/replaced" 2>/dev/null && cp "$HERE"/other/slides/*.tiff "$HERE/slides/new" && mv "$HERE/slides/new" "$HERE/slides/s1.tiff"
exit $code
W
site "$here/wrap"
predict maps --on slurm --site site.yaml --max-running 1 --wait >said 2>&1 && fail "a slide was replaced, and exit 0"
grep -q '^[^,]*,s1,failed,.*was made from a different slide' maps/slides.csv || fail "$(cat maps/slides.csv)"
grep -q '^[^,]*,s2,done' maps/slides.csv || fail "$(cat maps/slides.csv)"
[ ! -e maps/s1/heatmap.json ] || fail "a heatmap of two slides"
cmp here/s2/heatmap.npy maps/s2/heatmap.npy || fail "s2 differs"
grep -l 'a different slide' maps/tasks/record/*.json >/dev/null || fail "no task noticed it"

# The same command again is refused; with --overwrite it makes what the new slide is.
predict maps --on slurm --site site.yaml --wait >said 2>&1 && fail "a plan of another slide was taken"
grep -q 's1/plan.json: was made from a different slide (then .*; now .*); pass --overwrite' said || fail "$(cat said)"
predict maps --on slurm --wait --overwrite >said 2>&1 || fail "$(cat said)"
predict new >/dev/null || fail "the second local run"
cmp new/s1/heatmap.npy maps/s1/heatmap.npy || fail "s1 differs"
