#!/usr/bin/env python3
"""What explain says of networks whose reasons are known: the tables of docs/explain.md, section Results.

    bench/study_explain.py BUILD FOLDER [IDC] [--seed N] [--concepts-only] [--threads N]

Phantoms of three kinds: without pen marks (plain), the same with colours jittered in training (jitter), and with a pen
mark on every metastasis (pen). A ResNet-18 learns each on 13 patients and is explained on 7 others; as a control, the
one that never saw ink is also explained on slides with it. With the folder IDC (train.tar and val.tar), the network of
examples/idc.yaml too. What is in FOLDER already is not made again. About 40 CPU minutes, half of them for LIME,
Score-CAM and their redrawn weights, which --concepts-only leaves out. --seed (1) draws other slides, patches and
weights; a seed needs its own FOLDER. Needs numpy, h5py and Pillow.
"""
import argparse
import csv
import json
import os
import subprocess
import sys

import h5py
import numpy
from PIL import Image, ImageDraw, ImageFont

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", type=os.path.abspath, metavar="BUILD")
parser.add_argument("folder", type=os.path.abspath, metavar="FOLDER")
parser.add_argument("idc", type=os.path.abspath, metavar="IDC", nargs="?")
parser.add_argument("--seed", type=int, default=1, help="of slides, patches and training (1)")
parser.add_argument("--concepts-only", action="store_true", help="no maps")
parser.add_argument("--threads", type=int, default=0, help="of microtome (0: as many as it likes)")
options = parser.parse_args()
folder, idc, seed = options.folder, options.idc, options.seed
microtome = os.path.join(options.build, "microtome")
source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLIDES, SIZE_PX, PATCH_PX, MPP = 40, 4096, 128, 0.5
# Patches filled with tissue: glass and fat are mostly in normal ones, and brightness would be a cue.
WHITE = 0.1
LAYERS = "layer1,layer2,layer3,layer4"
CONCEPTS = ("nuclei.count,nuclei.area.mean,nuclei.area.std,nuclei.eccentricity.mean,nuclei.hematoxylin.mean,"
            "nuclei.contrast.mean,nuclei.correlation.mean,colour.red,colour.green,colour.blue,colour.saturation,random")
METHODS = "cam,gradcam,gradcam++,hirescam,scorecam,ig,smoothgrad,occlusion,lime"
FEWER_METHODS = "gradcam,gradcam++,ig,smoothgrad,occlusion,lime"
JITTER = "{ hed_jitter: 0.15, brightness: 0.25, saturation: 0.3 }"
TRAIN = """seed: {seed}
network: {{ name: resnet18, input_px: {patch} }}
data: {{ train: [{store}], val_fraction: 0.2 }}
augment: {augment}
train: {{ epochs: {epochs}, batch: 32, ema: 0.97 }}
schedule: {{ learning_rate: 0.003, warmup_epochs: 1 }}
"""


def place(*parts):
    return os.path.join(folder, *parts)


def run(done, *arguments):
    """Runs a command unless its result is there."""
    if not os.path.exists(done):
        print("$ microtome", *arguments, file=sys.stderr, flush=True)
        threads = ("--threads", str(options.threads)) if options.threads else ()
        subprocess.run([microtome, *arguments, *threads, "-q"], check=True, stdout=subprocess.DEVNULL)


def claim_folder():
    """Results of another seed would be taken for those of this one."""
    os.makedirs(folder, exist_ok=True)
    path = place("seed.txt")
    if not os.path.exists(path):
        with open(path, "w") as out:
            out.write(f"{1 if os.path.exists(place('plain')) else seed}\n")
    with open(path) as file:
        found = int(file.read())
    if found != seed:
        sys.exit(f"{folder} has results of seed {found}: give another folder for seed {seed}")


def cohort(name, pen):
    """Slides, and patches to learn from and to explain; the slides with tumour among the latter."""
    run(place(name, "slides.csv"), "phantom", "-o", place(name), "--slides", str(SLIDES), "--size", str(SIZE_PX),
        "--seed", str(seed), "--pen", pen, *(("--nuclei",) if pen == "none" else ()))
    with open(place(name, "slides.csv")) as file:
        rows = list(csv.DictReader(file))
    for patches_seed, side, store in ((seed, "train", "learn"), (seed + 1, "test", "test")):
        with open(place(name, side + ".csv"), "w") as out:
            writer = csv.DictWriter(out, rows[0].keys())
            writer.writeheader()
            writer.writerows(row for row in rows if row["split"] == side)
        run(place(f"{name}-{store}", "slides.csv"), "extract", place(name, side + ".csv"), "-o",
            place(f"{name}-{store}"), "--random", "35", "--patch", str(PATCH_PX), "--mpp", str(MPP), "--white",
            str(WHITE), "--seed", str(patches_seed))
    return [os.path.splitext(os.path.basename(row["slide"]))[0] for row in rows
            if row["split"] == "test" and row["label"] == "tumor"]


