# Heatmaps -> features and lesions; heatmaps that are broken, unfinished or of other classes.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
make() { python3 "$SOURCE/tests/cli/make_heatmap.py" "$@"; }
make maps/a 60 40 normal,tumour 10,10,8,4,0.95 30,20,20,10,0.99 35,22,1,1,1.0 5,30,1,1,0.97
make maps/b 60 40 normal,tumour 10,10,8,4,0.7
microtome classify features maps -q --set wang | cut -d, -f1-8
microtome classify features maps -q -o features.csv --threshold 0.9 && cut -d, -f1-14 features.csv
microtome classify features maps/b -q --threshold 0.5 | cut -d, -f11-14
microtome classify lesions maps -o lesions -q && cat lesions/*.csv
microtome classify lesions maps -o nms -q --method nms --radius 40 --stop 0.6 && cat nms/*.csv
microtome classify lesions maps -o single -q --open 0 --close 0 && cat single/a.csv

echo "--- JSON"
keys() { python3 -c "import json, sys
said = json.load(sys.stdin)
for slide in said['slides']:
    print(slide['slide'], {k: len(v) if isinstance(v, dict) else v for k, v in slide.items() if k != 'slide'})
print('failed:', len(said.get('failed', [])))"; }
microtome classify features maps -q --json | keys
microtome classify features maps -q --json -o json.csv | keys && microtome classify features maps -q | cmp - json.csv
microtome classify lesions maps -o lesions -q --json | keys

echo "--- bad input"
make other/c 20 10 normal,tumour,necrosis
microtome classify features other -q
microtome classify features other -q --class 7
microtome classify features other -q --class necrosis | cut -d, -f1-3
mkdir -p other/unfinished && echo '{}' >other/unfinished/plan.json
microtome classify features other -q --class 2 | cut -d, -f1-3
make broken/d 20 10 normal,tumour && make broken/e 20 10 normal,tumour
head -c 500 broken/d/heatmap.npy >cut && mv cut broken/d/heatmap.npy
microtome classify features broken -q | cut -d, -f1-3
microtome classify lesions broken -o lesions -q --json 2>/dev/null | keys
mkdir empty
microtome classify lesions empty -o lesions
mkdir -p begun/f begun/g && echo '{}' | tee begun/f/plan.json >begun/g/plan.json
microtome classify lesions begun -o lesions
microtome classify lesions maps
microtome classify features absent
