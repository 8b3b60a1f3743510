#!/usr/bin/env python3
"""Do synthetic patches help a rare class? Phantom patches of 64 px of which 5 % are tumour; a small network learns to
tell them from the others, with the rare class as it is, with class weights, with duplicates of its patches, and with
synthetic ones: AUC on other patients, over five seeds.

    bench/study_rare.py BUILD FOLDER [PART ...] [--seeds 1,2,3,4,5] [--slides 40] [--patches 100] [--epochs 12]
        [--generator-network unet_tiny] [--generator-epochs 60] [--steps 24] [--guidance 1] [--threads 2]

Parts, in this order if none is named: cohort, patches, generator, samples, likeness, train, table. What is in FOLDER
already is not made again, so a study that was stopped can be continued. The arms:

    plain       5 % tumour, as it is
    weights     data.balance: weights: rare classes count more in the loss
    duplicates  data.balance: sampling: tumour patches come 19 times in an epoch, differently augmented
    synthetic   as many synthetic tumour patches as make both classes equally frequent (data.synthetic), made by a
                generator that was trained on the very same patches, both classes, 5 % tumour
    both        synthetic, and data.balance: sampling with data.synthetic_share: 0.5: half of every epoch is real,
                with duplicates, and half synthetic

All arms learn from the same real patches and take equally many steps: epochs of plain and weights are shorter, so there
are more of them. Weights are those of the last epoch; the test patients are data.val,
which then chooses nothing. The table gives mean, standard
deviation and every seed; and differences from `duplicates`, seed by seed. Needs numpy, h5py and Pillow.
"""
import argparse
import glob
import json
import os
import subprocess

import h5py
import numpy
from PIL import Image

from setting import microtome

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", metavar="BUILD")
parser.add_argument("folder", type=os.path.abspath, metavar="FOLDER")
parser.add_argument("parts", nargs="*", metavar="PART")
parser.add_argument("--seeds", default="1,2,3,4,5")
parser.add_argument("--slides", type=int, default=40)
parser.add_argument("--size", type=int, default=2048)
parser.add_argument("--patches", type=int, default=100, help="of a class and slide")
parser.add_argument("--epochs", type=int, default=12, help="of the balanced arms")
parser.add_argument("--generator-network", default="unet_tiny")
parser.add_argument("--generator-epochs", type=int, default=60)
parser.add_argument("--steps", type=int, default=24)
parser.add_argument("--guidance", type=float, default=1)
parser.add_argument("--threads", default="2")
options = parser.parse_args()

PX, MPP, SEED, RARE = 64, 0.5, 17, 0.05
CLASSES = ("normal", "tumor")
ARMS = {
    "plain": "",
    "weights": "balance: weights",
    "duplicates": "balance: sampling",
    "synthetic": "synthetic: [samples]",
    "both": "balance: sampling, synthetic: [samples], synthetic_share: 0.5",
}
TRAIN = """seed: {seed}
network: {{ name: scan_tiny, input_px: 144 }}
data: {{ train: [train], val: [test], resize_px: 144, spacing_um_px: {mpp}, patient: '^([^_]+)_', workers: 1, {arm} }}
augment: {{ flip: true, rotate: true }}
optimizer: {{ name: adam }}
schedule: {{ learning_rate: 0.001 }}
train: {{ epochs: {epochs}, batch: 32, monitor: last }}
"""
GENERATOR = """seed: 1
objective: generate
classes: [normal, tumor]
network: {{ name: {network}, input_px: {px} }}
generate: {{ process: flow, condition: class, drop: 0.1, colour: graded }}
data: {{ train: [train], patient: '^([^_]+)_', spacing_um_px: {mpp}, val_fraction: 0.05, workers: 1 }}
augment: {{ flip: true, rotate: true }}
optimizer: {{ name: adam }}
train: {{ epochs: {epochs}, batch: 8, monitor: last, ema: 0.999, clip: 1 }}
schedule: {{ learning_rate: 0.0015, warmup_epochs: 0.5 }}
"""


def run(*words):
    print("$ microtome", *words, flush=True)
    subprocess.run([microtome, *map(str, words), "--threads", options.threads], check=True, cwd=options.folder)


def at(*names):
    return os.path.join(options.folder, *names)


def write(name, text):
    with open(at(name), "w") as out:
        out.write(text)


def cohort():
    if not os.path.exists(at("cohort", "slides.csv")):
        run("phantom", "-q", "-o", "cohort", "--slides", options.slides, "--size", options.size, "--seed", SEED)
    if not os.path.exists(at("stores")):
        run("extract", "cohort/slides.csv", "-q", "-o", "stores", "--random", options.patches, "--patch", PX, "--mpp", MPP)


