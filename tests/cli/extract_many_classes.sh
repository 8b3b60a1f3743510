# Any number of classes: labels by precedence, what nobody drew on as a class or left out, exclusions,
# slide labels by class, and what is not a class map.
python=/usr/bin/python3
$python -c "import h5py" 2>/dev/null || { echo "python3-h5py is not installed" >&2; exit 77; }
microtome phantom -q -o cohort --slides 1 --size 2048 --seed 1 || exit
mkdir slides drawn
cp cohort/slides/*.tiff slides/a.tiff
box() { printf '{"type":"Feature","properties":{"objectType":"annotation","classification":{"name":"%s"}},"geometry":{"type":"Polygon","coordinates":[[[%s,0],[%s,0],[%s,2048],[%s,2048],[%s,0]]]}}' "$1" "$2" "$3" "$3" "$2" "$2"; }
{ printf '['; box Stroma 0 1024; printf ','; box Lymphocytes 624 1280; printf ','; box Tumor 960 1552; printf ','; box Fold 1408 1472; printf ']'; } >drawn/a.geojson
cat >map.yaml <<'YAML'
classes: [stroma, lymphoid, tumor]
names:
  Lymphocytes: lymphoid
  Fold: exclusion
YAML
common="-q slides --patch 64 --tissue-fraction 0 --annotations drawn"
table() { sed 's/  */ /g'; }
# labels by column of tiles, classes, fractions of a tile
show() {
    $python - "$1" <<'PY'
import h5py, json, sys
import numpy as np
f = h5py.File(sys.argv[1])
names = json.loads(f.attrs["class_names"]) if "class_names" in f.attrs else None
labels, x = f["labels"][:], f["coords"][:, 0]
print(names, "".join(".012345"[int(labels[x == c][0]) + 1] for c in sorted(set(x))))
assert all(len(set(labels[x == c])) == 1 for c in set(x))
if "class_fractions" in f:
    shares = f["class_fractions"][:]
    assert shares.shape == (len(x), len(names)) and shares.max() <= 1
    assert shares.sum(1).max() <= 1 + 1e-6
    print("at 576, 1408, 1536:", *(shares[x == c][0].tolist() for c in (576, 1408, 1536)))
PY
}
echo "--- the later class wins"
microtome extract $common -o out --dense --margin 0 --class-map map.yaml | table
show out/a.h5
head -n 1 out/slides.csv
echo "--- another precedence"
echo 'precedence: [lymphoid, stroma]' | cat map.yaml - >other.yaml
microtome extract $common -o other --dense --margin 0 --class-map other.yaml | table
show other/a.h5
echo "--- what nobody drew on"
sed 's/\[stroma/[rest, stroma/' map.yaml >rest.yaml && echo 'unlabelled: rest' >>rest.yaml
for rule in majority any center; do
    microtome extract $common -o "rest-$rule" --dense --margin 0 --class-map rest.yaml --label-rule "$rule" | table | tail -n 1
    show "rest-$rule/a.h5"
done
echo "--- the same on the command line; normal is a class"
microtome extract $common -o pairs --dense --margin 0 --class-map 'Stroma=normal,Tumor=tumor,Lymphocytes=lymphoid,Fold=exclusion' --target coverage:lymphoid | table
show pairs/a.h5
$python -c 'import h5py; t = h5py.File("pairs/a.h5")["targets"]; print(t.attrs["name"], sorted(set(t[:].tolist())))'
echo "--- random: as many of each class"
microtome extract $common -o random --random 30 --class-map rest.yaml --preview | table
microtome extract $common -o process --random 12 --class-map rest.yaml --layout process --group 8 | table
$python -c 'import h5py; f = h5py.File("process/a.h5"); print(sorted(f), sum(f[c]["l0/c0/pa/n0"][b]["patches"].shape[0] for c in f for b in "01"))'
microtome extract $common -o process --random 12 --class-map rest.yaml --layout process --group 8 | table | tail -n 1
echo "--- slide labels are classes"
printf 'slide,label\nslides/a.tiff,Lymphoid\n' >list.csv
microtome extract -q list.csv -o slide --dense --margin 0 --patch 256 --label-rule slide --class-map '{classes: [stroma, lymphoid, tumor]}' | table
microtome extract -q list.csv -o slide2 --dense --margin 0 --patch 256 --label-rule slide | table
microtome extract -q list.csv -o slide3 --dense --margin 0 --patch 256 --label-rule slide --class-map 'a=b,c=d' | table
microtome extract -q list.csv -o slide4 --dense --margin 0 --patch 256 --label-rule slide --class-map 'a=tumor'
echo "--- refused"
microtome extract $common -o no --dense --class-map 'Stroma=stroma,Lymphocytes=ignore'
microtome extract $common -o no --dense --class-map none.yaml
echo 'classes: [stroma, tumor, label]' >bad.yaml
microtome extract $common -o no --dense --class-map bad.yaml
echo 'clases: [stroma, tumor]' >bad.yaml
microtome extract $common -o no --dense --class-map bad.yaml
microtome extract $common -o no --dense --class-map map.yaml --target coverage:fat
ls no
echo "--- no region, no class, no name"
mkdir empty && echo '{"type":"FeatureCollection","features":[]}' >empty/a.geojson
microtome extract -q slides -o nothing --random 5 --patch 64 --annotations empty --class-map map.yaml | table | tail -n 1
microtome extract -q slides -o undrawn --dense --margin 0 --patch 64 --annotations empty --class-map map.yaml | table | tail -n 1
printf 'slide,label\nslides/a.tiff,Normal\n' >normal.csv
microtome extract -q normal.csv -o rest --dense --margin 0 --patch 256 --class-map '{classes: [tumor, normal]}' | table
microtome extract -q slides -o dots --random 5 --class-map '{classes: [., tumor]}'
microtome extract -q slides -o text --random 5 --class-map classes.txt
exit 0
