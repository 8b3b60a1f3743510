"""Nuclei of images with numpy, scipy and scikit-image, in the steps of microtome: labels as PNG, features as CSV.

    skimage_nuclei.py OUT IMAGE...      (0.25 um/px)
"""
import csv
import os
import sys

import numpy as np
import skimage
from scipy import ndimage
from skimage import feature, filters, io, measure, morphology, segmentation

MPP, LEVELS = 0.25, 32
STAINS = np.array([[0.651, 0.701, 0.290], [0.216, 0.801, 0.558]])
UNMIX = np.linalg.pinv((STAINS / np.linalg.norm(STAINS, axis=1, keepdims=True)).T)[0].astype(np.float32)
DENSITY = -np.log(np.maximum(np.arange(256), 1) / 255).astype(np.float32)
DISC = morphology.disk(3)
NAMES = ["label", "area", "perimeter", "eccentricity", "axis_major_length", "axis_minor_length", "solidity",
         "intensity_mean", "centroid", "bbox"]


def local_threshold(plane, tissue):
    """Between the means of the two classes in a window, from the mean of all, improved twice."""
    window = int(30 / MPP) // 2 * 2 + 1
    mask = np.zeros(plane.shape, bool)
    for _ in range(3):
        means = []
        for part in (tissue & ~mask, tissue & mask):
            weight = ndimage.uniform_filter(part.astype(np.float32), window)
            means.append(ndimage.uniform_filter(np.where(part, plane, 0), window) / np.maximum(weight, 1e-9))
        gap = np.where(means[1] > 0, means[1] - means[0], 0)
        mask = tissue & (plane > np.maximum(means[0] + np.maximum(0.43 * gap, 0.1), 0.15))
    return mask


def search(rgb, amount, tissue, least_um2):
    plane = filters.gaussian(np.where(tissue, amount, 0), 0.35 / MPP)
    mask = local_threshold(plane, tissue)
    mask = ndimage.binary_opening(morphology.remove_small_holes(mask, max_size=int(30 / MPP**2)), DISC)
    land = filters.gaussian(ndimage.distance_transform_edt(mask).astype(np.float32), 0.3 / MPP)
    land *= filters.gaussian(plane, 0.9 / MPP)
    tops = feature.peak_local_max(land, min_distance=int(3 / MPP) // 2, labels=mask.astype(int), exclude_border=False)
    markers = np.zeros(mask.shape, np.int32)
    markers[tuple(tops.T)] = np.arange(1, len(tops) + 1)
    labels = segmentation.watershed(-land, markers, mask=mask)
    density = DENSITY[rgb]
    red, green = (np.bincount(labels.ravel(), density[..., c].ravel()) for c in (0, 1))
    area = np.bincount(labels.ravel()) * MPP**2
    keep = (area >= least_um2) & (area <= 600) & (red >= 0.42 * green) & (red <= 1.2 * green)
    keep[0] = False
    return np.where(keep[labels], labels, 0)


def find(rgb, amount):
    tissue = rgb[..., 1] <= 218
    labels = search(rgb, amount, tissue, 8)
    left = tissue & (ndimage.distance_transform_edt(labels == 0) > 0.75 / MPP)
    pale = search(rgb, amount, left, 15)
    convex = [region.label for region in measure.regionprops(pale) if region.solidity >= 0.85]
    labels = np.where(np.isin(pale, convex), pale + labels.max(), labels)
    return segmentation.relabel_sequential(labels)[0]


def texture(region, levels):
    """Pairs with both pixels in the nucleus."""
    inside = np.where(region.image, levels[region.slice], LEVELS).astype(np.uint8)
    counts = feature.graycomatrix(inside, [2], [0, np.pi / 4, np.pi / 2, 3 * np.pi / 4], LEVELS + 1, symmetric=True)
    counts = counts[:LEVELS, :LEVELS].astype(float)
    counts /= np.maximum(counts.sum(axis=(0, 1), keepdims=True), 1)
    return [feature.graycoprops(counts, name).mean() for name in ("ASM", "contrast", "correlation")]


print("skimage", skimage.__version__)
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for path in sys.argv[2:]:
    rgb = io.imread(path)[..., :3]
    amount = np.maximum(DENSITY[rgb] @ UNMIX, 0)
    labels = find(rgb, amount)
    levels = np.minimum((amount * 10).astype(int), LEVELS - 1)
    stem = os.path.join(out, os.path.splitext(os.path.basename(path))[0])
    table = measure.regionprops_table(labels, amount, properties=NAMES)
    textures = [texture(region, levels) for region in measure.regionprops(labels)]
    with open(stem + "_nuclei.csv", "w") as file:
        writer = csv.writer(file)
        writer.writerow([*table, "asm", "contrast", "correlation"])
        writer.writerows([*row, *more] for row, more in zip(zip(*table.values()), textures))
    io.imsave(stem + "_labels.png", labels.astype(np.uint16), check_contrast=False)
