"""A phantom cohort end to end, as tables IV and V of the CPU-cluster study: networks learn on some slides, and slide
AUC and FROC are measured on others at several strides; an exact network densely, a padded one by windows, densely,
densely and calibrated, and densely after distillation. Not a bench of speed: CPU minutes are told to compare effort.

    bench/study_cohort.py BUILD FOLDER [SLIDES] [SIZE_PX]     prints a table and writes BUILD/bench/cohort.json

What is in FOLDER already is not made again. The score of a slide is the highest of its lesions (components above
0.9); its truth is the phantom's.
"""
import csv
import json
import os
import resource
import subprocess
import sys

build, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
slides = int(sys.argv[3]) if len(sys.argv) > 3 else 16
size_px = int(sys.argv[4]) if len(sys.argv) > 4 else 4096
microtome = os.path.join(build, "microtome")
STRIDES = (16, 64, 128, 224)
SCAN_PX, PADDED_PX = 224, 64  # windows of the two networks
TRAIN = """
network: {{ name: {network}, input_px: {window} }}
data: {{ train: [{store}], val_fraction: 0.25 }}
augment: {{ hed_jitter: 0.03, brightness: 0.1 }}
train: {{ epochs: {epochs}, batch: {batch}, ema: 0.98 }}
schedule: {{ learning_rate: {rate}, warmup_epochs: 1 }}
"""
DISTIL = """
data: {{ train: [{store}], val_fraction: 0.25 }}
optimizer: {{ name: adam, weight_decay: 0 }}
schedule: {{ learning_rate: 0.0001, warmup_epochs: 0.5 }}
train: {{ epochs: 2, batch: 4 }}
"""


def place(*parts):
    return os.path.join(folder, *parts)


def run(*arguments):
    """What the program printed."""
    print("$ microtome", *arguments, flush=True)
    return subprocess.run([microtome, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def cohort(name, seed):
    if not os.path.exists(place(name, "slides.csv")):
        run("phantom", "-o", place(name), "--slides", str(slides), "--size", str(size_px), "--seed", str(seed), "-q")
    return place(name, "slides.csv")


def extract(name, learning, count, patch_px):
    if not os.path.exists(place(name, "lookup.csv")):
        run("extract", learning, "-o", place(name), "--random", str(count), "--patch", str(patch_px), "-q")
    return place(name)


def train(name, config, *options):
    if not os.path.exists(place(name, "model.safetensors")):
        with open(place(name + ".yaml"), "w") as out:
            out.write(config)
        run("train", place(name + ".yaml"), "-o", place(name), "--resume", "-q", *options)
    return place(name)


def lesion_scores(lesions):
    """slide -> the highest score of its lesions, 0 where it has none."""
    scores = {}
    for file in sorted(os.listdir(lesions)):
        if file.endswith(".csv"):
            with open(os.path.join(lesions, file)) as stream:
                found = [float(row["score"]) for row in csv.DictReader(stream)]
            scores[os.path.splitext(file)[0]] = max(found, default=0.0)
    return scores


def judge(name, model, testing, stride, *options):
    """Slide AUC with its interval, FROC score, CPU minutes of predict, and the check of dense against windows."""
    at = place(f"{name}-{stride}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("predict", testing, "-o", at, "--model", model, "--stride", str(stride), "--export", "none", "-q", *options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("classify", "lesions", at, "-o", at + "-lesions", "-q")
    with open(at + "-scores.csv", "w") as out:
        out.write("slide,score\n")
        out.writelines(f"{slide},{score}\n" for slide, score in lesion_scores(at + "-lesions").items())
    roc = json.loads(run("evaluate", "roc", at + "-scores.csv", "--truth", testing, "--positive", "tumor", "--json"))
    froc = json.loads(run("evaluate", "froc", at + "-lesions", "--truth", testing, "--mpp", "0.25", "--json"))
    minutes = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60
    return roc, froc, minutes


def main():
    learning, testing = cohort("learning", 11), cohort("testing", 12)
    scan = train("scan", TRAIN.format(network="scan_tiny", window=SCAN_PX, epochs=4, batch=32, rate=0.02,
                                      store=extract("patches-256", learning, 100, 256)))
    padded = train("padded", TRAIN.format(network="resnet18", window=PADDED_PX, epochs=3, batch=64, rate=0.02,
                                          store=extract("patches-96", learning, 150, 96)))
    distilled = train("distilled", DISTIL.format(store=extract("patches-256", learning, 100, 256)),
                      "--distill-dense", padded)
    ways = (("scan_tiny, dense (= window)", "scan", scan, ()),
            ("resnet18, window", "window", padded, ("--mode", "window")),
            ("resnet18, dense", "dense", padded, ("--mode", "dense")),
            ("resnet18, dense, calibrated", "calibrated", padded, ("--mode", "dense", "--calibrate", "affine")),
            ("resnet18, dense, distilled", "distilled-dense", distilled, ("--mode", "dense")))
    rows = []
    for title, name, model, options in ways:
        for stride in STRIDES:
            roc, froc, minutes = judge(name, model, testing, stride, *options)
            rows.append(dict(case=title, stride=stride, roc=roc, froc=froc, cpu_minutes=minutes))
            print(json.dumps(rows[-1]), flush=True)
    os.makedirs(os.path.join(build, "bench"), exist_ok=True)
    with open(os.path.join(build, "bench", "cohort.json"), "w") as out:
        json.dump(rows, out, indent=2)


main()
