#!/usr/bin/python3
"""Writes verdict/features.json: the two published sets of heatmap features, lesions by components
and by non-maximum suppression, computed with numpy, scipy and skimage on synthetic heatmaps."""
import json, os
import numpy as np
from scipy import ndimage, stats
from skimage import measure, morphology

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "features.json")

def heatmap(seed, height, width, top):
    """Float32 with NaN outside of the tissue; top: the highest probability."""
    rng = np.random.default_rng(seed)
    field = ndimage.gaussian_filter(rng.normal(size=(height, width)), 2.0)
    field = (field - field.min()) / (field.max() - field.min())
    p = np.round(np.clip(field ** 2 * 1.6 + 0.03 * rng.normal(size=field.shape), 0, 1) * top, 3)
    tissue = ndimage.gaussian_filter(rng.normal(size=(height, width)), 6.0) > -0.02
    return np.where(tissue, p, np.nan).astype(np.float32)

def regions(p, mask):
    return measure.regionprops(measure.label(mask, connectivity=2), intensity_image=p)

def fda(p, tissue, threshold):
    limits = [np.float32(t / 10) for t in range(5, 10)]
    out = [(p > t).sum() / tissue for t in limits]
    out += [np.maximum(p.astype(float) - float(t), 0).sum() / tissue for t in limits]
    found = sorted(regions(p, p > np.float32(threshold)), key=lambda r: -r.area)  # stable
    for k in range(2):
        if k >= len(found):
            out += [0] * 10
            continue
        r = found[k]
        y0, x0, y1, x1 = r.bbox
        out += [r.area, r.eccentricity, r.extent, r.bbox_area, r.major_axis_length, r.max_intensity,
                r.min_intensity, r.mean_intensity, (y1 - y0) / (x1 - x0), r.solidity]
    return [float(v) for v in out]

def five(values):
    values = np.array(values, float)
    odd = [stats.skew(values), stats.kurtosis(values)] if values.std() > 0 else [0, 0]
    return [values.max(), values.mean(), values.var(), *odd]

def wang(p, tissue):
    high, half = regions(p, p >= np.float32(0.9)), regions(p, p >= np.float32(0.5))
    if not high:
        return [0.0] * 31
    top = max(half, key=lambda r: r.area)
    out = [len(high), sum(r.area for r in high) / tissue, top.area, top.major_axis_length,
           (p >= np.float32(0.9)).sum(), np.mean([r.mean_intensity for r in high])]
    out += five([r.area for r in high]) + five([r.perimeter for r in high])
    out += five([r.eccentricity for r in high]) + five([r.extent for r in half])
    out += five([r.solidity for r in high])
    return [float(v) for v in out]

def components(p, threshold, opening, closing):
    mask = p > np.float32(threshold)
    if opening:
        mask = morphology.binary_opening(mask, morphology.disk(opening))
    if closing:
        mask = morphology.binary_closing(mask, morphology.disk(closing))
    return sorted(([float(r.max_intensity), r.area] for r in regions(p, mask)), key=lambda v: -v[0])

def suppression(p, stop, radius):
    p, out = p.copy(), []
    ys, xs = np.mgrid[:p.shape[0], :p.shape[1]]
    while True:
        y, x = np.unravel_index(np.argmax(p), p.shape)
        if not p[y, x] > np.float32(stop):
            return out
        out.append([float(p[y, x]), int(x), int(y)])
        p[(ys - y) ** 2 + (xs - x) ** 2 <= radius ** 2] = 0

def case(seed, height, width, top, threshold):
    raw = heatmap(seed, height, width, top)
    tissue = int((~np.isnan(raw)).sum())
    p = np.nan_to_num(raw, nan=0.0)
    return {"width": width, "height": height, "threshold": threshold, "tissue": tissue,
            "values": [None if np.isnan(v) else float(f"{v:.3f}") for v in raw.ravel()],
            "fda": fda(p, tissue, threshold), "wang": wang(p, tissue),
            "components": [{"open": o, "close": c, "scores": [s for s, _ in components(p, 0.6, o, c)]}
                           for o, c in ((0, 0), (1, 0), (0, 2), (1, 2))],
            "suppression": suppression(p, 0.5, 4.5)}

with open(PATH, "w") as f:
    json.dump({"cases": [case(1, 50, 60, 1.0, 0.9), case(2, 64, 40, 1.0, 0.5),
                         case(3, 40, 40, 0.85, 0.5), case(4, 30, 30, 0.3, 0.5)]},
              f, separators=(",", ":"))
    f.write("\n")
