# Truth with custom classes: rejected, and read with a class map.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
python3 "$SOURCE/tests/cli/make_heatmap.py" maps/a 60 40 normal,tumour 10,10,10,10,0.9
mkdir truth lesions
echo '{"type":"Feature","properties":{"classification":{"name":"DCIS"}},"geometry":{"type":"Polygon","coordinates":[[[160,160],[320,160],[320,320],[160,320],[160,160]]]}}' >truth/a.geojson
printf 'score,x,y\n0.9,200,200\n' >lesions/a.csv
microtome evaluate pixels maps --truth truth -q
echo "exit $?"
microtome evaluate pixels maps --truth truth -q --csv --class-map DCIS=tumor | tail -n 1
microtome evaluate froc lesions --truth truth -q
echo "exit $?"
microtome evaluate froc lesions --truth truth -q --csv --isolated 0 --class-map DCIS=tumor | cut -d, -f1-8
microtome evaluate froc lesions --truth truth -q --class-map DCIS
echo "--- of several classes, tumor is the positive one"
printf 'classes: [stroma, tumor]\nnames: {DCIS: tumor}\n' >map.yaml
microtome evaluate froc lesions --truth truth -q --csv --isolated 0 --class-map map.yaml | cut -d, -f1-8
printf 'names: {DCIS: stroma, Invasive: tumor}\n' >map.yaml
microtome evaluate froc lesions --truth truth -q --csv --isolated 0 --class-map map.yaml | cut -d, -f1-8
echo "--- and in a report"
mkdir results && cp -r maps/a results && printf 'slide,label,annotation\na,tumor,../truth/a.geojson\n' >results/list.csv
microtome report results -o page -q | cut -d';' -f2
grep -o 'regions of unknown class: [^ ]*' page/index.html | head -n 1
microtome report results -o page -q --class-map DCIS=tumor | grep -c 'slides: 1'
ls page/slides/1/truth.svg
exit 0
