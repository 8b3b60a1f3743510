#!/usr/bin/python3
"""tissue_methods.py --data DIR [--microtome FILE] [-o DIR] [OPTION...]: how much tissue the methods of
'microtome tissue' find, and how much glass they mistake for it, on real pixels. OPTIONs are passed to the command.

DIR contains slides/CMU-1-Small-Region.svs (OpenSlide's test data) and camelyon16/patches. The slide itself is one case:
tissue is where the mean optical density over 16 um is above 0.1, glass where it is below 0.02. The other cases are
composed at 1 um/px: tissue is cut from the CAMELYON16 patches and glass from the slide, so the position of the tissue is
known. Overviews are area means, so a --downsample of 8 gives the mask pixels of a slide at 40x (8 um) and 16 those at
20x. Glass counts only if it is 50 um or more from any tissue. Needs python3-numpy, python3-openslide, python3-pil and
libvips-tools."""
import argparse
import glob
import os
import subprocess
import sys

import numpy as np
import openslide
from PIL import Image

SIDE = 1024  # 1 um/px
METHODS = ["fda", "process", "ncrf"]


def box_mean(image, n):
    h, w = image.shape[0] // n * n, image.shape[1] // n * n
    return image[:h, :w].reshape(h // n, n, w // n, n, *image.shape[2:]).mean((1, 3))


class Pixels:
    def __init__(self, data):
        slide = openslide.OpenSlide(data + "/slides/CMU-1-Small-Region.svs")
        self.slide = np.asarray(slide.read_region((0, 0), 0, slide.dimensions).convert("RGB")).astype(np.float32)
        self.glass_block = box_mean(self.slide[1900:2800, 40:440], 2)  # nothing but glass
        names = sorted(glob.glob(data + "/camelyon16/patches/*/*.png"))
        patches = [np.asarray(Image.open(n).convert("RGB")).astype(np.float32) for n in names]
        self.patches = [box_mean(p, 4) for p in patches if (p.min(-1) > 200).mean() < 0.1]  # all tissue
        assert len(self.patches) > 20

    def glass(self, tint=(243, 243, 243), slope=0.0):
        b = self.glass_block
        mirrored = np.concatenate([np.concatenate([b, b[:, ::-1]], 1), np.concatenate([b[::-1], b[::-1, ::-1]], 1)])
        repeat = [-(-SIDE // mirrored.shape[0]), -(-SIDE // mirrored.shape[1]), 1]
        image = np.tile(mirrored, repeat)[:SIDE, :SIDE] - 243 + np.array(tint, np.float32)
        return image + slope * np.linspace(-1, 1, SIDE, dtype=np.float32)[None, :, None]

    def tissue(self, strength=1.0, seed=0):
        order = np.random.default_rng(seed).permutation(len(self.patches))
        rows = [np.concatenate([self.patches[order[(i * 16 + j) % len(order)]] for j in range(16)], 1) for i in range(16)]
        sheet = np.concatenate(rows)[:SIDE, :SIDE]
        return 243 * (np.maximum(sheet, 1) / 243) ** strength  # optical density times strength


def compose(glass, tissue, mask):
    return np.where(mask[..., None], tissue, glass)


def disc(x, y, radius):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    return (xx - x) ** 2 + (yy - y) ** 2 < radius ** 2


def strand(width_px, kind):
    """A strand over most of the slide: straight, diagonal or wavy."""
    yy, xx = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    across = {"straight": yy - 750, "diagonal": (yy - 0.7 * xx - 175) / 1.22,
              "wavy": yy - 725 - 62 * np.sin(xx / 75)}[kind]
    return (abs(across) < width_px / 2) & (xx > 75) & (xx < 925)


def cases(p):
    """name, image, all tissue, and the part of it that must be found."""
    piece = disc(375, 300, 175)
    yield "compact piece", compose(p.glass(), p.tissue(), piece), piece, piece
    for um in (20, 30, 40, 80):
        for kind in ("straight", "diagonal", "wavy"):
            line = strand(um, kind) & ~disc(375, 300, 225)
            yield "strand %d um" % um, compose(p.glass(), p.tissue(), piece | line), piece | line, line
    other = disc(725, 725, 175)
    for strength in (0.5, 0.3, 0.2, 0.12):
        image = compose(p.glass(), p.tissue(strength), piece)
        yield "pale alone, density x %g" % strength, image, piece, piece
        image = compose(compose(p.glass(), p.tissue(), piece), p.tissue(strength, 1), other)
        yield "pale beside normal, density x %g" % strength, image, piece | other, other
    for name, colour in (("green", (40, 150, 70)), ("blue", (40, 70, 170)), ("black", (30, 30, 35)), ("red", (200, 30, 40))):
        ink = strand(100, "wavy") & ~disc(375, 300, 225)
        image = compose(p.glass(), p.tissue(), piece)
        image[ink] = 0.9 * np.array(colour, np.float32) + 0.1 * image[ink]
        yield "pen, " + name, image, piece, piece
    image = compose(p.glass(), p.tissue(), piece)
    image[:62] = image[:, :62] = image[-62:] = image[:, -62:] = 4
    yield "black border", image, piece, piece
    none = np.zeros((SIDE, SIDE), bool)
    for name, tint, slope in (("white", (243, 243, 243), 0), ("grey", (220, 220, 220), 0), ("darker", (200, 200, 200), 0),
                              ("rose", (240, 232, 237), 0), ("shaded", (235, 234, 233), 8)):
        yield "blank, " + name, p.glass(tint, slope), none, none


def far_glass(tissue, um_px):
    """Not within 50 um of tissue; on a grid of 8 px."""
    grid = np.add.reduceat(np.add.reduceat(tissue.astype(np.int32), np.arange(0, tissue.shape[0], 8), 0),
                           np.arange(0, tissue.shape[1], 8), 1) > 0
    reach = int(np.ceil(50 / (8 * um_px)))
    near = grid.copy()
    for shift in range(1, reach + 1):
        near[shift:] |= grid[:-shift]
        near[:-shift] |= grid[shift:]
    grid = near.copy()
    for shift in range(1, reach + 1):
        near[:, shift:] |= grid[:, :-shift]
        near[:, :-shift] |= grid[:, shift:]
    return ~near.repeat(8, 0).repeat(8, 1)[:tissue.shape[0], :tissue.shape[1]]


def save(path, image, um_px):
    Image.fromarray(np.clip(image + 0.5, 0, 255).astype(np.uint8)).save("flat.ppm")
    subprocess.run(["vips", "tiffsave", "flat.ppm", path, "--compression", "jpeg", "--Q", "90", "--tile", "--tile-width", "256",
                    "--tile-height", "256", "--pyramid", "--xres", str(1000 / um_px), "--yres", str(1000 / um_px)], check=True)


def measure(folder, name, found, glass):
    """The share of each that the mask contains."""
    mask = np.asarray(Image.open("%s/%s_mask.png" % (folder, name))) > 0
    h, w = found.shape
    rows = np.minimum((np.arange(h) + 0.5) * mask.shape[0] / h, mask.shape[0] - 1).astype(int)
    columns = np.minimum((np.arange(w) + 0.5) * mask.shape[1] / w, mask.shape[1] - 1).astype(int)
    full = mask[rows][:, columns]
    share = lambda where: full[where].mean() if where.any() else np.nan
    return share(found), share(glass)


def write_slides(p):
    """name of the case -> [(folder, file, tissue that must be found, glass)]"""
    truth = {}
    density = -np.log(np.maximum(box_mean(p.slide, 32), 1) / 243).mean(-1)
    dense = density.repeat(32, 0).repeat(32, 1)
    h, w = dense.shape
    none = np.zeros((h, w), bool)
    save("real/cmu.tiff", p.slide[:h, :w], 0.499)
    strand_box = none.copy()
    strand_box[950:1200, 60:860] = True
    truth["CMU-1-Small-Region (20x)"] = [("real", "cmu", dense > 0.1, far_glass(dense > 0.02, 0.499))]
    truth["its thin strand (20x)"] = [("real", "cmu", (dense > 0.1) & strand_box, none)]
    for number, (name, image, tissue, asked) in enumerate(cases(p)):
        file = "c%03d" % number
        save("composed/%s.tiff" % file, image, 1)
        glass = far_glass(tissue, 1)
        for lens in ("40x", "20x"):
            truth.setdefault("%s (%s)" % (name, lens), []).append((lens, file, asked, glass))
    return truth


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--data", required=True)
    options.add_argument("--microtome", default="microtome")
    options.add_argument("-o", "--output", default="tissue_methods")
    given, rest = options.parse_known_args()
    data, microtome = os.path.abspath(given.data), os.path.abspath(given.microtome) if "/" in given.microtome else given.microtome
    os.makedirs(given.output + "/composed", exist_ok=True)
    os.makedirs(given.output + "/real", exist_ok=True)
    os.chdir(given.output)
    truth = write_slides(Pixels(data))
    for method in METHODS:
        for folder, slides, downsample in (("40x", "composed", 8), ("20x", "composed", 16), ("real", "real", 32)):
            subprocess.run([microtome, "tissue", "-q", slides, "-o", method + "/" + folder, "--method", method, "--overwrite",
                            "--downsample", str(downsample)] + rest, check=True, stdout=subprocess.DEVNULL)
    percent = lambda v: "-" if np.isnan(v) else "%.1f" % (100 * v)
    print("| case | %s |" % " | ".join("%s: tissue found, glass taken (%%)" % m for m in METHODS))
    print("|---|%s" % ("---|" * len(METHODS)))
    for name, parts in truth.items():
        cells = []
        for method in METHODS:
            values = np.array([measure(method + "/" + part[0], *part[1:]) for part in parts])
            cells.append("%s, %s" % (percent(values[:, 0].mean()), percent(values[:, 1].mean())))
        print("| %s | %s |" % (name, " | ".join(cells)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
