# Ten real annotations of CAMELYON16: 20,000 points known to be tumour give no false positives;
# points known to be normal do, unless they are near tumour or enclosed by it.
data=$SHARED/data/camelyon16/polygons
[ -d "$data" ] || { echo "no $data" >&2; exit 77; }
mkdir truth
cp "$data"/*.json truth
for kind in tumor normal; do
    mkdir $kind
    for file in truth/*.json; do
        slide=$(basename "$file" .json)
        sed -n "s/^$slide,/0.9,/p" "$data/${kind}_centres.txt" >$kind/$slide.csv
    done
    microtome evaluate froc $kind --truth truth --points $kind.csv --csv -q | cut -d, -f1-3,6
done
awk -F, '$4 == "inf" { next } $1 == "tumor" { print "tumor, false positives per slide:", $2 }' tumor.csv
awk -F, '$1 == "normal" && $2 > 900 { print "normal: three of four are false positives" }' normal.csv
