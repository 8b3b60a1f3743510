#!/usr/bin/python3
"""quality.py --data DIR [--microtome FILE] [-o DIR] [--slides N]: what 'microtome tissue --quality' finds of planted
artefacts, and how much clean tissue it marks; the tables of docs/tissue.md.

DIR contains slides/CMU-1-Small-Region.svs (OpenSlide's test data) and camelyon16/patches. Real pixels: that slide, which
is sharp, and a sheet of CAMELYON16 patches at 0.5 um/px; both also blurred by Gaussians of known sigma, made paler by a
factor of optical density, and with folds: strips where the light passes through the tissue beside it as well. Drawn
pixels: N slides of 'microtome phantom --artefacts' of 8192 px. Needs python3-numpy, python3-scipy, python3-openslide,
python3-pil and libvips-tools."""
import argparse
import glob
import os
import subprocess
import sys

import numpy as np
import openslide
from PIL import Image
from scipy import ndimage

KINDS = ["good", "blur", "fold", "pen", "bubble"]
MPP = 0.5


def shrink(image, n):
    h, w = image.shape[0] // n * n, image.shape[1] // n * n
    return image[:h, :w].reshape(h // n, n, w // n, n, 3).mean((1, 3))


def real_slide(data):
    slide = openslide.OpenSlide(data + "/slides/CMU-1-Small-Region.svs")
    return np.asarray(slide.read_region((0, 0), 0, slide.dimensions).convert("RGB")).astype(np.float32)


def sheet(data, side=20):
    """Patches of 64 um beside each other, glass around them."""
    names = sorted(glob.glob(data + "/camelyon16/patches/*/*.png"))
    patches = [np.asarray(Image.open(n).convert("RGB")).astype(np.float32) for n in names]
    patches = [shrink(p, 2) for p in patches if (p.min(-1) > 200).mean() < 0.1]  # all tissue
    order = np.random.default_rng(0).permutation(len(patches))
    rows = [np.concatenate([patches[order[(7 * i + j) % len(order)]] for j in range(side)], 1) for i in range(side)]
    return np.pad(np.concatenate(rows), ((512, 512), (512, 512), (0, 0)), constant_values=243)


def blurred(image, sigma_um):
    return ndimage.gaussian_filter(image, (sigma_um / MPP, sigma_um / MPP, 0))


def pale(image, factor):
    return 243 * (np.maximum(image, 1) / 243) ** factor


def folded(image, seed=1):
    """Six strips, 50 to 120 um wide and 0.5 mm long, in the tissue: the image and where they are."""
    rng = np.random.default_rng(seed)
    h, w = image.shape[:2]
    tissue = ndimage.uniform_filter(image.mean(-1), 81) < 205
    ys, xs = np.nonzero(tissue)
    yy, xx = np.mgrid[0:h, 0:w].astype(np.float32)
    out, where = image.copy(), np.zeros((h, w), bool)
    for width_um in (50, 65, 80, 95, 110, 120):
        k, angle = rng.integers(len(ys)), rng.uniform(0, np.pi)
        u = (xx - xs[k]) * np.cos(angle) + (yy - ys[k]) * np.sin(angle)
        v = (yy - ys[k]) * np.cos(angle) - (xx - xs[k]) * np.sin(angle)
        shift = [int(round(100 * np.sin(angle))), int(round(100 * np.cos(angle)))]  # 50 um aside
        above = np.roll(image, shift, (0, 1))
        strip = (abs(u + 20 * np.sin(v / 150)) < width_um / MPP / 2) & (abs(v) < 250 / MPP) & ~where
        strip &= tissue & np.roll(tissue, shift, (0, 1))
        out = np.where(strip[..., None], out * np.minimum(above / 243, 1), out)
        where |= strip
    return out, where


def write(folder, name, image):
    png = "%s/%s.png" % (folder, name)
    Image.fromarray(np.clip(np.rint(image), 0, 255).astype(np.uint8)).save(png)
    subprocess.run(["vips", "tiffsave", png, "%s/slides/%s.tiff" % (folder, name), "--tile", "--pyramid", "--compression",
                    "jpeg", "--Q", "85", "--resunit", "cm", "--xres", str(1000 / MPP), "--yres", str(1000 / MPP)], check=True)
    os.remove(png)


def read(folder, name):
    return (np.asarray(Image.open("%s/%s_quality.png" % (folder, name))),
            np.asarray(Image.open("%s/%s_mask.png" % (folder, name))) > 0)


def shares(kinds, where):
    return [100 * float((kinds[where] == k).mean()) if where.any() else float("nan") for k in range(5)]


def real(program, data, out):
    os.makedirs(out + "/real/slides", exist_ok=True)
    strips = {}
    for base, image in (("slide", real_slide(data)), ("sheet", sheet(data))):
        write(out + "/real", base + "_sharp", image)
        for factor in (0.5, 0.3):
            write(out + "/real", "%s_pale_%g" % (base, factor), pale(image, factor))
        for sigma in (0.5, 0.75, 1, 2, 4):
            write(out + "/real", "%s_blur_%g" % (base, sigma), blurred(image, sigma))
        for seed in (1, 2, 3):
            name = "%s_fold_%d" % (base, seed)
            fold, strips[name] = folded(image, seed)
            write(out + "/real", name, fold)
    subprocess.run([program, "tissue", out + "/real/slides", "-o", out + "/real/masks", "--quality", "--quiet",
                    "--overwrite"], check=True, stdout=subprocess.DEVNULL)
    print("%-18s %6s %6s %6s %6s   of the strips marked as fold" % ("real pixels, % of", *KINDS[1:]))
    for path in sorted(glob.glob(out + "/real/slides/*.tiff")):
        name = os.path.basename(path)[:-5]
        kinds, tissue = read(out + "/real/masks", name)
        line = "%-18s %6.1f %6.1f %6.1f %6.1f" % (name, *shares(kinds, tissue)[1:])
        if name in strips:
            h, w = kinds.shape
            where = np.asarray(Image.fromarray(strips[name]).resize((w, h), Image.NEAREST)) & tissue
            line += "   %6.1f, elsewhere %.1f" % (shares(kinds, where)[2],
                                                 shares(kinds, tissue & ~ndimage.binary_dilation(where, iterations=3))[2])
        print(line)


def drawn(program, out, n):
    cohort = out + "/phantom"
    subprocess.run([program, "phantom", "-o", cohort, "--slides", str(n), "--size", "8192", "--seed", "2", "--artefacts",
                    "--quiet"], check=True)
    subprocess.run([program, "tissue", cohort + "/slides", "-o", out + "/masks", "--quality", "--quiet", "--overwrite"],
                   check=True, stdout=subprocess.DEVNULL)
    total = np.zeros((5, 5))
    for path in glob.glob(cohort + "/artefacts/*.png"):
        truth = np.asarray(Image.open(path))
        kinds, tissue = read(out + "/masks", os.path.basename(path)[:-len("_quality.png")])
        counted = tissue | ((kinds >= 3) & (truth > 0))  # marks hide the tissue under them
        total += [[(counted & (truth == a) & (kinds == b)).sum() for b in range(5)] for a in range(5)]
    print("\n%-18s %6s %6s %6s %6s %6s" % ("phantom, % of", *KINDS))
    for kind, row in zip(KINDS, total):
        print("%-18s %6.1f %6.1f %6.1f %6.1f %6.1f" % ("planted " + kind if kind != "good" else "clean tissue",
                                                      *(100 * row / row.sum())))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--microtome", default="microtome")
    parser.add_argument("--slides", type=int, default=10)
    parser.add_argument("-o", "--output", default="quality")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    real(args.microtome, args.data, args.output)
    drawn(args.microtome, args.output, args.slides)
    return 0


if __name__ == "__main__":
    sys.exit(main())
