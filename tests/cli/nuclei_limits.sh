# On a real slide: every nucleus is within the limits of area, also where the second search covers a part of one that the
# first has found.
slide=$SHARED/data/slides/CMU-1-Small-Region.svs
[ -f "$slide" ] || { echo "needs $slide" >&2; exit 77; }
microtome nuclei -q "$slide" -o out --no-label-images >/dev/null || exit
awk -F, 'NR > 1 && ($6 < 8 || $6 > 600) { print "label " $1 ": " $6 " um2" } END { print (NR > 3000 ? "many" : NR) }' out/*_nuclei.csv
