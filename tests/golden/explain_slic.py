#!/usr/bin/python3
"""Writes explain/slic.png, a real patch (stain/source.png) stretched to all values from 0 to 255, and
its superpixels by scikit-image's slic: explain/slic_clusters.png (no smoothing, not connected),
explain/slic_segments.png (sigma 1, connected). 50 segments, compactness 20."""
import os
import numpy as np
from PIL import Image
from skimage.segmentation import slic

here = os.path.dirname(os.path.abspath(__file__))
image = np.array(Image.open(os.path.join(here, "stain", "source.png")).convert("RGB")).astype(float)
image = np.rint((image - image.min()) / (image.max() - image.min()) * 255).astype(np.uint8)
settings = {"n_segments": 50, "compactness": 20, "start_label": 0}
clusters = slic(image, sigma=0, enforce_connectivity=False, **settings)
segments = slic(image, sigma=1, **settings)
for name, pixels in (("slic", image), ("slic_clusters", clusters), ("slic_segments", segments)):
    Image.fromarray(pixels.astype(np.uint8)).save(os.path.join(here, "explain", name + ".png"))
