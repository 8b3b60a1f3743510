"""A phantom cohort end to end, as tables IV and V of the CPU-cluster study: networks learn on some slides, and slide
AUC and FROC are measured on others at several strides; an exact network densely, a padded one by windows, densely,
densely and calibrated, and densely after distillation. Not a bench of speed: CPU seconds are told to compare effort.

    bench/study_cohort.py BUILD FOLDER     prints the rows of a table and writes BUILD/bench/cohort.json

What is in FOLDER already is not made again: a study that was stopped goes on. Trainings take about 25 CPU minutes,
heatmaps 50. The score of a slide is the highest of its lesions (components above 0.9), 0 where it has none; its truth
is the phantom's. FROC is told by CAMELYON16's rules, by which most lesions of slides as small as these are isolated
cells and do not count, and with all lesions counting.
"""
import csv
import json
import os
import resource
import subprocess
import sys

build, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
microtome = os.path.join(build, "microtome")
LEARNING, TESTING, SIZE_PX = 16, 24, 4096
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
train: {{ epochs: 1, batch: 4 }}
"""


def place(*parts):
    return os.path.join(folder, *parts)


def run(*arguments):
    """What the program printed."""
    print("$ microtome", *arguments, file=sys.stderr, flush=True)
    return subprocess.run([microtome, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def cohort(name, slides, seed):
    if not os.path.exists(place(name, "slides.csv")):
        run("phantom", "-o", place(name), "--slides", str(slides), "--size", str(SIZE_PX), "--seed", str(seed), "-q")
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


def predict(name, model, testing, stride, *options):
    """CPU seconds of all heatmaps."""
    at = place(f"{name}-{stride}")
    if not os.path.exists(at + ".cpu"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("predict", testing, "-o", at, "--model", model, "--stride", str(stride), "--export", "none", "-q",
            "--threads", "1", *options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(at + ".cpu", "w") as out:
            print(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, file=out)
    with open(at + ".cpu") as file:
        return sum(map(float, file.read().split()))


def judge(name, testing, stride):
    """Slides, lesions and cells against the truth; the check of dense against windows, if there was one."""
    at = place(f"{name}-{stride}")
    run("classify", "lesions", at, "-o", at + "-lesions", "-q")
    scores = lesion_scores(at + "-lesions")
    with open(at + "-scores.csv", "w") as out:
        out.write("slide,score\n")
        out.writelines(f"{slide},{score}\n" for slide, score in scores.items())
    roc = None  # of scores that are all the same there is no curve: no slide has a lesion above 0.9
    if len(set(scores.values())) > 1:
        roc = json.loads(run("evaluate", "roc", at + "-scores.csv", "--truth", testing, "--positive", "tumor",
                             "--json"))["curves"][0]
    froc, all_froc = (json.loads(run("evaluate", "froc", at + "-lesions", "--truth", testing, "--json", *rules))
                      for rules in ((), ("--isolated", "0")))
    pixels = json.loads(run("evaluate", "pixels", at, "--truth", testing, "--json"))
    check = None
    if os.path.exists(os.path.join(at, "check.json")):
        with open(os.path.join(at, "check.json")) as file:
            check = json.load(file)["check"]
    return dict(roc=roc, froc=froc["curves"][0], all_froc=all_froc["curves"][0], pixels=pixels["all"], check=check)


def print_row(title, stride, row):
    roc, check = row["roc"], row["check"]
    compared = f"{check['r']:.3f} | {check['mean']:.3f} | {100 * check['flipped']:.1f} %" if check else "| |"
    auc = f"{roc['auc']:.3f} ({roc['delong_95'][0]:.2f}–{roc['delong_95'][1]:.2f})" if roc else "–"
    print(f"| {title} | {stride} | {auc} "
          f"| {row['all_froc']['froc']:.3f} | {row['froc']['froc']:.3f} | {row['pixels']['auc']:.3f} "
          f"| {row['cpu_s'] / TESTING:.1f} | {compared} |", flush=True)


def main():
    learning, testing = cohort("learning", LEARNING, 11), cohort("testing", TESTING, 12)
    scan = train("scan", TRAIN.format(network="scan_tiny", window=SCAN_PX, epochs=4, batch=32, rate=0.02,
                                      store=extract("patches-256", learning, 100, 256)))
    padded = train("padded", TRAIN.format(network="resnet18", window=PADDED_PX, epochs=3, batch=64, rate=0.02,
                                          store=extract("patches-96", learning, 150, 96)))
    distilled = train("distilled", DISTIL.format(store=extract("patches-256", learning, 100, 256)),
                      "--distill-dense", padded)
    ways = (("scan_tiny, dense (= window)", "scan", scan, ()),
            ("ResNet-18, window", "window", padded, ("--mode", "window")),
            ("ResNet-18, dense", "dense", padded, ("--mode", "dense")),
            ("ResNet-18, dense, calibrated", "calibrated", padded, ("--mode", "dense", "--calibrate", "affine")),
            ("ResNet-18, dense, distilled", "distilled-dense", distilled, ("--mode", "dense")))
    rows = []
    for title, name, model, options in ways:
        for stride in STRIDES:
            row = dict(case=title, stride=stride, cpu_s=predict(name, model, testing, stride, *options),
                       **judge(name, testing, stride))
            rows.append(row)
            print_row(title, stride, row)
    os.makedirs(os.path.join(build, "bench"), exist_ok=True)
    with open(os.path.join(build, "bench", "cohort.json"), "w") as out:
        json.dump(rows, out, indent=2)


main()
