#!/usr/bin/env python3
"""Synthetic patches: how good they are, what privacy costs, and whether an audit notices a model that has learnt by
heart: the numbers and pictures of docs/synthesize.md.

    bench/study_synth.py BUILD FOLDER [PART ...] [--idc DIR] [--threads N]

Parts, in this order if none is named: idc, phantom, private, small, overfit, picture, table. What is in FOLDER already is not made
again, so a study that was stopped can be continued; trainings resume.

    idc       IDC patches (train.tar and val.tar in DIR) at 32 px, examples/idc-diffusion.yaml
    phantom   phantom patches of 64 px at 0.5 um/px, against other patients of the same centres
    private   about 40,000 phantom patches of 32 px at 1 um/px, of which a random half is learnt from: pretrained on patches of
              other centres (another stain), then trained on these with epsilon 10 and 3 for a patch, and without privacy;
              audited with the other half, beside the pretrained model as a reference
    small     the same with about 4,000 patches of 16 px at 2 um/px: minutes instead of hours
    overfit   200 IDC patches of 16 px learnt by heart, 220 others held out, and the usual training of as many and of
              half of all: the audit must notice the first, with a reference that was trained on the rest
    picture   private.png: patches of each kind that the part `private` has made or used (needs Pillow and h5py)

Fréchet's distance is that of the 57 features of docs/likeness.md; AUC is that of a logistic regression on them, trained
on synthetic patches alone and tested on real ones. Patches are made in 24 steps of Euler and of Heun.
"""
import argparse
import csv
import glob
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile

from setting import here, microtome

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", metavar="BUILD")
parser.add_argument("folder", type=os.path.abspath, metavar="FOLDER")
parser.add_argument("parts", nargs="*", metavar="PART")
parser.add_argument("--idc", type=os.path.abspath, default="idc")
parser.add_argument("--threads", default="2")
options = parser.parse_args()

GENERATOR = """seed: {seed}
objective: generate
classes: [{classes}]
network: {{ name: {network}, input_px: {px}, weights: '{start}', fresh: [] }}
generate: {{ colour: {colour} }}
data: {{ train: {data}, {more}spacing_um_px: {mpp}, {val}window_mb: 64, workers: 1 }}
optimizer: {{ name: adam, weight_decay: 0 }}
train: {{ epochs: {epochs}, batch: {batch}, accumulate: {accumulate}, monitor: last, ema: {ema}, clip: {clip} }}
schedule: {{ learning_rate: {rate}, warmup_epochs: {warmup} }}
{end}"""
USUAL = dict(seed=1, start="", more="", val="val_fraction: 0.05, ", batch=8, accumulate=1, ema=0.999, clip=1,
             rate=0.0015, warmup=0.5, colour="rgb", end="")


def at(*names):
    return os.path.join(options.folder, *names)


