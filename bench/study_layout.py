#!/usr/bin/env python3
"""Why larger tiles: a class that is in the layout of the tissue, learnt on tiles of 1024 px and of 256 px of the same
slides: the table and the picture of docs/model-parallel.md.

    bench/study_layout.py BUILD FOLDER [PART ...] [--arms 256,wide,turned,1024] [--seeds 1,2,3]

Parts, in this order if none is named: cohort, tiles, train, table, picture. What is in FOLDER already is not made
again, so a study that was stopped can be continued, and trainings can run at the same time, an arm or a seed each. All
run on one thread. The table and the picture are of what is there and go into docs.

The slides are those of 'microtome phantom --layout cords': on one slide of each patient all cords of cells run the same
way, along or across the slide, on the other each runs one way or the other. At 0.5 um/px they are 520 px apart, so a
tile of 1024 px has four of them, and a tile of 256 px a part of one or none. Four arms, with equally many steps:

    1024    tiles of 1024 px, by scan_wide: scan_tiny behind one more convolution with stride 4, whose blocks start
            from those learnt in `wide`, with the same seed: from random weights it stayed near chance
    256     the same tiles, each cut into 16
    wide    the tiles of 1024 px at 2 um/px, in 256 px: the layout is there, and a sixteenth of the pixels
    turned  tiles of `wide` whose 16 squares were turned and put elsewhere: the pixels are there, the layout is not

Scores of small tiles are also averaged over the 16 of a large one, and all scores over a slide. Test slides are those
of other patients and choose nothing: weights are those of the last epoch. Needs numpy, h5py and Pillow.
"""
import argparse
import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import zlib

import h5py
import numpy
from PIL import Image, ImageDraw

from setting import here, microtome

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", metavar="BUILD")
parser.add_argument("folder", type=os.path.abspath, metavar="FOLDER")
parser.add_argument("parts", nargs="*", metavar="PART")
parser.add_argument("--arms", default="256,wide,turned,1024")
parser.add_argument("--seeds", default="1,2,3")
options = parser.parse_args()

SLIDES, SIZE_PX, SEED = 144, 4096, 31
MPP, LARGE_PX, SMALL_PX = 0.5, 1024, 256
SQUARES = LARGE_PX // SMALL_PX  # small tiles along a large one
WIDE_MPP = MPP * SQUARES
CLASSES = ("crossed", "parallel")
WINDOW_MB = 1300  # all training slides: where few are shuffled together, these few are learnt by heart in turn
ARMS = {"1024": ("scan_wide", 1012, 8, 40), "256": ("scan_tiny", SMALL_PX, 32, 10),
        "wide": ("scan_tiny", SMALL_PX, 8, 40), "turned": ("scan_tiny", SMALL_PX, 8, 40)}
# network, its input, tiles in a step, epochs: 1,920 steps
TRAIN = """seed: {seed}
network: {{ name: {network}, input_px: {px}, head: lse, weights: {start}, fresh: [conv1., bn1., conv2., bn2.] }}
data: {{ train: [{tiles}], split: attribute, workers: 1, window_mb: {window_mb} }}
augment: {{ hed_jitter: 0.1, brightness: 0.1 }}
optimizer: {{ name: adam }}
train: {{ epochs: {epochs}, batch: {batch}, monitor: last }}
schedule: {{ learning_rate: 0.002, warmup_epochs: 2 }}
"""


def place(*parts):
    return os.path.join(options.folder, *parts)


