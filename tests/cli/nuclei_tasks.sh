# As tasks of a cluster, in any order: the same bytes as here. The scheduler is only asked for the
# size of its arrays.
printf '#!/bin/sh\necho "MaxArraySize            = 1001"\n' >../bin/scontrol && chmod +x ../bin/scontrol
microtome phantom -q -o c --slides 3 --size 1024 --seed 1 --nuclei || exit
find="microtome nuclei -q c/slides.csv --tile 256 --mpp 0.5 --truth c/nuclei"
$find -o here >here.txt || exit
$find -o there --on slurm --dry-run >/dev/null || exit
cut -d, -f1,2,3,5,6 there/tasks/list.csv
microtome task -q there 3 1
microtome task -q there --finish 2>&1 >/dev/null | tail -n 2
microtome task -q there 1-3
microtome task -q there --finish >there.txt
diff here.txt <(head -n "$(wc -l <here.txt)" there.txt) && echo "the same is printed"
diff -r -x run.json -x slides.csv -x tasks here there && echo "the same files"
diff <(cut -d, -f2,5- here/slides.csv) <(cut -d, -f2,5- there/slides.csv) && echo "the same record"
echo "--- without label images a slide is many tasks"
find="microtome nuclei -q c/slides.csv --tile 256 --mpp 0.5 --no-label-images --group 1"
$find -o one >/dev/null || exit
$find -o many --on slurm --dry-run >/dev/null || exit
n=$(tail -n 1 many/tasks/list.csv | cut -d, -f1)
[ "$n" -gt 5 ] || echo "only $n tasks"
microtome task -q many $(seq "$n" -1 1)
microtome task -q many --finish >/dev/null
diff -r -x run.json -x slides.csv -x tasks one many && echo "the same files"
microtome status many | tail -n 1
echo "--- an image that is too coarse does not stop the slides"
microtome phantom -q -o f --slides 1 --size 1024 --seed 1 --fields 1 || exit
cp f/fields/*_labels.png c/coarse.png # any image without um/px
{ echo slide,mpp; echo coarse.png,3; tail -n +2 c/slides.csv | cut -d, -f1,2; } >c/mixed.csv
microtome nuclei -q c/mixed.csv --tile 256 --mpp 0.5 -o mixed --on slurm --dry-run 2>&1 >/dev/null | tail -n 1
microtome task -q mixed 1-3
microtome task -q mixed --finish >/dev/null 2>&1
cut -d, -f2,3 mixed/slides.csv
