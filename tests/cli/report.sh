# Recognises results by their content; says what it looked for if there are none.
microtome report
echo "no operand: $?"
microtome report . -o page
echo "nothing here: $?"
microtome report . -o .
echo "into the results: $?"
mkdir -p model scores
printf 'epoch,train_loss,val_loss\n1,0.7,0.6\n2,0.5,0.4\n' >model/metrics.csv
printf 'slide,score,label\na.svs,0.9,tumor\nb.svs,0.1,normal\n' >scores/slides.csv
microtome report model scores -o page --title 'A & B' -q
grep -o '<title>[^/]*' page/index.html
grep -c '<article' page/index.html
microtome report . -o page --json -q
printf 'slide,score\n"open quote,1\n' >scores/broken.csv
microtome report . -o page -q
grep -o 'class="problem">[^<]*' page/index.html
rm scores/broken.csv
echo "--- curves, whatever options evaluate was given"
mkdir curves both lesions truth
microtome evaluate roc scores/slides.csv --bootstrap 0 --calibration 5 --plot curves/roc >/dev/null
microtome report curves -o page -q
grep -o '<figcaption[^<]*<[^<]*' page/index.html
microtome evaluate roc scores/slides.csv --bootstrap 0 --plot both/roc --points both/points.csv >/dev/null
microtome report both -o page -q
microtome evaluate roc scores/slides.csv --bootstrap 0 --points scores/points.csv >/dev/null
microtome report scores -o page -q
echo '{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Polygon","coordinates":
[[[0,0],[2000,0],[2000,2000],[0,2000],[0,0]]]},"properties":{"classification":{"name":"Tumor"}}}]}' >truth/a.geojson
printf '0.9,100,100\n0.8,9000,9000\n' >lesions/a.csv
microtome evaluate froc lesions --truth truth --plot curves/froc -q >/dev/null
microtome report curves -o page -q
echo "--- a model is named after its folder and its network, not 'model'"
mkdir run7 && echo '{"spec_version": "1.0", "architecture": "scan_tiny", "num_classes": 2, "patch_size_pixels": 224,
"spacing_um_px": 0.25, "class_names": ["normal", "tumor"], "transform": [{"name": "ToTensor"}],
"microtome": {"network": "scan_tiny"}}' >run7/config.json
microtome phantom -o cohort --slides 1 --size 1024 -q
microtome model convert --network scan_tiny --init-seed 1 -o run7/model.safetensors -q >/dev/null
for model in run7 run7/model.safetensors run7/. ; do
    microtome predict cohort/slides.csv -o maps --model $model --stride 224 --export none --overwrite -q >/dev/null
    grep -o '"models": .*' maps/*/heatmap.json
done
(cd run7 && microtome predict ../cohort/slides.csv -o ../two --model model.safetensors --model . --stride 224 --export none -q) >/dev/null
grep -o '"models": .*' two/*/heatmap.json
microtome report maps -o page -q >/dev/null
grep -oE '<dt>(model|weights)</dt><dd>[^<]*' page/index.html
