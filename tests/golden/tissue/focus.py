#!/usr/bin/python3
"""Writes focus.json: the variance of the Laplacian of parts of overview.png (as PIL's "L"), by
scipy.ndimage.laplace, whose border repeats the outermost pixels. Needs python3-numpy, python3-scipy
and python3-pil."""
import json
import os

import numpy as np
from PIL import Image
from scipy import ndimage

here = os.path.dirname(os.path.abspath(__file__))
grey = np.asarray(Image.open(os.path.join(here, "overview.png")).convert("L")).astype(np.int32)
rows = []
for x, y, width, height in [(0, 0, 111, 148), (20, 30, 64, 64), (60, 80, 40, 50), (0, 0, 16, 16)]:
    part = grey[y:y + height, x:x + width]
    rows.append({"x": x, "y": y, "width": width, "height": height,
                 "variance": float(ndimage.laplace(part).var())})
with open(os.path.join(here, "focus.json"), "w") as f:
    json.dump(rows, f, indent=1)
    f.write("\n")