def train(name, store, epochs, augment="{}"):
    with open(place(name + ".yaml"), "w") as out:
        out.write(TRAIN.format(seed=seed, patch=PATCH_PX, store=place(store), augment=augment, epochs=epochs))
    run(place(name, "model.safetensors"), "train", place(name + ".yaml"), "-o", place(name), "--resume")


def ink(slides):
    """Where the ink is: where slides with and without it differ; 8-bit label images."""
    os.makedirs(place("ink"), exist_ok=True)
    for slide in slides:
        path = place("ink", slide + "_labels.png")
        if not os.path.exists(path):
            one, other = (numpy.asarray(Image.open(place(name, "slides", slide + ".tiff")).convert("RGB")).astype(int)
                          for name in ("plain", "pen"))
            Image.fromarray((abs(one - other).max(-1) > 40).astype(numpy.uint8)).save(path)


def concepts(name, model, patches, more=""):
    """(layer, concept) -> row of the table."""
    run(place(name, "concepts.csv"), "explain", "concepts", *patches, "--model", place(model), "--layer", LAYERS,
        "--concepts", CONCEPTS + more, "-o", place(name))
    with open(place(name, "concepts.csv")) as file:
        return {(row["layer"], row["concept"]): row for row in csv.DictReader(file)}


def maps(name, model, stores, methods, inside, top, redrawn, samples=500):
    run(place(name, "explain.json"), "explain", "map", *stores, "--model", place(model), "--class", "tumor", "--top",
        str(top), "--method", methods, "--lime-samples", str(samples), "--belief-subjects", str(redrawn),
        "--inside", inside, "-o", place(name))
    with open(place(name, "explain.json")) as file:
        return json.load(file)["summary"]


def scores(model, patches):
    """Rows of `model run`: labels and scores of the tumour class."""
    table = place(f"{model}-of-{os.path.basename(patches)}.csv")
    run(table, "model", "run", patches, "--model", place(model), "-o", table)
    with open(table) as file:
        rows = list(csv.DictReader(file))
    labels = numpy.array([row["label"] == "1" for row in rows])
    return labels, numpy.array([float(row["prob_tumor"]) for row in rows])


def auc(labels, values):
    """The chance that a positive is above a negative; ties count half."""
    above = values[labels][:, None] - values[~labels][None]
    return (above > 0).mean() + (above == 0).mean() / 2


def print_scores(model, store):
    labels, found = scores(model, place(store))
    print(f"\n{model} on {store}: AUC {auc(labels, found):.3f}, sensitivity at 0.5 {(found[labels] > 0.5).mean():.2f}, "
          f"specificity {(found[~labels] <= 0.5).mean():.2f}")


def print_reddened(model):
    """How the logit changes with 8 grey levels more of red, in four patches of each slide."""
    logits = []
    for name, more in (("as-is", 0), ("redder", 8)):
        os.makedirs(place(name), exist_ok=True)
        rng = numpy.random.default_rng(0)
        for store in sorted(os.listdir(place("plain-test"))):
            if store.endswith(".h5"):
                with h5py.File(place("plain-test", store)) as file:
                    for i in rng.choice(len(file["labels"]), 4, False):
                        patch = numpy.clip(file["blocks"][i].astype(int) + [more, 0, 0], 0, 255).astype(numpy.uint8)
                        Image.fromarray(patch).save(place(name, f"{store[:-3]}-{i}.png"))
        found = scores(model, place(name))[1]
        logits.append(numpy.log(found / (1 - found)))
    change = logits[1] - logits[0]
    print(f"{model}, 8 grey levels redder: logit {change.mean():+.2f} ± {change.std():.2f} of {logits[0].std():.2f}")


def print_values(name):
    """Concepts by class, and how well each tells the classes apart."""
    with open(place(name, "values.csv")) as file:
        rows = list(csv.DictReader(file))
    labels = numpy.array([row["label"] == "1" for row in rows])
    print(f"\n{name}\n\n| concept | normal | tumour | AUC |\n|---|---|---|---|")
    for concept in CONCEPTS.split(","):
        values = numpy.array([float(row[concept] or "nan") for row in rows])
        known = ~numpy.isnan(values)
        normal, tumour = values[known & ~labels], values[known & labels]
        print(f"| {concept} | {normal.mean():.3g} ± {normal.std():.2g} | {tumour.mean():.3g} ± {tumour.std():.2g} "
              f"| {auc(labels[known], values[known]):.2f} |")


def cell(row):
    """R2, and what the concept does to the score."""
    if row["verdict"].startswith("not learnt"):
        return "–"
    sign = {"raises": " ↑", "lowers": " ↓"}.get(row["verdict"].split()[1] if "," in row["verdict"] else "", "")
    return f"{float(row['r2']):.2f}{sign}"