def read_store(name):
    """Patient, patches and labels of a store."""
    with h5py.File(name) as store:
        pixels, labels = [], []

        def look(key, item):
            if getattr(item, "ndim", 0) == 4:
                pixels.append(item[:])
            elif key.split("/")[-1] in ("label", "labels"):
                labels.append(item[:])

        store.visititems(look)
        patient = store.attrs["patient"]
        patient = patient.decode() if isinstance(patient, bytes) else str(patient)
        if not labels or not pixels:
            raise SystemExit(f"{name}: no labels or pixels found")
        return patient, numpy.concatenate(pixels), numpy.concatenate(labels).ravel()


def patches():
    """Images of two groups of patients; of those for training, tumour is made rare."""
    if os.path.exists(at("test")):
        return
    found = {"train": [], "test": []}
    names = sorted(glob.glob(at("stores", "*.h5")))
    stores = [read_store(name) for name in names]
    patients = sorted({patient for patient, _, _ in stores})
    held = set(patients[1::2])
    for patient, pixels, labels in stores:
        for i, label in enumerate(labels):
            if label in (0, 1):
                found["test" if patient in held else "train"].append((patient, int(label), pixels[i]))
    rng = numpy.random.default_rng(SEED)
    normal = [item for item in found["train"] if item[1] == 0]
    tumour = [item for item in found["train"] if item[1] == 1]
    keep = max(2, round(len(normal) * RARE / (1 - RARE)))
    found["train"] = normal + [tumour[i] for i in rng.permutation(len(tumour))[:keep]]
    for side in ("train", "test"):
        os.makedirs(at(side + ".part"), exist_ok=True)
        for i, (patient, label, pixels) in enumerate(found[side]):
            name = f"{patient.replace('_', '-')}_{i}_class{label}.png"
            Image.fromarray(pixels).save(at(side + ".part", name))
        os.rename(at(side + ".part"), at(side))
    print({side: [sum(item[1] == k for item in found[side]) for k in (0, 1)] for side in found})


def count(side):
    names = os.listdir(at(side))
    return [sum(f"_class{k}." in name for name in names) for k in (0, 1)]


def generator():
    if os.path.exists(at("generator", "model.safetensors")):
        return
    text = GENERATOR.format(network=options.generator_network, px=PX, mpp=MPP, epochs=options.generator_epochs)
    write("generator.yaml", text)
    run("synthesize", "train", "generator.yaml", "-o", "generator")


def samples():
    normal, tumour = count("train")
    if not os.path.exists(at("samples", "patches.h5")):
        run("synthesize", "sample", "--model", "generator", "--class", "tumor", "--n", normal - tumour, "--seed", 1,
            "--sampler", "euler", "--steps", options.steps, "--guidance", options.guidance, "-o", "samples")


def likeness():
    if not os.path.exists(at("likeness", "evaluate.json")):
        run("synthesize", "evaluate", "samples", "--against", "test", "--mpp", MPP, "-o", "likeness")


def train():
    normal, tumour = count("train")
    most = options.epochs * 2 * normal  # patches seen by the balanced arms
    sizes = {"plain": normal + tumour, "weights": normal + tumour, "both": 4 * normal}
    for seed in options.seeds.split(","):
        for arm, words in ARMS.items():
            name = f"{arm}-{seed}"
            if os.path.exists(at(name, "model.safetensors")):
                continue
            epochs = max(1, round(most / sizes.get(arm, 2 * normal)))
            write(name + ".yaml", TRAIN.format(seed=seed, mpp=MPP, arm=words, epochs=epochs))
            run("train", name + ".yaml", "-q", "-o", name)


def auc_of(name):
    with open(at(name, "metrics.json")) as text:
        return json.load(text)["epochs"][-1]["val_auc"]


def table():
    seeds = options.seeds.split(",")
    found = {arm: numpy.array([auc_of(f"{arm}-{seed}") for seed in seeds]) for arm in ARMS}
    lines = [f"patches: {count('train')} for training, {count('test')} for testing (normal, tumor)", "",
             "| arm | mean AUC | std | minus duplicates | seeds |", "|---|---|---|---|---|"]
    for arm, values in found.items():
        apart = values - found["duplicates"]
        spread = values.std(ddof=1) if len(values) > 1 else 0
        lines.append(f"| {arm} | {values.mean():.4f} | {spread:.4f} | {apart.mean():+.4f} | "
                     + " ".join(f"{value:.4f}" for value in values) + " |")
    write("table.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


PARTS = (cohort, patches, generator, samples, likeness, train, table)
os.makedirs(options.folder, exist_ok=True)
for part in PARTS:
    if not options.parts or part.__name__ in options.parts:
        part()
