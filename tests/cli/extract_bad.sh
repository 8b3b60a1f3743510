# Bad slides in a cohort are recorded and skipped, and nothing of them is left.
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
good=$(ls cohort/slides/*.tiff)
mkdir slides
cp "$good" slides/a_good.tiff
: >slides/b_empty.svs
echo "just text" >slides/c_text.svs
head -c 20000 "$good" >slides/d_truncated.tiff
cp "$good" slides/e_corrupt.tiff
size=$(stat -c %s "$good")
head -c 20000 /dev/zero | dd of=slides/e_corrupt.tiff bs=1 seek=$((size / 3)) conv=notrunc status=none
cp "$good" slides/f_good.tiff
microtome extract slides -q -o out --dense 2>err.txt | awk 'NR > 1 { print $1, $NF }'
echo "exit ${PIPESTATUS[0]}"
grep -c . err.txt
tail -n 1 err.txt
ls out
awk -F, 'NR > 1 { print $2, $3, ($NF == "" ? "-" : "says why") }' out/slides.csv
cut -d, -f1 out/lookup.csv
echo "--- annotations"
cp -r cohort/slides one
name=$(basename "$good" .tiff)
mkdir far bow bomb nan
polygon() { printf '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":[[%s]]}}]}' "$1"; }
with() { microtome extract -q one -o "$1-out" --dense --annotations "$1" >/dev/null; echo "exit $?"; }
polygon '[90000,0],[90100,0],[90100,90],[90000,0]' >far/$name.geojson
with far
polygon '[-90,0],[90,90],[90,0],[-90,90],[-90,0]' >bow/$name.geojson
with bow
printf '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;&b;&b;">]><ASAP_Annotations>&c;</ASAP_Annotations>' >bomb/$name.xml
with bomb
polygon '[NaN,0],[90,0],[90,90],[NaN,0]' >nan/$name.geojson
with nan
ls nan-out bomb-out
mkdir others && cp bow/$name.geojson others/another.geojson
microtome extract -q one -o others-out --dense --annotations others >/dev/null
microtome extract -q one -o gone-out --dense --annotations gone
echo "exit $?"
ls -d gone-out
echo "--- labels of the slide list"
printf 'slide,label\n%s,perhaps\n' "$good" >list.csv
microtome extract -q list.csv -o l1 --random 3 --patch 64 --label-rule slide >/dev/null
printf 'slide,label\n%s,\n' "$good" >list.csv
microtome extract -q list.csv -o l2 --random 3 --patch 64 --label-rule slide >/dev/null
printf 'slide,label\n%s,tumor\n' "$good" >list.csv
microtome extract -q list.csv -o l3 --random 3 --patch 64 | sed -n '2s/  */ /gp'
microtome extract -q list.csv -o l4 --random 3 --patch 64 --label-rule slide | sed -n '2s/  */ /gp'
echo "--- patches larger than the slide, or than its tissue may fill, are not searched for"
for patch in 2500 16384; do
    timeout 10 microtome extract -q one -o l5 --random 100 --patch $patch >/dev/null
    echo "exit $?"
done
timeout 10 microtome extract -q one -o l5 --random 100 --patch 2000 --label-rule none --tissue-fraction 0.9 >/dev/null
echo "exit $?"
echo "--- no tissue, no place to write, no template, a foreign file in the way"
microtome extract -q one -o none --dense --tissue-fraction 1 --method ncrf --level 0 --patch 2048 >/dev/null
echo "exit $?"
touch file
microtome extract -q one -o file/out --dense
microtome extract -q one -o t --dense --stain macenko --template gone.png
mkdir way && echo text >way/$name.h5
microtome extract -q one -o way --dense
cat way/$name.h5