def print_concepts(title, rows):
    layers = LAYERS.split(",")
    print(f"\n{title}\n\n| concept | {' | '.join(layers)} |\n|---|{'---|' * len(layers)}")
    for concept in dict.fromkeys(key[1] for key in rows):
        print(f"| {concept} | {' | '.join(cell(rows[layer, concept]) for layer in layers)} |")
    strongest = sorted((row for row in rows.values() if row["verdict"].endswith(" raises the score") and row["br"]),
                       key=lambda row: -float(row["br"]))
    print("\nHighest Br:", ", ".join(f"{row['concept']} {float(row['br']):.1f} ({row['layer']})"
                                     for row in strongest[:6]))


def print_maps(title, summary):
    first = summary["maps"][0]
    print(f"\n{title}: score {first['score']:.3f}, of a blank image {first['blank_score']:.3f}\n\n"
          "| map | deletion | by chance | insertion | by chance | better | redrawn | inside | of the area |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for row, redrawn in zip(summary["maps"], summary["redrawn"]["maps"]):
        alike = redrawn["correlation"][-1]
        print(f"| {row['name']} | {row['deletion']:.3f} | {row['random_deletion']:.3f} | {row['insertion']:.3f} "
              f"| {row['random_insertion']:.3f} | {row['better']} of {row['subjects']} "
              f"| {'–' if alike is None else format(alike, '.2f')} | {row['inside']['map_share']:.2f} "
              f"| {row['inside']['area_share']:.2f} |")


def picture(name, rows, methods, side_px=112, gap_px=4):
    """FOLDER/NAME: for each (results folder, subject) a row, the patch and the maps over it."""
    font = ImageFont.load_default()
    out = Image.new("RGB", ((len(methods) + 1) * (side_px + gap_px), 14 + len(rows) * (side_px + gap_px)), "white")
    for column, title in enumerate(["patch", *methods]):
        ImageDraw.Draw(out).text((column * (side_px + gap_px), 1), title, fill="black", font=font)
        for row, (results, subject) in enumerate(rows):
            path = place(results, subject, "image.png" if column == 0 else title + ".png")
            image = Image.open(path).convert("RGB")  # a map's picture: the image, then the map over it
            image = image.crop((image.width - image.height, 0, image.width, image.height))
            out.paste(image.resize((side_px, side_px), Image.LANCZOS),
                      (column * (side_px + gap_px), 14 + row * (side_px + gap_px)))
    out.quantize(160).save(place(name), optimize=True)


def subjects(results, n):
    """The first of each slide."""
    with open(place(results, "explain.json")) as file:
        found = {subject["slide"]: subject["name"] for subject in reversed(json.load(file)["subjects"])}
    return [(results, found[slide]) for slide in sorted(found)][:n]


def study_concepts(name, model, store, more=""):
    print_scores(model, store)
    print_concepts(name, concepts(name + "-concepts", model, [place(store)], more))
    sys.stdout.flush()


def study_maps(tumour):
    """The tables and pictures of maps of patches with tumour."""
    ink(tumour)
    stores = {name: [place(name + "-test", slide + ".h5") for slide in tumour] for name in ("plain", "pen")}
    for name, methods, top, redrawn in (("plain", METHODS, 2, 4), ("jitter", FEWER_METHODS, 1, 2)):
        print_maps(name, maps(name + "-maps", name + "-net", stores["plain"], methods, place("plain", "nuclei"), top,
                              redrawn))
    for name in ("pen", "plain"):
        print_maps(f"{name}, on patches with pen, inside the ink",
                   maps(name + "-ink", name + "-net", stores["pen"], "gradcam,occlusion,lime", place("ink"), 1, 2, 300))
    picture("explain-maps.png", subjects("jitter-maps", 3), ["gradcam", "gradcam++", "ig", "smoothgrad", "occlusion",
                                                            "lime"])
    picture("explain-ink.png", subjects("pen-ink", 2) + subjects("plain-ink", 2), ["gradcam", "occlusion", "lime"])


def main():
    claim_folder()
    tumour = cohort("plain", "none")
    train("plain-net", "plain-learn", 4)
    study_concepts("plain", "plain-net", "plain-test")
    print_values("plain-concepts")
    train("jitter-net", "plain-learn", 6, JITTER)
    study_concepts("jitter", "jitter-net", "plain-test")
    for model in ("plain-net", "jitter-net"):
        print_reddened(model)
    cohort("pen", "tumor")
    train("pen-net", "pen-learn", 4)
    study_concepts("pen", "pen-net", "pen-test", ",quality.pen")
    print_scores("pen-net", "plain-test")
    study_concepts("control", "plain-net", "pen-test", ",quality.pen")
    if not options.concepts_only:
        study_maps(tumour)
    if idc:
        tars = {side: os.path.join(idc, side + ".tar") for side in ("train", "val")}
        run(place("idc-net", "model.safetensors"), "train", os.path.join(source, "examples", "idc.yaml"), "--set",
            "data.train=" + tars["train"], "--set", "data.val=" + tars["val"], "-o", place("idc-net"), "--resume")
        print_concepts("IDC", concepts("idc-concepts", "idc-net", [tars["val"]]))


main()
