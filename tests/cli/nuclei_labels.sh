# Nuclei of other programs: the same nuclei as GeoJSON with classes, as HoVer-Net's JSON, as .npy and
# as a 16-bit image give the same measurements.
python=/usr/bin/python3
$python -c 'import numpy, PIL' 2>/dev/null || { echo "needs python3-numpy and python3-pil" >&2; exit 77; }
microtome phantom -q -o c --slides 1 --size 1024 --seed 3 --nuclei || exit
slide=$(ls c/slides/*.tiff) name=$(basename c/slides/*.tiff .tiff)
measure() { microtome nuclei -q "$slide" -o "$1" --labels "$2" --truth c/nuclei "${@:3}" | sed -E 's/, [0-9.]+ per.*;/;/'; }
measure outlines c/nuclei
tail -n +2 outlines/${name}_nuclei.csv | cut -d, -f17 | sort | uniq -c
head -n 1 outlines/${name}_nuclei.csv
mkdir png npy hover
cp outlines/${name}_labels.png png/$name.png
$python - "$name" <<'P'
import json, sys
import numpy
from PIL import Image
name = sys.argv[1]
labels = numpy.array(Image.open(f"png/{name}.png")).astype(numpy.int32)
numpy.save(f"npy/{name}_labels.npy", labels * 70001)  # any numbers
nuclei = {}
for label in range(1, labels.max() + 1):
    # A contour through the pixels at the left end of each row, then at the right end: for shapes whose rows are one piece.
    rows, columns = numpy.nonzero(labels == label)
    left = [[int(columns[rows == y].min()), int(y)] for y in numpy.unique(rows)]
    right = [[int(columns[rows == y].max()), int(y)] for y in numpy.unique(rows)]
    nuclei[str(label)] = {"bbox": [[int(rows.min()), int(columns.min())], [int(rows.max()) + 1, int(columns.max()) + 1]],
                          "centroid": [float(columns.mean()), float(rows.mean())],
                          "contour": left + right[::-1], "type_prob": 1.0, "type": label % 3}
json.dump({"mag": None, "nuc": nuclei}, open(f"hover/{name}.json", "w"))
P
measure from_png png
measure from_npy npy
measure from_hover hover | sed -E 's/F1 (0.99.|1.000), AJI (0.9[5-9].|1.000), PQ (0.9[5-9].|1.000)/nearly all of it/'
table() { tail -n +2 "$1/${name}_nuclei.csv" | cut -d, -f2-15 | sort; }
cmp <(table outlines) <(table from_png) && cmp <(table outlines) <(table from_npy) && echo "the same measurements"
cmp outlines/${name}_labels.png from_png/${name}_labels.png && echo "the same labels"
tail -n +2 from_hover/${name}_nuclei.csv | cut -d, -f17 | sort -u | tr '\n' ' '; echo

echo "--- more nuclei than 16 bits can number"
$python -c '
import os, numpy
from PIL import Image
os.makedirs("many")
labels = numpy.zeros((130, 1032), numpy.int64)
labels[:, ::2] = 1 + numpy.arange(130 * 516).reshape(130, 516)
numpy.save("many/field.npy", labels)
Image.fromarray(numpy.full((130, 1032, 3), 150, numpy.uint8)).save("field.png")'
microtome nuclei field.png -o large --slide-mpp 1 --labels many --truth many 2>&1 | grep -v tiles
$python -c '
import numpy
labels = numpy.load("large/field_labels.npy")
print(labels.shape, labels.dtype, labels.max(), (labels > 0).sum(), sum(1 for _ in open("large/field_nuclei.csv")) - 1)'
ls large
