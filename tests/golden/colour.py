#!/usr/bin/env python3
"""Prints the constants of src/diffusion/colour.c, and what a pixel becomes, for tests/unit/test_diffusion.c:

  colour.py train.tar     with the IDC patches of Janowczyk and Madabhushi
"""
import io
import random
import sys
import tarfile

import numpy as np
from PIL import Image

with tarfile.open(sys.argv[1]) as tar:
    members = [member for member in tar.getmembers() if member.name.endswith(".png")]
    random.seed(7)
    random.shuffle(members)
    patches = []
    for member in members[500:]:
        image = Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
        if image.size == (50, 50):
            patches.append(np.asarray(image.resize((32, 32), Image.BILINEAR)))
pixels = np.stack(patches).reshape(-1, 3) / 127.5 - 1
variances, axes = np.linalg.eigh(np.cov(pixels.T))
order = np.argsort(-variances)
axes = axes[:, order].T
axes = (axes * np.sign(axes.sum(1, keepdims=True))).round(7)
mean, deviation = pixels.mean(0).round(4), np.sqrt(variances[order]).round(4)
print(len(patches), "patches")
print("mean", mean, "deviation", deviation)
print("axis", axes.tolist())
for name, learnt in [("apart", (0.5, 0.5, 0.5)), ("graded", (0.7, 0.35, 0.175))]:
    print("0.2 -0.4 0.9 becomes", name, axes @ (np.array([0.2, -0.4, 0.9]) - mean) * learnt / deviation)
