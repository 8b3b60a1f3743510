# explain map --inside: the share of a map in a label image, against NumPy; images without one.
python3 - <<'PY' || { echo "no PIL" >&2; exit 77; }
import os
import numpy as np
from PIL import Image
rng = np.random.default_rng(1)
y, x = np.mgrid[:224, :224]
labels = np.zeros((224, 224), np.uint8)
image = rng.normal((225, 180, 210), 8, (224, 224, 3))
for i, (cy, cx) in enumerate(rng.integers(10, 214, (30, 2))):
    inside = (y - cy) ** 2 + (x - cx) ** 2 < 60
    image[inside], labels[inside] = rng.normal((110, 70, 150), 12), i + 1
Image.fromarray(image.clip(0, 255).astype(np.uint8)).save("x.png")
Image.fromarray(image.clip(0, 255).astype(np.uint8)[::-1]).save("y.png")
os.mkdir("nuclei")
Image.fromarray(labels).save("nuclei/x_labels.png")
PY
run() { microtome explain map --network scan_tiny --init-seed 1 --belief-steps 2 --belief-orders 1 --belief-subjects 1 -q "$@"; }

run x.png y.png --method ig,smoothgrad --ig-steps 4 --smooth-samples 3 -o out --inside nuclei | grep inside: | cut -d: -f1
python3 - <<'PY'
import json
import numpy as np
from PIL import Image
e = json.load(open("out/explain.json"))
mask = np.array(Image.open("nuclei/x_labels.png")) > 0
for i, m in enumerate(e["subjects"][0]["maps"]):
    raw = np.maximum(np.load(f"out/x/{m['name']}_raw.npy").astype(float), 0)
    share, area = raw[mask].sum() / raw.sum(), mask.mean()
    got = m["inside"]
    assert abs(got["map_share"] - share) < 1e-6 and abs(got["area_share"] - area) < 1e-12, (got, share, area)
    assert abs(got["enrichment"] - share / area) < 1e-5
    mean = e["summary"]["maps"][i]["inside"]  # y has none
    assert mean["subjects"] == 1 and mean["map_share"] == got["map_share"]
for i, mean in enumerate(e["summary"]["maps"]):  # scores of the images, and of their mean colours
    ends = np.mean([[s["maps"][i]["belief"]["deletion_curve"][k] for k in (0, -1)] for s in e["subjects"]], 0)
    assert np.allclose([mean["score"], mean["blank_score"]], ends, rtol=1e-12)
    assert mean["verdict"].startswith(("cannot be told by deletion", "no explanation")) == (2 * ends[1] > ends[0])
print([m["inside"]["map_share"] for m in e["subjects"][1]["maps"]], "<b>Inside</b>" in open("out/index.html").read())
PY
run x.png -o none --inside missing || echo "exit $?"
