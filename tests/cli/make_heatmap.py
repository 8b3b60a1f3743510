"""make_heatmap.py FOLDER/SLIDE WIDTH HEIGHT CLASS,CLASS BOX...: a heatmap at stride 16 of 0.25 um/px
as 'microtome predict' writes it: the last class is 0.1, and P within BOX = COLUMN,ROW,WIDTH,HEIGHT,P,
or BOX,CLASS for the class of that number. The first column has no tissue."""
import json, os, struct, sys

folder, width, height, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(",")
cells = [[(0.1, len(classes) - 1)] * width for _ in range(height)]
for box in sys.argv[5:]:
    x, y, w, h, p, *own = [float(v) for v in box.split(",")]
    for row in range(int(y), int(y + h)):
        for column in range(int(x), int(x + w)):
            cells[row][column] = p, int(own[0]) if own else len(classes) - 1
values = []
for row in range(height):
    for column in range(width):
        p, own = cells[row][column]
        p = p if column > 0 else float("nan")
        values += [p if c == own else (1 - p) / max(len(classes) - 1, 1) for c in range(len(classes))]
os.makedirs(folder, exist_ok=True)
with open(folder + "/heatmap.npy", "wb") as f:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }" % (height, width, len(classes))
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n")
    f.write(struct.pack("<%df" % len(values), *values))
none = {"windows": 0, "r": 0, "mean": 0, "p95": 0, "max": 0, "flipped": 0}
facts = {"program": "make_heatmap.py", "slide": os.path.basename(folder), "path": "slide.tif",
         "width_l0": 16 * width, "height_l0": 16 * height, "mpp_l0": 0.25, "mpp": 0.25,
         "downsample": 1, "stride": 16, "origin": [8, 8], "window": 224, "width": width,
         "height": height, "classes": classes, "scored": height * (width - 1), "mode": "window",
         "models": "none", "model_hash": "0123456789abcdef", "options": "none",
         "check": None, "raw_check": None}
with open(folder + "/heatmap.json", "w") as f:
    json.dump(facts, f)
