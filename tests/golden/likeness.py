#!/usr/bin/env python3
"""Writes likeness.json and likeness/*.png: what src/likeness must give, by numpy, scipy, scikit-learn and prdc.

  likeness.py             the golden values
  likeness.py FILE.tar    mean and standard deviation of every feature over the images of a tar file, as the lines
                          of src/likeness/feature_table.c, which were made from the IDC patches of Janowczyk and
                          Madabhushi (train.tar, 2,242 of its patches with at least 32 px on each side)

The features are defined in docs/likeness.md; this is a second implementation of that text.
"""
import io
import json
import pathlib
import sys
import tarfile

import numpy as np
from PIL import Image
from scipy.ndimage import label

STAINS = np.array([[0.651, 0.701, 0.290], [0.216, 0.801, 0.558]])
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
TILE, LEVELS, FLAT, FLOOR = 64, 16, 1e-6, 1e-8


def unmix():
    unit = STAINS / np.linalg.norm(STAINS, axis=1, keepdims=True)
    rest = np.cross(unit[0], unit[1])
    return np.linalg.inv(np.vstack([unit, rest / np.linalg.norm(rest)]))


def moments(plane):
    mean, std = plane.mean(), plane.std()
    return [mean, std, np.arcsinh(((plane - mean) ** 3).mean() / std**3) if std > FLAT else 0.0]


def correlation(a, b):
    both = a.std() * b.std()
    return ((a - a.mean()) * (b - b.mean())).mean() / both if a.std() > FLAT and b.std() > FLAT else 0.0


def apart(a, b):
    return np.log10(1 - correlation(a, b) + 1e-3)


def log_power(power):
    return np.log10(power + FLOOR)


def starts(side, tile):
    n = -(-side // tile)
    return [0] if n == 1 else [i * (side - tile) // (n - 1) for i in range(n)]


def tiles(plane):
    tile = min(TILE, *plane.shape)
    bell = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(tile) + 0.5) / tile)
    window = np.outer(bell, bell)
    for y in starts(plane.shape[0], tile):
        for x in starts(plane.shape[1], tile):
            part = plane[y : y + tile, x : x + tile]
            yield (part - (part * window).sum() / window.sum()) * window / np.sqrt((window**2).sum())


def spectrum(plane):
    return np.mean([np.abs(np.fft.fft2(part)) ** 2 for part in tiles(plane)], axis=0)


def power_at(plane, fx, fy):
    parts = list(tiles(plane))
    at = np.arange(parts[0].shape[0])
    wave = np.exp(-2j * np.pi * (fx * at[None, :] + fy * at[:, None]))
    return np.mean([abs((part * wave).sum()) ** 2 for part in parts])


def band(power, low, high):
    n = power.shape[0]
    f = np.minimum(np.arange(n), n - np.arange(n)) / n
    radius = np.sqrt(f[:, None] ** 2 + f[None, :] ** 2) + 1e-12
    return power[(radius >= low) & (radius < high)].mean()


def gradient_features(grey):
    gx = (grey[1:-1, 2:] - grey[1:-1, :-2]) / 2
    gy = (grey[2:, 1:-1] - grey[:-2, 1:-1]) / 2
    size = np.hypot(gx, gy)
    mean, energy = size.mean(), (size**2).sum()
    spread = size.std() / mean if mean > FLAT else 0.0
    if energy <= 1e-9:
        return [log_power(mean**2) / 2, spread, 0.0, 0.0]
    coherence = np.hypot((gx**2 - gy**2).sum(), (2 * gx * gy).sum()) / energy
    axes = (size**2 * np.cos(4 * np.arctan2(gy, gx))).sum() / energy
    return [log_power(mean**2) / 2, spread, coherence, axes]


def cooccurrence(grey, step):
    levels = np.clip((grey * LEVELS).astype(int), 0, LEVELS - 1)
    counts = np.zeros((LEVELS, LEVELS))
    np.add.at(counts, (levels[:, :-step].ravel(), levels[:, step:].ravel()), 1)
    np.add.at(counts, (levels[:-step].ravel(), levels[step:].ravel()), 1)
    p = (counts + counts.T) / (2 * counts.sum())
    i = np.arange(float(LEVELS))
    mean = (p.sum(1) * i).sum()
    variance = (p.sum(1) * (i - mean) ** 2).sum()
    contrast = (p * (i[:, None] - i[None, :]) ** 2).sum()
    alike = (p * np.outer(i - mean, i - mean)).sum() / variance if variance > 1e-12 else 1.0
    return [np.log10(contrast + 1e-3), alike, np.log10((p * p).sum())]