def once(name, *arguments):
    """Runs a command once; what it took is kept in NAME.cpu, in CPU seconds."""
    if not os.path.exists(place(name + ".cpu")):
        print("$ microtome", *arguments, file=sys.stderr, flush=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(place(name + ".log"), "a") as log:
            subprocess.run([microtome, *arguments, "--threads", "1"], check=True, stdout=log, stderr=log)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(place(name + ".cpu"), "w") as out:
            print(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, file=out)
    with open(place(name + ".cpu")) as file:
        return float(file.read())


def part_cohort():
    once("cohort", "phantom", "-o", place("cohort"), "--slides", str(SLIDES), "--size", str(SIZE_PX), "--seed",
         str(SEED), "--layout", "cords", "--pen", "none")


# --- tiles ---

def turned(tile, rng):
    """The tile's squares, each turned by 0 to 3 quarters and put where another one was."""
    n = SQUARES
    squares = [square for row in numpy.split(tile, n, 0) for square in numpy.split(row, n, 1)]
    squares = [numpy.rot90(squares[i], rng.integers(4)) for i in rng.permutation(n * n)]
    return numpy.concatenate([numpy.concatenate(squares[y * n:(y + 1) * n], 1) for y in range(n)])


def turn_stores():
    """tiles-turned: copies of the stores of `wide`, with other pixels."""
    if os.path.exists(place("tiles-turned")):
        return
    part = place("tiles-turned.part")
    shutil.copytree(place("tiles-wide"), part, dirs_exist_ok=True)
    for name in sorted(os.listdir(part)):
        if name.endswith(".h5"):
            rng = numpy.random.default_rng(zlib.crc32(name.encode()))
            with h5py.File(os.path.join(part, name), "r+") as store:
                for i in range(len(store["blocks"])):
                    store["blocks"][i] = turned(store["blocks"][i], rng)
    os.rename(part, place("tiles-turned"))


def part_tiles():
    for arm, px, mpp in (("1024", LARGE_PX, MPP), ("256", SMALL_PX, MPP), ("wide", SMALL_PX, WIDE_MPP)):
        once(f"tiles-{arm}", "extract", place("cohort", "slides.csv"), "-o", place(f"tiles-{arm}"), "--dense",
             "--patch", str(px), "--margin", "0", "--mpp", str(mpp), "--method", "none", "--label-rule", "slide",
             "--class-map", f"{{classes: [{', '.join(CLASSES)}]}}", "-q")
    turn_stores()


def run_name(arm, seed):
    return f"train-{arm}-{seed}"


def part_train():
    for seed in options.seeds.split(","):
        for arm in options.arms.split(","):
            name, (network, px, batch, epochs) = run_name(arm, seed), ARMS[arm]
            start = place(run_name("wide", seed), "model.safetensors") if network == "scan_wide" else "''"
            with open(place(name + ".yaml"), "w") as out:
                out.write(TRAIN.format(seed=seed, network=network, px=px, start=start, tiles=place(f"tiles-{arm}"), epochs=epochs, batch=batch,
                                       window_mb=WINDOW_MB))
            once(name, "train", place(name + ".yaml"), "-o", place(name), "--resume")


# --- results ---

def scores(arm, seed):
    """Of every test tile: slide, which large tile it is or is part of, whether the slide is 'parallel', its score."""
    rows, coords = [], {}
    with open(place(run_name(arm, seed), "test_scores.csv")) as file:
        for row in csv.DictReader(file):
            path, number = re.fullmatch(r"(.*) patch (\d+)", row["sample"]).groups()
            if path not in coords:
                with h5py.File(path) as store:
                    coords[path] = store["coords"][:] // round(LARGE_PX * MPP / store.attrs["mpp_l0"])
            slide = os.path.basename(path)
            rows.append((slide, (slide, *coords[path][int(number)]), row["label"] == "1", float(row["prob_parallel"])))
    return rows


def judged(rows, of):
    """Accuracy and AUC of mean scores over what has the same `of`."""
    groups = {}
    for i, row in enumerate(rows):
        groups.setdefault(of(i, row), []).append(row)
    truth = numpy.array([group[0][2] for group in groups.values()])
    score = numpy.array([numpy.mean([row[3] for row in group]) for group in groups.values()])
    above = score[truth][:, None] - score[~truth][None]
    return dict(n=len(truth), accuracy=float(((score > 0.5) == truth).mean()),
                auc=float((above > 0).mean() + (above == 0).mean() / 2))


def result(arm, seed):
    rows = scores(arm, seed)
    return dict(tile=judged(rows, lambda i, row: i), large=judged(rows, lambda i, row: row[1]),
                slide=judged(rows, lambda i, row: row[0]), cpu_s=once(run_name(arm, seed)))


def spread(results, of, what, form="{:.3f}"):
    """Mean, and the range if there are several."""
    found = [result[of][what] for result in results]
    text = form.format(numpy.mean(found))
    return text + (f" ({form.format(min(found))}–{form.format(max(found))})" if len(found) > 1 else "")


TITLES = {"1024": "1024², 0.5 µm/px", "256": "256², 0.5 µm/px",
          "wide": "256², 2 µm/px", "turned": "256², 2 µm/px, squares turned and mixed"}


def table(found):
    lines = ["| a network on tiles of | seeds | test tiles | accuracy of a tile | of 512² µm | of a slide "
             "| AUC of a tile | of 512² µm | of a slide | CPU minutes |", "|---|---|---|---|---|---|---|---|---|---|"]
    for arm, results in found.items():
        cells = [spread(results, of, what) for what in ("accuracy", "auc") for of in ("tile", "large", "slide")]
        minutes = numpy.mean([result["cpu_s"] for result in results]) / 60
        lines.append(f"| {TITLES[arm]} | {len(results)} | {results[0]['tile']['n']:,} | {' | '.join(cells)} "
                     f"| {minutes:.1f} |")
    return "\n".join(lines)


def publish(text):
    """The table into the docs, between its marks."""
    path = os.path.join(here, "..", "docs", "model-parallel.md")
    with open(path) as file:
        page = file.read()
    page = re.sub(r"<!-- study layout -->\n.*?<!-- end -->",
                  lambda match: f"<!-- study layout -->\n{text}\n<!-- end -->", page, flags=re.S)
    with open(path, "w") as file:
        file.write(page)


def part_table():
    found = {}
    for arm in ARMS:
        there = [seed for seed in options.seeds.split(",") if os.path.exists(place(run_name(arm, seed) + ".cpu"))]
        if there:
            found[arm] = [result(arm, seed) for seed in there]
    with open(place("layout.json"), "w") as out:
        json.dump(found, out, indent=2)
    print(table(found))
    publish(table(found))


# --- picture ---

SHOWN = (("patient_003_node_1", 0), ("patient_003_node_0", 0))  # slide, large tile
SQUARE = (135, 640)  # left and top of the small tile, px
PANEL_PX, GAP_PX, COLOURS = 320, 8, 24


def part_picture():
    """layout.png: a tile of each class with a square of 256 px drawn in, and these squares."""
    panels = []
    x, y = SQUARE
    for slide, number in SHOWN:
        with h5py.File(place("tiles-1024", slide + ".h5")) as store:
            tile = store["blocks"][number]
        square = Image.fromarray(tile[y:y + SMALL_PX, x:x + SMALL_PX]).resize((PANEL_PX, PANEL_PX), Image.LANCZOS)
        whole = Image.fromarray(tile).resize((PANEL_PX, PANEL_PX), Image.LANCZOS)
        scale = PANEL_PX / LARGE_PX
        ImageDraw.Draw(whole).rectangle([x * scale, y * scale, (x + SMALL_PX) * scale, (y + SMALL_PX) * scale],
                                        outline=(0, 0, 0), width=3)
        panels += [whole, square]
    out = Image.new("RGB", (len(panels) * (PANEL_PX + GAP_PX) - GAP_PX, PANEL_PX), "white")
    for i, panel in enumerate(panels):
        out.paste(panel, (i * (PANEL_PX + GAP_PX), 0))
    path = os.path.join(here, "..", "docs", "images", "layout.png")
    out.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


PARTS = dict(cohort=part_cohort, tiles=part_tiles, train=part_train, table=part_table, picture=part_picture)


def main():
    os.makedirs(options.folder, exist_ok=True)
    unknown = [part for part in options.parts if part not in PARTS] + \
        [arm for arm in options.arms.split(",") if arm not in ARMS]
    if unknown:
        parser.error(f"{unknown[0]}: the parts are {', '.join(PARTS)}, the arms {', '.join(ARMS)}")
    for part in options.parts or PARTS:
        PARTS[part]()


main()
