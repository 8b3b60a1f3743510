# Images: the labels, the table and the outlines; the same bytes on any number of threads; again:
# kept. Images as labels and as truth.
python=/usr/bin/python3
$python -c 'import numpy, PIL' 2>/dev/null || { echo "needs python3-numpy and python3-pil" >&2; exit 77; }
command -v vips >/dev/null || { echo "needs vips" >&2; exit 77; }
check() { $python "$SOURCE/tests/cli/check_nuclei.py" "$@"; }
numbers() { sed -E 's/[0-9]+(\.[0-9]+)?/N/g'; }
microtome phantom -q -o c --slides 1 --size 2048 --seed 1 || exit
slide=$(ls c/slides/*.tiff)
mkdir images
vips crop "$slide" images/a.png 800 900 400 300
vips crop "$slide" images/b.png 1000 1000 250 250
vips copy images/b.png images/c.png --xres 1 --yres 1
microtome nuclei -q images/ -o out --slide-mpp 0.25 | sed 's/: [0-9]* nuclei.*/: some nuclei/'
ls out
check out a 0.25
check out b 0.25
head -n 1 out/a_nuclei.csv
cut -d, -f2,3 out/slides.csv
cmp out/b_nuclei.csv out/c_nuclei.csv && cmp out/b_labels.png out/c_labels.png && echo "the same pixels, the same nuclei"
microtome nuclei -q images/ -o one --slide-mpp 0.25 --threads 1 >/dev/null
for file in out/*_*; do cmp "$file" "one/${file#out/}" || echo "threads matter"; done

echo "--- again: kept"
microtome nuclei images/ -o out --slide-mpp 0.25 2>&1 >/dev/null | numbers
cut -d, -f2,3 out/slides.csv
microtome nuclei -q images/ -o out --slide-mpp 0.25 --settings level=0.5 2>&1 | sed -E 's/(then|now): .*level=([0-9.]+).*/\1/'

echo "--- images as labels and truth"
microtome nuclei -q images/ -o again --slide-mpp 0.25 --labels out --truth out | sed -E 's/[0-9]+ nuclei.*;/nuclei;/'
cmp out/a_labels.png again/a_labels.png && echo "the labels are the same"
diff <(cut -d, -f1-16 again/a_nuclei.csv) out/a_nuclei.csv && echo "so is the table"
$python -c '
import json, sys
f = json.load(open("again/agreement.json"))
assert [s["slide"] for s in f["slides"]] == ["a", "b", "c"] and f["all"]["f1"] == f["all"]["pq"] == 1, f
assert f["all"]["truth"] == f["all"]["matched"] == sum(s["found"] for s in f["slides"]), f'

echo "--- at half the resolution: half the size, as many nuclei, give or take"
microtome nuclei -q images/a.png -o half --mpp 0.5 --slide-mpp 0.25 --json >half.json
$python -c '
import json
from PIL import Image
slide = json.load(open("half.json"))["slides"][0]
fine = sum(1 for _ in open("out/a_nuclei.csv")) - 1
assert Image.open("half/a_labels.png").size == (200, 150) and slide["mpp"] == 0.5, slide
assert 0.7 * fine < slide["nuclei"] < 1.3 * fine, (slide, fine)
assert slide["area_um2"]["mean"] > 10 and slide["state"] == "done", slide
print("yes")'
