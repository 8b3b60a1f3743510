#!/usr/bin/env bash
# The same command on this computer with one thread and with two, on SLURM with four nodes and on
# Grid Engine: identical bytes, of stores, of heatmaps and of
# nuclei. Then status, a second submission that has nothing to do, and cancel.
port=21000
. "$(dirname "$0")/lib.sh"
slurm_up 4
sge_up
microtome phantom -q -o cohort --slides 5 --size 2048 --seed 1 || fail phantom
# One of them without tissue.
glass=cohort/$(awk -F, '$3 == "normal" { print $1; exit }' cohort/slides.csv)
vips black black.v 2048 2048 --bands 3 && vips linear black.v grey.v "1 1 1" "240 240 240" --uchar &&
    vips tiffsave grey.v "$glass" --compression jpeg --tile --tile-width 256 --tile-height 256 --pyramid --xres 4000 --yres 4000 ||
    skip "libvips-tools are not installed"
extract() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome extract -q cohort/slides.csv -o "$folder" --dense --patch 64 --margin 16 --group 50 \
        --stain macenko "$@" >"$folder.txt" || fail "$folder"
}
extract one --threads 1
extract two --threads 2
extract slurm4 --on slurm --wait
extract sge4 --on sge --cpus 2 --wait
for folder in two slurm4 sge4; do
    same one $folder
    # the record too, but for the times
    diff <(cut -d, -f1-3,5- one/slides.csv) <(cut -d, -f1-3,5- $folder/slides.csv) || fail "$folder/slides.csv"
    diff one.txt <(head -n 6 $folder.txt) || fail "what $folder prints"
done
grep -q 'no tissue' slurm4/slides.csv || fail "$(cat slurm4/slides.csv)"
grep -q efficiency slurm4.txt || fail "no account of the run"
microtome status slurm4 --json | python3 -c '
import json, sys
status = json.load(sys.stdin)
assert status["done"] == status["tasks"] == 5 and status["finished"] and status["ok"], status' || fail status
before=$(squeue -h -t all | wc -l)
extract slurm4 --on slurm --wait
[ "$(squeue -h -t all | wc -l)" = "$before" ] || fail "complete work was submitted again"
same one slurm4

# Heatmaps, in groups of blocks.
predict() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome predict -q cohort/slides.csv -o "$folder" --network scan_tiny --memory 300 --group 1 \
        --stain macenko "$@" >"$folder.txt" || fail "$folder"
}
predict p_one --threads 1
predict p_two --threads 2
predict p_slurm --on slurm --wait
predict p_sge --on sge --wait --jobs 4
[ "$(wc -l <p_slurm/tasks/list.csv)" -gt 10 ] || fail "few tasks: $(cat p_slurm/tasks/list.csv)"
for folder in p_two p_slurm p_sge; do
    diff -r -x run.json -x slides.csv -x tasks p_one $folder || fail "p_one and $folder differ"
    diff p_one.txt <(head -n 6 $folder.txt) || fail "what $folder prints"
    diff <(cut -d, -f1-3,6- p_one/slides.csv) <(cut -d, -f1-3,6- $folder/slides.csv) || fail "$folder/slides.csv"
done
grep -q 'no tissue' p_slurm/slides.csv || fail "$(cat p_slurm/slides.csv)"
microtome status p_slurm | grep -q 'all results are merged' || fail "status of p_slurm"

# Nuclei, in groups of tiles.
nuclei() { # FOLDER OPTIONS...
    local folder=$1
    shift
    microtome nuclei -q cohort/slides.csv -o "$folder" --mpp 0.5 --tile 256 --group 4 --no-label-images "$@" \
        >"$folder.txt" || fail "$folder"
}
nuclei n_one --threads 1
nuclei n_slurm --on slurm --wait
nuclei n_sge --on sge --wait --jobs 3
[ "$(wc -l <n_slurm/tasks/list.csv)" -gt 5 ] || fail "few tasks: $(cat n_slurm/tasks/list.csv)"
for folder in n_slurm n_sge; do
    diff -r -x run.json -x slides.csv -x tasks n_one $folder || fail "n_one and $folder differ"
    diff n_one.txt <(head -n 5 $folder.txt) || fail "what $folder prints"
    diff <(cut -d, -f1-3,5- n_one/slides.csv) <(cut -d, -f1-3,5- $folder/slides.csv) || fail "$folder/slides.csv"
done
microtome status n_sge | grep -q 'all results are merged' || fail "status of n_sge"

echo 'sleep 600' >wrap
site "$here/wrap"
for on in slurm sge; do
    microtome extract -q cohort/slides.csv -o held_$on --dense --on $on --site site.yaml || fail "held on $on"
    microtome extract -q cohort/slides.csv -o held_$on --dense --on $on 2>refused &&
        fail "a second submission while jobs of the first are alive"
    grep -q "microtome cancel" refused || fail "$(cat refused)"
    microtome extract -q cohort/slides.csv -o held_$on --dense 2>/dev/null && fail "a local run beside jobs"
    microtome cancel held_$on | grep -q '^cancelled' || fail cancel
    for _ in $(seq 100); do microtome cancel held_$on | grep -q 'nothing is running' && break; sleep 0.2; done
    microtome cancel held_$on | grep -q 'nothing is running' || fail "jobs live on after cancel on $on"
done
echo ok