def once(name, *words):
    """Runs a command unless it has been; its processor seconds are kept in NAME.cpu."""
    if os.path.exists(at(name + ".cpu")):
        return
    print("$ microtome", *words, file=sys.stderr, flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(at(name + ".log"), "a") as log:
        subprocess.run([microtome, *map(str, words), "--threads", options.threads], check=True, stdout=log, stderr=log,
                       cwd=options.folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(at(name + ".cpu"), "w") as out:
        print(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, file=out)


def generator(name, **settings):
    with open(at(name + ".yaml"), "w") as out:
        out.write(GENERATOR.format(**{**USUAL, **settings}))
    once(name, "synthesize", "train", name + ".yaml", "-o", name, "--resume")


def audit(name, *more):
    """NAME-audit, of a model that was trained with hold_out."""
    if not os.path.exists(at(name + "-audit.cpu")):
        shutil.rmtree(at(name + "-audit"), ignore_errors=True)
    once(name + "-audit", "synthesize", "audit", "--model", name, "-o", name + "-audit", *more)


def judge(name, n, against, train, classes, *more):
    """Samples of a model with either sampler, and how alike they are: NAME-euler.json, NAME-heun.json."""
    for sampler in ("euler", "heun"):
        made = f"{name}-{sampler}"
        once(made + "-sample", "synthesize", "sample", "--model", name, "--n", n, "--seed", 1, "--sampler", sampler,
             "-o", made + "-samples", "--overwrite")
        if os.path.exists(at(made + ".json")):
            continue
        words = ["synthesize", "evaluate", made + "-samples/patches.h5", "--against", against, "--train", train,
                 "--classes", classes, "--json", "-o", made + "-likeness", "-q", *more]
        shutil.rmtree(at(made + "-likeness"), ignore_errors=True)
        print("$ microtome", *words, file=sys.stderr, flush=True)
        found = subprocess.run([microtome, *map(str, words)], check=True, text=True, stdout=subprocess.PIPE,
                               cwd=options.folder)
        with open(at(made + ".json"), "w") as out:
            out.write(found.stdout)


def part_idc():
    train, val = (os.path.join(options.idc, name) for name in ("train.tar", "val.tar"))
    shutil.copy(os.path.join(here, "..", "examples", "idc-diffusion.yaml"), at("idc.yaml"))
    once("idc", "synthesize", "train", "idc.yaml", "--set", f"data.train={train}", "-o", "idc", "--resume")
    judge("idc", 1746, val, train, "normal,idc")


def cohort(name, slides, seed, centers, px, mpp, per_class, size=4096):
    """A folder of stores of phantom patches."""
    once(name + "-slides", "phantom", "-o", name + "-slides", "--slides", slides, "--size", size, "--seed", seed,
         "--centers", centers, "--pen", "none")
    with open(at(name + "-slides", "slides.csv")) as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["split"] = "train"  # folders are the split
    with open(at(name + "-slides", "all.csv"), "w") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    once(name, "extract", os.path.join(name + "-slides", "all.csv"), "-o", name, "--random", per_class, "--patch", px,
         "--mpp", mpp, "--margin", 0, "--seed", seed)


def part_phantom():
    cohort("tissue", 24, 5, "0,1,2", 64, 0.5, 150)
    cohort("tissue-test", 12, 6, "0,1,2", 64, 0.5, 150)
    generator("phantom", data="tissue", classes="normal, tumor", network="unet_tiny", colour="graded", px=64, mpp=0.5,
              epochs=26)
    judge("phantom", 1500, "tissue-test", "tissue", "normal,tumor")


PRIVATE = dict(classes="normal, tumor", network="unet_tiny", px=32, mpp=1, colour="graded")


def part_private():
    cohort("public", 24, 11, "3,4", 32, 1, 200)
    cohort("secret", 107, 12, "0,1", 32, 1, 250)
    cohort("secret-test", 12, 13, "0,1", 32, 1, 250)
    generator("pretrained", **PRIVATE, data="public", epochs=8)
    judge("pretrained", 2000, "secret-test", "secret", "normal,tumor")
    start = "pretrained/model.safetensors"
    hold_out = "hold_out: 0.5"
    generator("open", **{**PRIVATE, "batch": 16}, data="secret", epochs=5, start=start, end=f"privacy: {{ {hold_out} }}\n")
    for epsilon in (10, 3):
        generator(f"private-{epsilon}", **PRIVATE, batch=64, accumulate=16, clip=0, ema=0.98, rate=0.001, warmup=0, val="",
                  data="secret", epochs=8, start=start, end="privacy: "
                  f"{{ epsilon: {epsilon}, delta: 1.0e-5, unit: patch, clip: 0.1, multiplicity: 2, {hold_out} }}\n")
    for name in ("open", "private-10", "private-3"):
        judge(name, 2000, "secret-test", "secret", "normal,tumor")
        audit(name, "--reference", "pretrained")


def part_small():
    cohort("small-public", 10, 11, "3,4", 16, 2, 200, size=2048)
    cohort("small-secret", 20, 12, "0,1", 16, 2, 100, size=2048)
    cohort("small-test", 6, 13, "0,1", 16, 2, 150, size=2048)
    common = dict(classes="normal, tumor", network="unet_tiny", px=16, mpp=2, colour="apart")
    generator("small-pretrained", **common, data="small-public", epochs=5)
    start, hold_out = "small-pretrained/model.safetensors", "hold_out: 0.5"
    generator("small-open", **common, data="small-secret", epochs=6, start=start, end=f"privacy: {{ {hold_out} }}\n")
    for epsilon in (10, 3):
        generator(f"small-private-{epsilon}", **common, val="", ema=0.9, rate=0.001, batch=64, clip=0, warmup=0,
                  data="small-secret", epochs=10, start=start, accumulate=4, end="privacy: { "
                  f"epsilon: {epsilon}, delta: 1.0e-5, unit: patch, clip: 1, multiplicity: 1, {hold_out} }}\n")
    for name in ("small-pretrained", "small-open", "small-private-10", "small-private-3"):
        judge(name, 600, "small-test", "small-secret", "normal,tumor", "--resize-px", 32)
        if name != "small-pretrained":
            audit(name)


def part_overfit():
    few, rest = at("few"), at("rest")
    if not os.path.exists(rest):
        with tarfile.open(os.path.join(options.idc, "train.tar")) as tar:
            names = sorted(name for name in tar.getnames() if name.endswith(".png"))
            chosen = set(names[::len(names) // 420][:420])
            for folder in (few, rest + ".part"):
                os.makedirs(folder, exist_ok=True)
            for name in names:
                folder = few if name in chosen else rest + ".part"
                with open(os.path.join(folder, os.path.basename(name)), "wb") as out:
                    shutil.copyfileobj(tar.extractfile(name), out)
        os.rename(rest + ".part", rest)
    coarse = dict(more="resize_px: 16, ", mpp=8, classes="normal, idc", network="unet_small", px=16, colour="apart")
    heart = dict(data="few", ema=0.99, rate=0.002, warmup=2, val="val_fraction: 0.03, ")
    hold_out = "privacy: { hold_out: 0.5 }\n"
    generator("overfit", **coarse, **heart, epochs=250, end="augment: { flip: false, rotate: false }\n" + hold_out)
    generator("mild", **coarse, **heart, epochs=10, end=hold_out)
    generator("usual", **coarse, data=os.path.join(options.idc, "train.tar"), epochs=4, end=hold_out)
    generator("reference", **{**coarse, "ema": 0.995}, data="rest", epochs=3)
    for name in ("overfit", "mild"):
        audit(name, "--reference", "reference")
    audit("usual", "--samples", 1200)


def patches_of(folder, label, count):
    """Patches of a label in a folder of stores, as many of each store that has some."""
    import h5py
    found = []
    for store in sorted(glob.glob(at(folder, "*.h5"))):
        with h5py.File(store) as file:
            rows = [i for i, value in enumerate(file["labels"]) if value == label][:count]
            found += [[file["blocks"][int(file["patch_blocks"][i, 0])] for i in rows]] if rows else []
    return [pixels for rows in found for pixels in rows[:-(-count // len(found))]][:count]


def part_picture():
    """Rows of normal and tumour patches: public ones, their generator's, private ones, and what was learnt from them."""
    from PIL import Image
    kinds = ["public", "pretrained-heun-samples", "secret-test", "open-heun-samples", "private-10-heun-samples",
             "private-3-heun-samples"]
    side, scale, gap, count = 32, 2, 2, 14
    step, block = side * scale + gap, 2 * (side * scale + gap) + 8
    picture = Image.new("RGB", (count * step - gap, len(kinds) * block - 8 - gap), "white")
    for i, kind in enumerate(kinds):
        for label in (0, 1):
            for k, pixels in enumerate(patches_of(kind, label, count)):
                tile = Image.fromarray(pixels).resize((side * scale, side * scale), Image.NEAREST)
                picture.paste(tile, (k * step, i * block + label * step))
    picture.save(at("private.png"))


def minutes(name):
    with open(at(name + ".cpu")) as file:
        return float(file.read()) / 60


def part_table():
    private = ("open", "private-10", "private-3", "small-open", "small-private-10", "small-private-3")
    for name in ("idc", "phantom", "pretrained", "small-pretrained", *private):
        for made in (name + "-euler", name + "-heun"):
            if os.path.exists(at(made + ".json")):
                with open(at(made + ".json")) as file:
                    print(made, f"{minutes(name):.1f} CPU minutes", json.dumps(json.load(file))[:2000])
    for name in (*private, "overfit", "mild", "usual"):
        if os.path.exists(at(name + "-audit", "audit.json")):
            with open(at(name + "-audit", "audit.json")) as file:
                print(name, json.dumps(json.load(file))[:2000])


PARTS = dict(idc=part_idc, phantom=part_phantom, private=part_private, small=part_small, overfit=part_overfit,
             picture=part_picture, table=part_table)


def main():
    os.makedirs(options.folder, exist_ok=True)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"{unknown[0]}: the parts are {', '.join(PARTS)}")
    for part in options.parts or PARTS:
        PARTS[part]()


main()