def smoothed(plane):
    h, w = plane.shape
    taps = np.array([1, 4, 6, 4, 1]) / 16
    wide = np.pad(plane, 2, mode="reflect")
    wide = sum(taps[i] * wide[:, i : i + w] for i in range(5))
    return sum(taps[i] * wide[i : i + h] for i in range(5))


def between(plane):
    """Otsu's threshold over 128 bins of density 0 to 2."""
    share = np.bincount(np.clip((plane * 64).astype(int), 0, 127).ravel(), minlength=128) / plane.size
    weight, sums = np.cumsum(share), np.cumsum(share * np.arange(128))
    best, found = -1.0, 0
    for i in range(127):
        if weight[i] <= 0 or weight[i] >= 1 - 1e-12:
            continue
        gap = (sums[-1] * weight[i] - sums[i]) ** 2 / (weight[i] * (1 - weight[i]))
        if gap > best + 1e-12:
            best, found = gap, i
    return (found + 1) / 64


def dark_features(hematoxylin):
    plane = smoothed(hematoxylin)
    mask = plane > max(between(plane), 0.1)
    sizes = np.bincount(label(mask)[0].ravel())[1:]
    sizes = sizes[sizes >= 8]
    area, n, px = sizes.sum(), len(sizes), plane.size
    contrast = plane[mask].mean() - plane[~mask].mean() if mask.any() and not mask.all() else 0.0
    return [area / px, np.sqrt(n / px * 2500), np.log10((area / n if n else 0) + 8), contrast]


