# Lesions of ten real slides of CAMELYON16: those below 200 um are the isolated cells of 'evaluate froc' (275 um there).
polygons=$SHARED/data/camelyon16/polygons
[ -d "$polygons" ] || { echo "no $polygons" >&2; exit 77; }
(echo slide,patient,node; for i in 101 102 103 104 105 106 107 108 109 110; do echo Tumor_$i,p$((i % 2)),$i; done) >list.csv
mkdir drawn && cp "$polygons"/*.json drawn
microtome classify stage drawn --slides list.csv -o stages -q
cut -d, -f1,4-9 stages/slides.csv
awk -F, 'NR > 1 { n[$2]++ } END { print n["itc"] " isolated, " n["micro"] + n["macro"] " others" }' stages/lesions.csv
