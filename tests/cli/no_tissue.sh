# A slide without tissue: the same state in tissue, extract and predict, no failure, not done again,
# and every later step has a word for it.
command -v vips >/dev/null || { echo "needs libvips-tools" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
mkdir slides
cp cohort/slides/*.tiff slides/a.tiff
vips black black.v 1500 1200 --bands 3
vips linear black.v grey.v "1 1 1" "240 240 240" --uchar
vips tiffsave grey.v slides/glass.tiff --compression jpeg --tile --tile-width 256 --tile-height 256 --pyramid --xres 4000 --yres 4000
states() { awk -F, 'NR > 1 { print $2, $3, $NF }' "$1/slides.csv"; }
for again in 1 2; do
    microtome tissue slides -q -o tissue | cut -c1-20
    states tissue
done
for layout in blocks fda clam process; do
    microtome extract -q slides -o $layout --dense --layout $layout --preview | sed -n '2,$s/  */ /gp'
    echo "exit ${PIPESTATUS[0]}"
done
microtome extract -q slides -o blocks --dense --preview | sed -n '2,$s/  */ /gp'
states blocks
ls blocks
microtome extract -q slides -o stained --random 20 --patch 128 --stain macenko | sed -n '3s/  */ /gp'
microtome status blocks | grep tissue
microtome status blocks --json | grep no_tissue
echo "--- drawn tumour where no tissue is seen is a failure"
mkdir drawn
echo '{"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":[[[100,100],[900,100],[900,900],[100,900]]]}}' >drawn/glass.geojson
microtome extract -q slides/glass.tiff -o drawn-out --dense --annotations drawn >/dev/null
echo "exit $?"
echo "--- heatmaps"
predict() { microtome predict -q --stride 128 "$@" | awk 'NR > 1 { print $1, $2, $3, ($4 > 0), $NF }'; echo "exit ${PIPESTATUS[0]}"; }
for again in 1 2; do
    predict --network scan_tiny slides -o maps --threads 1
done
states maps
awk -F, '$2 == "glass"' maps/slides.csv | cut -d, -f6-10
cp -r maps threads && rm -r threads/glass && predict --network scan_tiny slides -o threads --threads 2
for file in heatmap.json heatmap.npy tissue.png regions.geojson tiles.csv; do cmp maps/glass/$file threads/glass/$file; done
ls maps/glass
predict slides/glass.tiff -o alone --network resnet18 --mode dense --stain macenko
predict --network scan_tiny slides -o masked --tissue tissue
predict --network scan_tiny blocks/a.h5 blocks/glass.h5 -o stored
microtome predict -q --network scan_tiny slides/glass.tiff -o asjson --json | grep -o '"mean": [^ ]*\|"state": [^,]*'
echo "--- verdicts"
microtome classify features -q maps -o features.csv
grep glass features.csv | tr ',' '\n' | sort -u
microtome classify lesions -q maps -o lesions | tail -n 1
printf 'slide,annotation,label\na.tiff,,normal\nglass.tiff,,normal\n' >truth.csv
microtome evaluate pixels -q maps --truth truth.csv | tail -n 2
microtome report maps -o page -q
grep -o 'no tissue was found\|No tissue was found on this slide' page/index.html
echo "--- training leaves the store out"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: labelled, val_fraction: 0.5 }
train: { epochs: 1, batch: 4 }
Y
microtome phantom -q -o many --slides 4 --size 2048 --seed 1 || exit
sed -i 's/,test$/,train/' many/slides.csv # two patients: one to validate on
cp slides/glass.tiff many/slides && echo "slides/glass.tiff,,normal,,patient_009,0,0,train" >>many/slides.csv
head -n 1 many/slides.csv
microtome extract -q many/slides.csv -o labelled --random 8 --patch 160 | sed -n '6s/  */ /gp'
microtome train run.yaml -o model -q --threads 1 | cut -d: -f1
exit 0
