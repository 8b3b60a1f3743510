#!/usr/bin/python3
"""Writes verdict/froc.json: CAMELYON16's FROC rules on random masks and calls, with scipy and
skimage; and verdict/regions.json: skimage's measures of random regions."""
import json, os
import numpy as np
from scipy import ndimage
from skimage import measure

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict")
RATES = [0.25, 0.5, 1, 2, 4, 8]

def runs(mask):
    """[first pixel, length] of every run of set pixels, row-major."""
    flat = np.concatenate([[0], mask.ravel().astype(np.int8), [0]])
    change = np.flatnonzero(np.diff(flat))
    return [[int(a), int(b - a)] for a, b in zip(change[::2], change[1::2])]

def blobs(rng, height, width, sigma, share):
    field = ndimage.gaussian_filter(rng.normal(size=(height, width)), sigma)
    return field > np.quantile(field, 1 - share)

def lesions(mask, um_per_px):
    near = ndimage.distance_transform_edt(~mask) < 75 / (um_per_px * 2)
    labels = measure.label(ndimage.binary_fill_holes(near), connectivity=2)
    axes = [r.major_axis_length for r in measure.regionprops(labels)]
    return labels, [a < 275 / um_per_px for a in axes]

def judge(labels, isolated, calls, downsample):
    wrong, found = [], np.zeros(len(isolated))
    for score, x, y in calls:
        hit = labels[int(y / downsample), int(x / downsample)]
        if hit == 0:
            wrong.append(score)
        elif not isolated[hit - 1]:
            found[hit - 1] = max(found[hit - 1], score)
    return wrong, found.tolist()

def froc(slides):
    wrong = np.array(sum((s["wrong"] for s in slides), []))
    found = np.array(sum((s["found"] for s in slides), []))
    lesions = sum(s["lesions"] for s in slides)
    thresholds = sorted(set(wrong) | set(found))[1:]
    x = [(wrong >= t).sum() / len(slides) for t in thresholds] + [0]
    y = [(found >= t).sum() / lesions for t in thresholds] + [0]
    at = np.interp(RATES, x[::-1], y[::-1])
    return {"points": len(x), "at": at.tolist(), "score": float(np.mean(at)), "lesions": lesions}

def slide(rng, mpp, downsample):
    height, width = int(rng.integers(70, 110)), int(rng.integers(70, 140))
    mask = blobs(rng, height, width, 3.0, rng.choice([0.04, 0.1, 0.2]))
    if rng.random() < 0.3:
        mask = np.zeros_like(mask)
    mask[20:40, 30:50:2] |= rng.random() < 0.5
    labels, isolated = (lesions(mask, mpp * downsample) if mask.any()
                        else (np.zeros(mask.shape, int), []))
    n = int(rng.integers(0, 40))
    calls = [[float(np.round(rng.random(), 2)), float(np.round(rng.random() * width * downsample, 1)),
              float(np.round(rng.random() * height * downsample, 1))] for _ in range(n)]
    wrong, found = judge(labels, isolated, calls, downsample)
    return {"width": width, "height": height, "mask": runs(mask), "calls": calls, "wrong": wrong,
            "found": found, "lesions": int(sum(not i for i in isolated)),
            "isolated": [bool(i) for i in isolated], "labels_sum": int(labels.sum()),
            "labelled": int((labels > 0).sum())}

def case(seed, mpp, downsample, n):
    rng = np.random.default_rng(seed)
    slides = [slide(rng, mpp, downsample) for _ in range(n)]
    return {"mpp": mpp, "downsample": downsample, "slides": slides, **froc(slides)}

def region_case(seed, height, width, sigma, share):
    rng = np.random.default_rng(seed)
    mask = blobs(rng, height, width, sigma, share)
    labels = measure.label(mask)
    values = rng.random((height, width)).astype(np.float32).round(3)
    out = []
    for r in measure.regionprops(labels, intensity_image=values):
        out.append([int(r.area), *[int(v) for v in r.bbox], *r.centroid, r.major_axis_length,
                    float(r.eccentricity), r.extent, r.solidity, float(r.perimeter), float(r.min_intensity),
                    float(r.mean_intensity), float(r.max_intensity)])
    return {"width": width, "height": height, "mask": runs(mask),
            "values": [float(np.round(v, 3)) for v in values.ravel()], "regions": out}

def write(name, value):
    with open(os.path.join(FOLDER, name), "w") as f:
        json.dump(value, f, separators=(",", ":"))
        f.write("\n")

write("froc.json", {"cases": [case(1, 0.243, 32, 6), case(2, 0.5, 16, 5), case(3, 0.243, 32, 12)]})
write("regions.json", {"cases": [region_case(4, 40, 50, 1.0, 0.4), region_case(5, 60, 45, 2.0, 0.5),
                                 region_case(6, 7, 9, 0.3, 0.6), region_case(7, 1, 12, 0.5, 0.5)]})

def polygons(folder):
    """Lesions of real annotations (NCRF's JSON): pixel centres of level 5 inside the polygons, by
    matplotlib's point test, then the rules."""
    from matplotlib.path import Path

    def paint(mask, ring, value):
        low = np.maximum(np.floor(ring.min(0) / 32).astype(int), 0)
        high = np.ceil(ring.max(0) / 32).astype(int)
        x, y = np.meshgrid(*[np.arange(low[i], high[i]) for i in (0, 1)])
        inside = Path(ring).contains_points((np.column_stack([x.ravel(), y.ravel()]) + 0.5) * 32)
        mask[y.ravel()[inside], x.ravel()[inside]] = value

    out = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".json"):
            continue
        drawn = json.load(open(os.path.join(folder, name)))
        rings = {k: [np.array(r["vertices"], float) for r in drawn[k]] for k in ("positive", "negative")}
        width, height = np.ceil(np.concatenate(rings["positive"]).max(0) / 32).astype(int) + 12
        mask = np.zeros((height, width), bool)
        for kind in ("positive", "negative"):
            for ring in rings[kind]:
                paint(mask, ring, kind == "positive")
        labels, isolated = lesions(mask, 0.243 * 32)
        out[name] = [int(mask.sum()), int((labels > 0).sum()), len(isolated), int(sum(isolated))]
    return out

shared = os.path.join(os.environ.get("SHARED", "absent"), "data", "camelyon16", "polygons")
if os.path.isdir(shared):
    write("froc_real.json", polygons(shared))