def patchiness(hematoxylin):
    plane = smoothed(hematoxylin)
    h, w = plane.shape
    means = [
        plane[i * h // 4 : (i + 1) * h // 4, j * w // 4 : (j + 1) * w // 4].mean() for i in range(4) for j in range(4)
    ]
    return np.log10(np.std(means) + 1e-3)


def power_features(rgb, grey):
    power, chroma = spectrum(grey), spectrum(rgb[..., 0] - rgb[..., 2])
    bands = [band(power, low, 2 * low if low < 0.5 else 9) for low in (0.5, 0.25, 0.125, 0.0625, 0.03125)]
    two = np.mean([power_at(grey, *f) for f in ((0.5, 0), (0, 0.5), (0.5, 0.5))])
    four = ((0.25, 0), (0, 0.25), (0.25, 0.25), (0.25, 0.5), (0.5, 0.25))
    four = np.mean([power_at(grey, *f) for f in four])
    return [
        *(log_power(power) for power in bands),
        log_power(band(chroma, 0.25, 0.5)),
        log_power(band(chroma, 0.125, 0.25)),
        log_power(two) - log_power(bands[1]),
        log_power(four) - log_power((bands[1] + bands[2]) / 2),
    ]


def features(image):
    rgb = image.astype(float) / 255
    stains = -np.log(np.maximum(image.astype(float), 1) / 255) @ unmix()
    grey = rgb @ np.array([0.299, 0.587, 0.114])
    h, e = stains[..., 0], stains[..., 1]
    r, g, b = (rgb[..., c] for c in range(3))
    return np.array(
        [
            *(value for plane in (r, g, b, h, e, stains[..., 2]) for value in moments(plane)),
            *np.quantile(h, QUANTILES),
            *np.quantile(grey, QUANTILES),
            *(apart(r, g), apart(g, b), apart(r, b), correlation(h, e)),
            *gradient_features(grey),
            *cooccurrence(grey, 1),
            *cooccurrence(grey, 4),
            *power_features(rgb, grey),
            *dark_features(h),
            np.sqrt((grey > 0.86).mean()),
            patchiness(h),
        ]
    )


def names():
    out = [f"{p}.{m}" for p in ("red", "green", "blue") for m in ("mean", "std", "skew")]
    out += [f"{p}.{m}" for p in ("hematoxylin", "eosin", "residual") for m in ("mean", "std", "skew")]
    out += [f"{p}.q{round(100 * q):02d}" for p in ("hematoxylin", "grey") for q in QUANTILES]
    out += ["apart.red_green", "apart.green_blue", "apart.red_blue", "corr.hematoxylin_eosin"]
    out += ["gradient.mean", "gradient.spread", "gradient.coherence", "gradient.axes"]
    out += [f"glcm{d}.{m}" for d in (1, 4) for m in ("contrast", "correlation", "asm")]
    out += ["power.corner", "power.2_4px", "power.4_8px", "power.8_16px", "power.16_32px"]
    out += ["chroma.2_4px", "chroma.4_8px", "grid.2px", "grid.4px"]
    return out + ["dark.coverage", "dark.count", "dark.area", "dark.contrast", "bright.share", "patchiness"]


def read_tar(path):
    with tarfile.open(path) as tar:
        for entry in tar:
            if entry.name.endswith(".png"):
                image = np.asarray(Image.open(io.BytesIO(tar.extractfile(entry).read())).convert("RGB"))
                if min(image.shape[:2]) >= 32:
                    yield image


def print_table(path):
    values = np.array([features(image) for image in read_tar(path)])
    for name, mean, std in zip(names(), values.mean(0), values.std(0)):
        print(f'    {{ "{name}", {mean:.4g}, {std:.4g} }},')


def tissue(width, height, seed):
    """Something like tissue: pink of several sizes, blue blobs, a bright hole."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    pink = 0.5 + 0.15 * np.sin(x / 5 + seed) * np.cos(y / 7) + 0.05 * rng.standard_normal((height, width))
    blue = 0.1 + 0.03 * rng.standard_normal((height, width))
    for _ in range(width * height // 250):
        cx, cy, size = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(2, 4)
        blue += 0.7 * np.exp(-(((x - cx) ** 2 + (y - cy) ** 2) / size**2))
    hole = (x - 0.7 * width) ** 2 + (y - 0.3 * height) ** 2 < (width / 7) ** 2
    unit = STAINS / np.linalg.norm(STAINS, axis=1, keepdims=True)
    density = np.where(hole[..., None], 0.05, pink[..., None] * unit[1] + blue[..., None] * unit[0])
    return np.clip(np.rint(255 * np.exp(-density)), 0, 255).astype(np.uint8)


def drawn(n, d, shift):
    """As test_likeness_distances.c draws it."""
    i, j = np.meshgrid(np.arange(n), np.arange(d), indexing="ij")
    return np.sin(1.7 * i + 0.9 * j + shift) + 0.5 * np.cos(0.37 * i * (j % 7) + shift) + 0.3 * shift * (j % 3)


def frechet(a, b):
    from scipy.linalg import sqrtm

    gap, ca, cb = a.mean(0) - b.mean(0), np.cov(a.T), np.cov(b.T)
    return float(gap @ gap + np.trace(ca + cb) - 2 * np.real(np.trace(sqrtm(ca @ cb))))


def kernel_distance(a, b):
    from sklearn.metrics.pairwise import polynomial_kernel

    n, m = len(a), len(b)
    aa, bb, ab = (polynomial_kernel(x, y, degree=3, coef0=1) for x, y in ((a, a), (b, b), (a, b)))
    same = (aa.sum() - np.trace(aa)) / (n * (n - 1)) + (bb.sum() - np.trace(bb)) / (m * (m - 1))
    return float(same - 2 * ab.mean())


def golden():
    from prdc import compute_prdc
    from sklearn.linear_model import LogisticRegression

    here = pathlib.Path(__file__).parent
    images = {f"{w}x{h}": tissue(w, h, seed) for seed, (w, h) in enumerate(((32, 32), (50, 50), (64, 64), (150, 70)))}
    images["flat"] = np.full((32, 32, 3), 200, np.uint8)
    for name, image in images.items():
        Image.fromarray(image).save(here / "likeness" / f"{name}.png", optimize=True)
    a, b = drawn(60, 6, 0), drawn(45, 6, 0.8)
    x, y = np.vstack([a, b]), np.r_[np.zeros(60), np.ones(45)]
    fit = LogisticRegression(C=1, tol=1e-12, max_iter=100000).fit(x, y)
    both = compute_prdc(a, b, 5)
    out = {
        "made_by": "tests/golden/likeness.py: numpy, scipy, scikit-learn, prdc",
        "names": names(),
        "features": {name: features(image).tolist() for name, image in images.items()},
        "frechet": frechet(a, b),
        "kernel": kernel_distance(a, b),
        **{key: float(value) for key, value in both.items()},
        "logistic_weights": fit.coef_[0].tolist(),
        "logistic_intercept": float(fit.intercept_[0]),
    }
    (here / "likeness.json").write_text(json.dumps(out, indent=1) + "\n")


if len(sys.argv) > 1:
    print_table(sys.argv[1])
else:
    golden()
