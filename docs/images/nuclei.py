#!/usr/bin/env python3
"""Makes docs/images/nuclei.jpg: images side by side with the outlines that `microtome nuclei IMAGES -o FOLDER` found.

    docs/images/nuclei.py FOLDER IMAGE...

The pictures of the documentation are CAMELYON16 patches from DIDSR/dldp (CC0). Needs numpy and Pillow."""
import os
import sys

import numpy as np
from PIL import Image

SIDE, GAP = 512, 10
here = os.path.dirname(os.path.abspath(__file__))
pictures = []
for path in sys.argv[2:]:
    stem = os.path.splitext(os.path.basename(path))[0]
    labels = np.array(Image.open(os.path.join(sys.argv[1], stem + "_labels.png")))
    rgb = np.array(Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.BICUBIC))
    labels = labels[np.arange(SIDE) * labels.shape[0] // SIDE][:, np.arange(SIDE) * labels.shape[1] // SIDE]
    edge = np.zeros(labels.shape, bool)
    edge[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    edge[1:] |= labels[1:] != labels[:-1]
    rgb[edge] = (0, 255, 0)
    pictures += [rgb, np.full((SIDE, GAP, 3), 255, np.uint8)]
picture = Image.fromarray(np.hstack(pictures[:-1]))
picture.save(os.path.join(here, "nuclei.jpg"), quality=88)
