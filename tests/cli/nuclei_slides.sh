# Slides: the planted nuclei are found; tiles of any size and any number of threads give the same
# nuclei, threads also the same bytes; existing results are kept; a slide without tissue.
numbers() { sed -E 's/[0-9]+(\.[0-9]+)?/N/g'; }
rows() { tail -n +2 "$1" | cut -d, -f2- | sort; }
microtome phantom -q -o c --slides 2 --size 1024 --seed 3 --nuclei || exit
microtome nuclei -q c/slides.csv -o out --mpp 0.5 --tile 256 --truth c/nuclei --json >out.json || exit
name=patient_000_node_0
awk -F'[:,}]' '/"all"/ { print ($3 > 0.75 && $5 > 0.5 && $7 > 0.6) ? "found" : "not found: " $0 }' out.json
head -n 1 out/slides.csv
ls out
microtome nuclei -q c/slides -o three --mpp 0.5 --tile 256 --threads 3 >/dev/null
microtome nuclei -q c/slides -o groups --mpp 0.5 --tile 256 --threads 2 --group 1 --no-label-images >/dev/null
microtome nuclei -q c/slides -o wide --mpp 0.5 >/dev/null
for file in out/*_nuclei.csv out/*_nuclei.geojson out/*_labels.png; do
    cmp "$file" "three/${file#out/}"
done && echo "threads do not matter"
cmp out/${name}_nuclei.csv groups/${name}_nuclei.csv && cmp out/${name}_nuclei.geojson groups/${name}_nuclei.geojson &&
    echo "groups do not matter"
cmp <(rows out/${name}_nuclei.csv) <(rows wide/${name}_nuclei.csv) && echo "tiles do not matter"
ls groups

echo "--- again"
microtome nuclei -q c/slides -o out --mpp 0.5 --tile 256 --truth c/nuclei | numbers
cut -d, -f2,3 out/slides.csv
touch -d '1 hour ago' out/${name}_nuclei.csv
microtome nuclei -q c/slides -o out --mpp 0.5 --tile 256 --overwrite | numbers
cut -d, -f2,3 out/slides.csv
cp c/slides/patient_000_node_1.tiff c/slides/$name.tiff
microtome nuclei -q c/slides -o out --mpp 0.5 --tile 256 2>&1 | sed -E 's/[0-9]+ bytes, hash [0-9a-f]{16}/N bytes, hash H/g'

echo "--- tissue: found before, omitted, none"
microtome tissue -q c/slides/$name.tiff -o masks >/dev/null
microtome nuclei -q c/slides/$name.tiff -o masked --tissue masks --mpp 0.5 --tile 256 >/dev/null
cmp masked/${name}_nuclei.csv out/patient_000_node_1_nuclei.csv && echo "the same tissue, the same nuclei"
microtome nuclei -q c/slides/$name.tiff -o omitted --omit blur --mpp 0.5 --tile 256 >/dev/null && ls omitted | grep -c nuclei
microtome nuclei -q c/slides/$name.tiff -o everywhere --method none --no-label-images --mpp 0.5 --tile 256 >/dev/null
[ "$(wc -l <everywhere/${name}_nuclei.csv)" -ge "$(wc -l <masked/${name}_nuclei.csv)" ] && echo "at least as many everywhere"
command -v vips >/dev/null || { echo "needs vips" >&2; exit 77; }
vips black black.v 2048 2048 --bands 3 && vips linear black.v grey.v "1 1 1" "240 240 240" --uchar &&
    vips tiffsave grey.v glass.tiff --compression jpeg --tile --tile-width 256 --tile-height 256 --pyramid --xres 4000 --yres 4000
microtome nuclei -q glass.tiff -o glass
cat glass/glass_nuclei.csv
grep -c Feature glass/glass_nuclei.geojson
