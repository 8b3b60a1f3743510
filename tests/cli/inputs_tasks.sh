# Slides that are replaced while the tasks of a cluster run: those fail, with the reason, and the
# others are done. The scheduler is only asked for the size of its arrays.
printf '#!/bin/sh\necho "MaxArraySize            = 1001"\n' >../bin/scontrol && chmod +x ../bin/scontrol
microtome phantom -q -o cohort --slides 3 --size 2048 --seed 1 || exit
microtome phantom -q -o other --slides 1 --size 2048 --seed 2 || exit
slides=(cohort/slides/*) other=(other/slides/*)
said() { sed -E 's/[0-9]+ bytes, hash [0-9a-f]{16}/N bytes, hash H/g; s/patient_[0-9]+_node_[0-9]+/NAME/g; s#/[^ ]*/maps/#maps/#'; }
try() { "$@" >printed 2>&1; echo "exit $?" >>printed; said <printed; }
states() { cut -d, -f2,3 "$1/slides.csv"; }

echo "--- extract: after the submission, and after its task"
extract="microtome extract -q cohort/slides --random 4 --patch 64 --white 0.9 --label-rule none"
$extract -o here >/dev/null || exit
$extract -o stores --on slurm --dry-run >/dev/null || exit
head -n 2 stores/tasks/list.csv | sed -E 's/=[0-9]+:[0-9a-f]{16}/=N:H/g; s/,[0-9]+,p/,COST,p/'
cp "${slides[0]}" kept.tiff
cp "${other[0]}" "${slides[0]}"
try microtome task -q stores 1
try microtome task -q stores 2 3
cp "${other[0]}" "${slides[1]}"
microtome task -q stores --finish >/dev/null 2>finished
echo "exit $?"
states stores
cmp here/"$(basename "${slides[2]}" .tiff)".h5 stores/"$(basename "${slides[2]}" .tiff)".h5

echo "--- extract: the class map's file changes after the submission"
cp kept.tiff "${slides[0]}"
cp kept.tiff "${slides[1]}"
extract="microtome extract -q cohort/slides/$(basename "${slides[0]}") --random 4 --patch 64 --annotations cohort/annotations"
for form in "--class-map map.yaml" "--class-map=map.yaml"; do
    echo 'classes: [stroma, tumor]' >map.yaml
    $extract -o mapped --on slurm --dry-run $form >/dev/null || exit
    echo 'classes: [other, tumor]' >map.yaml
    microtome task -q mapped 1
    microtome task -q mapped --finish | sed -n 1,2p | sed 's/  */ /g' | cut -d' ' -f2-5
    head -n 1 mapped/slides.csv
    rm -r mapped
done

echo "--- predict: between two tasks of a slide, and after all of another's"
cp kept.tiff "${slides[0]}"
cp kept.tiff "${slides[1]}"
predict="microtome predict -q cohort/slides --network scan_tiny --stride 16 --group 2 --export none"
$predict -o here >/dev/null || exit
$predict -o maps --on slurm --dry-run >/dev/null || exit
of() { awk -F, -v slide="$(basename "$1" .tiff)" '$2 == slide { print $1 }' maps/tasks/list.csv; }
first=($(of "${slides[0]}"))
[ ${#first[@]} -gt 1 ] || echo "one task only"
try microtome task -q maps "${first[0]}"
cp "${other[0]}" "${slides[0]}"
try microtome task -q maps "${first[1]}"
try microtome task -q maps $(of "${slides[1]}") $(of "${slides[2]}")
cp "${other[0]}" "${slides[1]}"
microtome task -q maps --finish >/dev/null 2>finished
echo "exit $?"
states maps
cmp here/"$(basename "${slides[2]}" .tiff)"/heatmap.npy maps/"$(basename "${slides[2]}" .tiff)"/heatmap.npy
ls maps/*/heatmap.npy
try $predict -o maps
try $predict -o maps --overwrite | sed -n '$p'
