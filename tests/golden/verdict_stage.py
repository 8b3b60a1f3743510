#!/usr/bin/python3
"""Writes verdict/stage.json: masks with the sizes of their lesions by scipy and scikit-image, nodes with the stage of
their patient straight from CAMELYON17's rules, and quadratic weighted kappas of stages by scikit-learn."""
import itertools, json, os
import numpy as np
from scipy import ndimage
from skimage.measure import regionprops
from sklearn.metrics import cohen_kappa_score

STAGES = ["pN0", "pN0(i+)", "pN1mi", "pN1", "pN2"]
ALL = np.ones((3, 3), int)

def sizes(mask, um_per_px, join_um):
    """Diameter, area and centre of every lesion, largest first."""
    radius = join_um / 2 / um_per_px
    margin = int(radius) + 2
    wide = np.pad(mask, margin)
    grown = ndimage.distance_transform_edt(~wide) <= radius if radius >= 1 else wide
    grown = ndimage.binary_fill_holes(grown, ALL)
    labels, _ = ndimage.label(grown, ALL)
    closed = ndimage.distance_transform_edt(grown) > radius if radius >= 1 else grown
    labels = (labels * (wide | closed))[margin:-margin, margin:-margin]
    found = [(r.axis_major_length * um_per_px, float(r.area) * um_per_px ** 2, r.centroid[1], r.centroid[0])
             for r in regionprops(labels)]
    return sorted(found, key=lambda r: (-r[0], r[3], r[2]))

def mask_case(rng, width, height, um_per_px, join_um, blobs, rings):
    y, x = np.mgrid[:height, :width]
    mask = np.zeros((height, width), bool)
    for _ in range(blobs):
        cx, cy, a, b, turn = *rng.uniform(0, (width, height)), *rng.uniform(0.5, 9, 2), rng.uniform(0, np.pi)
        u, v = (x - cx) * np.cos(turn) + (y - cy) * np.sin(turn), (y - cy) * np.cos(turn) - (x - cx) * np.sin(turn)
        mask |= (u / a) ** 2 + (v / b) ** 2 <= 1
    for _ in range(rings):
        cx, cy, r = *rng.uniform(12, (width - 12, height - 12)), rng.uniform(6, 12)
        far = np.hypot(x - cx, y - cy)
        mask |= (far <= r) & (far >= r - 2) & ~((x > cx) & (abs(y - cy) < 2))  # open at the right
    return {"width": width, "height": height, "um_per_px": um_per_px, "join_um": join_um,
            "rows": ["".join("#" if v else "." for v in row) for row in mask],
            "lesions": sizes(mask, um_per_px, join_um)}

def stage(nodes):
    """nodes: how many are negative, itc, micro, macro."""
    _, itc, micro, macro = nodes
    if macro:
        return "pN1" if micro + macro <= 3 else "pN2"
    return "pN1mi" if micro else "pN0(i+)" if itc else "pN0"

def kappa_case(rng, n, right):
    truth = rng.integers(5, size=n)
    called = np.where(rng.random(n) < right, truth, rng.integers(5, size=n))
    return {"truth": truth.tolist(), "called": called.tolist(),
            "kappa": cohen_kappa_score(truth, called, labels=np.arange(5), weights="quadratic")}

rng = np.random.default_rng(23)
masks = [mask_case(rng, 90, 70, 8, 75, 7, 2), mask_case(rng, 60, 60, 16, 75, 12, 1), mask_case(rng, 40, 30, 100, 75, 5, 0),
         mask_case(rng, 80, 50, 8, 0, 9, 1), mask_case(rng, 30, 20, 8, 75, 0, 0)]
nodes = [n for n in itertools.product(range(6), repeat=4) if sum(n) == 5]
stages = [[*n, STAGES.index(stage(n))] for n in nodes]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "stage.json")
with open(path, "w") as f:
    json.dump({"masks": masks, "stages": stages, "kappa": [kappa_case(rng, 100, 0.7), kappa_case(rng, 20, 0.2)]}, f,
              separators=(",", ":"))
    f.write("\n")
