#!/usr/bin/python3
"""Writes the golden masks of tests/unit/test_tissue.c with skimage (0.19), OpenCV (4.8) and
openslide-python.
Usage: make.py CMU-1-Small-Region.svs   (OpenSlide test data, CC0)"""
import os
import sys

import cv2
import numpy as np
import openslide
from PIL import Image
from skimage import color, filters, morphology

here = os.path.dirname(os.path.abspath(__file__))


def save(name, mask):
    Image.fromarray(np.where(mask, 255, 0).astype(np.uint8)).save(os.path.join(here, name + ".png"), optimize=True)


slide = openslide.OpenSlide(sys.argv[1])
full = slide.read_region((0, 0), 0, slide.dimensions).convert("RGB")
rgb = np.array(full.resize((111, 148), Image.BOX))
Image.fromarray(rgb).save(os.path.join(here, "overview.png"), optimize=True)

otsu = filters.threshold_otsu
h, s, v = np.moveaxis(cv2.cvtColor(rgb, cv2.COLOR_RGB2HSV), 2, 0)
fda = (h >= otsu(h)) & (s >= otsu(s))
save("fda", fda)
save("fda_value", fda & (v >= 70) & (v <= otsu(v)))

grey = np.array(Image.fromarray(rgb).convert("L"))
t = otsu(grey[(grey > 0) & (grey < 255)])
glass = (grey > (196 if t > 229 else t)) | (grey <= 20)
save("process", ~morphology.binary_opening(glass, morphology.square(5)))

white = np.all([rgb[..., c] > otsu(rgb[..., c]) for c in range(3)], axis=0)
s = color.rgb2hsv(rgb)[..., 1]
save("ncrf", (s > otsu(s)) & ~white & np.all(rgb > 50, axis=2))

# Every hue, saturation and value, for the colour conversion: RGB beside its HSV.
cube = np.stack(np.meshgrid(*3 * [np.arange(0, 256, 15)], indexing="ij"), -1).reshape(-1, 3)
cube = ((cube * [1, 7, 11] + [0, 3, 5]) % 256).astype(np.uint8).reshape(1, -1, 3)
pair = np.concatenate([cube, cv2.cvtColor(cube, cv2.COLOR_RGB2HSV)])
Image.fromarray(pair).save(os.path.join(here, "hsv.png"), optimize=True)

rng = np.random.default_rng(7)
blobs = filters.gaussian(rng.random((97, 83)), 1.6) > 0.505
save("blobs", blobs)
disk = morphology.disk(3)
save("blobs_dilate", morphology.binary_dilation(blobs, disk))
save("blobs_erode", morphology.binary_erosion(blobs, disk))
save("blobs_close", morphology.binary_closing(blobs, disk))
save("blobs_open", morphology.binary_opening(blobs, disk))
save("blobs_large", morphology.remove_small_objects(blobs, 60, connectivity=2))
# Holes at the border are not holes for us: keep those out of the reference.
border = np.pad(blobs, 1, constant_values=False)
filled = morphology.remove_small_holes(border, 25, connectivity=2)[1:-1, 1:-1]
save("blobs_filled", filled)
