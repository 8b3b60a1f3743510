#!/usr/bin/env python3
"""Writes the golden files of tests/unit/test_nuclei_measure.c: rgb.png, labels.png and features.json, with numpy and
scikit-image (0.26): regionprops, graycomatrix and graycoprops on the same label image."""
import json
import os

import numpy as np
from PIL import Image
from skimage.feature import graycomatrix, graycoprops
from skimage.filters import gaussian
from skimage.measure import regionprops

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(18)
side, mpp, levels = 96, 0.25, 32

noise = np.stack([gaussian(rng.normal(size=(side, side)), 1.5) for _ in range(2)])
noise /= noise.std(axis=(1, 2), keepdims=True)
amounts = np.clip([1.1 + 0.6 * noise[0], 0.5 + 0.2 * noise[1]], 0, None)
stains = np.array([[0.651, 0.701, 0.290], [0.216, 0.801, 0.558]])
stains /= np.linalg.norm(stains, axis=1, keepdims=True)
rgb = np.clip(np.round(255 * np.exp(-np.einsum("khw,kc->hwc", amounts, stains))), 0, 255).astype(np.uint8)

y, x = np.mgrid[:side, :side]
labels = np.zeros((side, side), np.uint8)
shapes = [
    (x - 14) ** 2 + (y - 12) ** 2 <= 81,                                        # a disc
    ((x - 40 + (y - 14)) / 16) ** 2 + ((x - 40 - (y - 14)) / 6) ** 2 <= 1,      # an oblique ellipse
    (abs(x - 64) < 7) & (abs(y - 10) < 5),                                      # a rectangle
    (x == 80) & (y == 5),                                                       # a pixel
    (y == 20) & (x >= 76) & (x < 86),                                           # a line
    ((x - 15) ** 2 + (y - 45) ** 2 <= 121) & ((x - 15) ** 2 + (y - 45) ** 2 > 25),  # a ring
    ((x - 45) ** 2 + (y - 45) ** 2 <= 121) & ((x - 51) ** 2 + (y - 45) ** 2 > 64),  # a crescent
    ((x - 0) ** 2 + (y - 80) ** 2 <= 144),                                      # cut by the border
    ((x - 78) ** 2 + (y - 42) ** 2 <= 49) | ((x - 78) ** 2 + (y - 58) ** 2 <= 16),  # two pieces
    (abs(x - 30) <= 1) & (abs(y - 80) <= 9) | (abs(y - 80) <= 1) & (abs(x - 30) <= 9),  # a cross
    gaussian(rng.normal(size=(side, side)), 2) * (np.hypot(x - 66, y - 80) < 14) > 0.02,  # a ragged thing
    (x >= 90) & (y >= 90) & (x - y >= 0),                                       # a corner of the image
]
for k, shape in enumerate(shapes):
    labels[shape & (labels == 0)] = k + 1

density = -np.log(np.maximum(rgb, 1) / 255)
hematoxylin = np.maximum(density @ np.linalg.pinv(stains.T)[0], 0)
quantised = np.minimum((hematoxylin * 10).astype(int), levels - 1)


def texture(mask):
    """Pairs with both pixels in the mask: a level of its own for all others, whose row and column are dropped."""
    apart = round(0.5 / mpp)
    image = np.where(mask, quantised, levels).astype(np.uint8)
    counts = graycomatrix(image, [apart], [0, np.pi / 4, np.pi / 2, 3 * np.pi / 4], levels=levels + 1, symmetric=True)
    counts = counts[:levels, :levels].astype(float)
    counts = counts[..., counts.sum(axis=(0, 1, 2)) > 0]
    if counts.shape[3] == 0:
        return [None] * 3
    counts /= counts.sum(axis=(0, 1), keepdims=True)
    return [float(np.mean(graycoprops(counts, p))) for p in ("ASM", "contrast", "correlation")]


def region(r):
    mask = labels == r.label
    asm, contrast, correlation = texture(mask)
    return {"area": r.area * mpp**2, "perimeter": r.perimeter * mpp, "eccentricity": r.eccentricity,
            "major_axis": r.axis_major_length * mpp, "minor_axis": r.axis_minor_length * mpp, "solidity": r.solidity,
            "hematoxylin": hematoxylin[mask].mean(), "asm": asm, "contrast": contrast, "correlation": correlation,
            "x": r.centroid[1], "y": r.centroid[0], "left": r.bbox[1], "top": r.bbox[0], "right": r.bbox[3],
            "bottom": r.bbox[2]}


def rectangle():
    """graycoprops of a whole image of 8 levels, at several distances and angles."""
    image = rng.integers(0, 8, (11, 13)).astype(np.uint8)
    offsets = [(1, 0.0), (1, np.pi / 4), (2, np.pi / 2), (3, 3 * np.pi / 4)]
    out = {"width": 13, "levels": image.ravel().tolist(), "dx": [], "dy": [], "asm": [], "contrast": [],
           "correlation": []}
    for distance, angle in offsets:
        matrix = graycomatrix(image, [distance], [angle], levels=8, symmetric=True, normed=True)
        out["dx"].append(round(np.cos(angle) * distance))
        out["dy"].append(round(np.sin(angle) * distance))
        for name in ("asm", "contrast", "correlation"):
            out[name].append(float(graycoprops(matrix, "ASM" if name == "asm" else name)[0, 0]))
    return out


Image.fromarray(rgb).save(os.path.join(here, "rgb.png"), optimize=True)
Image.fromarray(labels).save(os.path.join(here, "labels.png"), optimize=True)
with open(os.path.join(here, "features.json"), "w") as out:
    json.dump({"mpp": mpp, "nuclei": [region(r) for r in regionprops(labels)], "rectangle": rectangle()}, out,
              indent=1, default=float)
    out.write("\n")
