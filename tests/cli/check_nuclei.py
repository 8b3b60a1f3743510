"""check_nuclei.py FOLDER NAME MPP: the files of one image agree: the 16-bit labels, the table and the
outlines show the same nuclei."""
import csv
import json
import sys

import numpy
from PIL import Image

folder, name, mpp = sys.argv[1], sys.argv[2], float(sys.argv[3])
image = Image.open(f"{folder}/{name}_labels.png")
assert image.mode in ("I;16", "I"), image.mode
labels = numpy.array(image).astype(int)
rows = list(csv.DictReader(open(f"{folder}/{name}_nuclei.csv")))
features = json.load(open(f"{folder}/{name}_nuclei.geojson"))["features"]
assert len(rows) == len(features) == labels.max() > 3, (len(rows), len(features), labels.max())


def shoelace(ring):
    x, y = numpy.array(ring).T
    return abs((x[:-1] * y[1:] - x[1:] * y[:-1]).sum()) / 2


for row, feature in zip(rows, features):
    y, x = numpy.nonzero(labels == int(row["label"]))
    assert abs(float(row["area_um2"]) - len(x) * mpp * mpp) < 1e-6, row
    assert abs(float(row["x_px"]) - (x.mean() + 0.5)) < 0.006, row
    assert abs(float(row["y_um"]) - (y.mean() + 0.5) * mpp) < 0.001, row
    polygons = feature["geometry"]["coordinates"]
    if feature["geometry"]["type"] == "Polygon":
        polygons = [polygons]
    area = sum(shoelace(p[0]) - sum(map(shoelace, p[1:])) for p in polygons)
    assert area == len(x), (row, area)
    assert feature["properties"]["objectType"] == "detection"
    measured = {m["name"]: m["value"] for m in feature["properties"]["measurements"]}
    for key, value in measured.items():
        assert abs(float(row[key]) - value) <= 1e-8 * max(1, abs(value)), (key, row)
print(f"{name}: labels, table and outlines agree")
