# Drawn classes without a meaning are refused before any slide is read, a class map gives them one,
# and a slide that nobody annotated or called normal has no labels.
microtome phantom -q -o cohort --slides 2 --size 2048 --seed 1 || exit
mkdir slides drawn
cp "$(ls cohort/slides/*.tiff | head -n 1)" slides/a.tiff
cp slides/a.tiff slides/b.tiff
square() { printf '{"type":"Feature","properties":{"objectType":"annotation","classification":{"name":"%s","color":[200,0,0]}},"geometry":{"type":"Polygon","coordinates":[[[%s],[%s],[%s],[%s]]]}}' "$@"; }
{ printf '['; square 'Invasive carcinoma' 0,0 1024,0 1024,2048 0,2048; printf ','; square DCIS 1024,0 1536,0 1536,2048 1024,2048; printf ']'; } >drawn/a.geojson
square 'Stroma, loose' 0,0 2048,0 2048,2048 0,2048 >drawn/b.geojson
table() { sed -n '2,$s/  */ /gp'; }
echo "--- refused before the run"
microtome extract -q slides -o out --dense --annotations drawn
echo "exit $?"
ls out
echo "--- mapped"
microtome extract -q slides -o mapped --dense --patch 128 --margin 0 --annotations drawn \
    --class-map 'Invasive carcinoma=tumor,DCIS=tumor,Stroma\, loose=ignore' | table
echo "--- the map is part of what a store is made from; its spelling is not"
microtome extract -q slides -o mapped --dense --patch 128 --margin 0 --annotations drawn \
    --class-map ' stroma\, loose = IGNORE,dcis=tumour,invasive Carcinoma=tumor' | table
microtome extract -q slides -o mapped --dense --patch 128 --margin 0 --annotations drawn \
    --class-map 'Invasive carcinoma=tumor,DCIS=exclusion,Stroma\, loose=ignore' 2>&1 | sed 's/then:.*class-map/then: class-map/;s/now:.*class-map/now: class-map/'
grep -ac 'dcis=tumor,invasive carcinoma=tumor,stroma.*loose=ignore' mapped/a.h5
grep -ic 'invasive carcinoma=tumor' mapped/run.json
echo "--- no annotation and no label: no labels"
mkdir half && cp drawn/a.geojson half
microtome extract -q slides -o half-out --dense --patch 128 --margin 0 --annotations half \
    --class-map 'Invasive carcinoma=tumor,DCIS=tumor' | table
microtome extract -q slides/b.tiff -o random-out --random 20 --patch 128 --annotations half | table
printf 'slide,label,annotation\nslides/a.tiff,tumor,drawn/a.geojson\nslides/b.tiff,normal,\n' >list.csv
microtome extract -q list.csv -o list-out --dense --patch 128 --margin 0 --class-map 'Invasive carcinoma=tumor,DCIS=tumor' | table
echo "--- a label that contradicts the drawing"
printf 'slide,label,annotation\nslides/a.tiff,normal,drawn/a.geojson\nslides/b.tiff,tumor,drawn/b.geojson\n' >list.csv
microtome extract -q list.csv -o wrong --dense --class-map 'Invasive carcinoma=tumor,DCIS=tumor,Stroma\, loose=ignore' | table
echo "--- wrong maps"
microtome extract -q slides -o out --dense --annotations drawn --class-map 'DCIS'
microtome extract -q slides -o out --dense --annotations drawn --class-map 'DCIS='
microtome extract -q slides -o out --dense --class-map 'DCIS=tumor' --label-rule none
exit 0
