# Training takes the names of classes from the stores, in any number; stores must agree.
microtome phantom -q -o cohort --slides 4 --size 1024 --seed 5 --centers 0 || exit
mkdir drawn
box() { printf '{"type":"Feature","properties":{"classification":{"name":"%s"}},"geometry":{"type":"Polygon","coordinates":[[[%s,0],[%s,0],[%s,1024],[%s,1024],[%s,0]]]}}' "$1" "$2" "$3" "$3" "$2" "$2"; }
for slide in cohort/slides/*.tiff; do
    { printf '['; box Stroma 0 512; printf ','; box Lymphocytes 384 640; printf ','; box Tumor 640 1024; printf ']'; } >"drawn/$(basename "$slide" .tiff).geojson"
done
common="-q cohort/slides --random 8 --patch 144 --annotations drawn --white 1"
microtome extract $common -o stores --class-map '{classes: [stroma, lymphoid, tumor], names: {Lymphocytes: lymphoid}}' | sed 's/  */ /g' | head -n 2
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.34, balance: weights }
train: { epochs: 1, batch: 8 }
Y
microtome train run.yaml -o run -q --threads 1 >/dev/null || exit
grep '"class_names"' run/config.json | tr -d ' \n'; echo
grep 'classes:' run/config.yaml
head -n 1 run/scores.csv run/confusion.csv | grep -v '^$'
cut -d, -f 1-2 run/confusion.csv | tail -n 3 | cut -d, -f 1
microtome train run/config.yaml -o run -q --threads 1 --resume >/dev/null && echo "resumes"
microtome model run stores/patient_000_node_0.h5 --model run -o scores.csv -q >/dev/null
head -n 1 scores.csv
echo "--- the config may order them"
microtome train run.yaml -o other -q --threads 1 --set 'classes=[tumor, stroma, lymphoid]' >/dev/null
grep '"class_names"' other/config.json | tr -d ' \n'; echo
n() { awk -F, -v c="$2" 'NR > 1 && $3 == c' "$1/scores.csv" | wc -l; }
[ "$(n run 2)" = "$(n other 0)" ] && [ "$(n run 0)" = "$(n other 1)" ] && echo "labels follow the names"
echo "--- refused"
microtome train run.yaml -o no -q --set 'classes=[tumor, stroma]'
echo "exit $?"
microtome extract $common -o swapped --class-map 'Stroma=stroma,Lymphocytes=lymphoid,Tumor=stroma' >/dev/null
microtome train run.yaml -o no -q --set 'data.train=[stores, swapped]'
echo "exit $?"
microtome extract $common -o plain --class-map 'Stroma=ignore,Lymphocytes=ignore' >/dev/null
microtome train run.yaml -o no -q --set 'data.train=[plain, swapped]'
echo "exit $?"
microtome extract $common -o one --class-map 'Stroma=stroma,Lymphocytes=ignore,Tumor=ignore' >/dev/null
microtome train run.yaml -o no -q --set data.train=one
echo "exit $?"
microtome train run.yaml -o no -q --set objective=regress --set data.balance=none --set 'classes=[a, b]'
echo "exit $?"
exit 0
