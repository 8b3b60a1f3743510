#!/usr/bin/env bash
# explain map and concepts on this computer and on SLURM, maps in groups of images and stitched for lesions: identical
# bytes. Then a second submission of each, which has nothing to do.
port=22100
. "$(dirname "$0")/lib.sh"
slurm_up 2
microtome phantom -q -o cohort --slides 2 --size 1024 --seed 1 || fail phantom
microtome predict -q cohort/slides.csv -o heat --network scan_tiny --init-seed 1 --stride 32 --export none >/dev/null || fail predict
explain() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome explain map heat --network scan_tiny --init-seed 1 --method gradcam,gradcam++ --pick lesions --min-score 0.3 \
        --top 2 --belief-steps 4 --belief-orders 1 --belief-subjects 1 --group 1 -q -o "$folder" "$@" >"$folder.txt" || fail "$folder"
}
explain one --threads 1
explain slurm2 --on slurm --wait --jobs 2
[ "$(wc -l <slurm2/tasks/list.csv)" -gt 3 ] || fail "few tasks: $(cat slurm2/tasks/list.csv)"
ls slurm2/maps/gradcam/*/heatmap.npy >/dev/null || fail "nothing was stitched"
diff -r -x tasks -x groups one slurm2 || fail "one and slurm2 differ"
lines=$(wc -l <one.txt)
diff <(head -n $((lines - 1)) one.txt) <(head -n $((lines - 1)) slurm2.txt) || fail "what slurm2 prints"
before=$(squeue -h -t all | wc -l)
explain slurm2 --on slurm --wait
[ "$(squeue -h -t all | wc -l)" = "$before" ] || fail "complete work was submitted again"
microtome phantom -q -o more --slides 6 --size 1024 --seed 2 || fail phantom
microtome extract -q more/slides.csv -o stores --random 6 --patch 160 --mpp 0.5 >/dev/null 2>&1 || fail extract
concepts() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome explain concepts stores --network scan_tiny --layer layer2,layer3 --permutations 200 -q -o "$folder" "$@" \
        >"$folder.txt" || fail "$folder"
}
concepts near --threads 1
concepts far --on slurm --wait
diff -r -x tasks -x groups -x run.json near far || fail "near and far differ"
diff near.txt <(head -n "$(wc -l <near.txt)" far.txt) || fail "what far prints"
before=$(squeue -h -t all | wc -l)
concepts far --on slurm --wait
[ "$(squeue -h -t all | wc -l)" = "$before" ] || fail "complete work was submitted again"
echo ok
