#!/usr/bin/python3
"""Writes the golden fits and normalised images of tests/unit/test_stain.c with numpy, skimage and
sklearn: independent of the program. Images are crops of CAMELYON16 material from DIDSR/dldp (CC0).
Usage: make.py FOLDER   (holds stain_template.png and patches/)"""
import os
import sys

import numpy as np
from PIL import Image
from skimage.color import lab2rgb, rgb2lab
from sklearn.decomposition import DictionaryLearning

here = os.path.dirname(os.path.abspath(__file__))
folder = sys.argv[1]


def load(path):
    return np.array(Image.open(os.path.join(folder, path)).convert("RGB"))


def density(rgb):
    return -np.log(np.maximum(rgb, 1) / 255.0).reshape(-1, 3)


def tissue(rgb):
    return density(rgb)[(rgb2lab(rgb)[..., 0] < 80).ravel()]


def ordered(he):
    he = np.array(he)
    if he[0, 0] < he[1, 0]:
        he = he[::-1]
    return he / np.linalg.norm(he, axis=1, keepdims=True)


def macenko(rgb):
    od = tissue(rgb)
    vectors = np.linalg.eigh(np.cov(od, rowvar=False))[1][:, [2, 1]]
    vectors = vectors * np.where(vectors[0] < 0, -1, 1)
    projected = od @ vectors
    angles = np.percentile(np.arctan2(projected[:, 1], projected[:, 0]), [1, 99])
    return ordered([vectors @ [np.cos(a), np.sin(a)] for a in angles])


def vahadane(rgb):
    start = ordered([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11]])
    od = tissue(rgb)
    learner = DictionaryLearning(
        n_components=2, alpha=0.1, fit_algorithm="cd", positive_code=True, positive_dict=True,
        max_iter=300, tol=1e-9, code_init=np.maximum(od @ np.linalg.pinv(start), 0), dict_init=start)
    return ordered(learner.fit(od).components_)


def concentrations(rgb, he):
    return np.linalg.lstsq(he.T, density(rgb).T, rcond=None)[0]


def normalise(rgb, he, target, target_he):
    c = concentrations(rgb, he)
    c *= (np.percentile(concentrations(target, target_he), 99, axis=1) / np.percentile(c, 99, axis=1))[:, None]
    out = 255 * np.exp(-(c.T @ target_he))
    return np.rint(np.clip(out, 0, 255)).astype(np.uint8).reshape(rgb.shape)


def reinhard_fit(rgb):
    lab = rgb2lab(rgb).reshape(-1, 3)
    lab = lab[lab[:, 0] < 80]
    return lab.mean(0), lab.std(0)


def reinhard(rgb, target):
    """Means and deviations of tissue, as in HistomicsTK with glass as mask_out, which it leaves as it
    is; the border of its mask is a smooth step of lightness from 80 to 90 here."""
    lab, (mean, std), (target_mean, target_std) = rgb2lab(rgb), reinhard_fit(rgb), reinhard_fit(target)
    moved = 255 * np.clip(lab2rgb((lab - mean) * (target_std / std) + target_mean), 0, 1)
    x = np.clip((90 - lab[..., :1]) / 10, 0, 1)
    share = x * x * (3 - 2 * x)
    return np.rint(share * moved + (1 - share) * rgb).astype(np.uint8)


def save(name, rgb):
    Image.fromarray(rgb).save(os.path.join(here, name + ".png"), optimize=True)


template = load("stain_template.png")
patch = "patches/tumor/" + sorted(os.listdir(os.path.join(folder, "patches/tumor")))[0]
source = load(patch)[64:192, 64:192]
target = template[64:192, 64:192]
save("source", source)
save("target", target)
with open(os.path.join(here, "fits.txt"), "w") as out:
    for name, rgb in (("source", source), ("target", target), ("template", template)):
        for method, he in (("macenko", macenko(rgb)), ("vahadane", vahadane(rgb))):
            p99 = np.percentile(concentrations(rgb, he), 99, axis=1)
            print(name, method, *("%.6f" % v for v in [*he.ravel(), *p99]), file=out)
        mean, std = reinhard_fit(rgb)
        print(name, "reinhard", *("%.6f" % v for v in [*mean, *std, 0, 0]), file=out)
save("macenko", normalise(source, macenko(source), target, macenko(target)))
save("reinhard", reinhard(source, target))
