"""A phantom cohort end to end, as tables IV and V of the CPU-cluster study: networks learn on slides of one centre, and
slide AUC and FROC are measured on slides of two others, whose stains differ, at several strides; an exact network
densely, a padded one by windows, densely, and densely after distillation. Two arms: raw pixels, and stains normalised
(Macenko) to a slide of the learning cohort. Not a bench of speed: CPU seconds are given to compare effort.

    bench/study_cohort.py BUILD FOLDER [raw|macenko]...     computes these arms (both if none is named)
    bench/study_cohort.py BUILD FOLDER table                prints the table of what is there

What is in FOLDER already is not made again, so a study that was stopped can be continued, and the two arms can run at
the same time once the cohorts are there. One arm takes about 11 CPU minutes. The score of a slide is the highest of
its lesions (components above 0.9), 0 where it has none; its truth is the phantom's. FROC is by CAMELYON16's rules, but
all lesions count: on slides as small as these hardly any is as large as the 275 um that are asked for there.
"""
import csv
import json
import os
import resource
import subprocess
import sys

build, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
microtome = os.path.join(build, "microtome")
LEARNING, TESTING, SIZE_PX = 14, 24, 2048
LEARNING_CENTERS, TESTING_CENTERS = "0", "3,4"
STRIDES = (16, 64, 128, 224)
SCAN_PX, PADDED_PX = 224, 64  # windows of the two networks
ARMS = {"raw": "none", "macenko": "macenko"}
WAYS = (("scan_tiny, dense (= window)", "scan", "scan", ()),
        ("ResNet-18, window", "window", "padded", ("--mode", "window")),
        ("ResNet-18, dense", "dense", "padded", ("--mode", "dense")),
        ("ResNet-18, dense, distilled", "distilled-dense", "distilled", ("--mode", "dense")))
TRAIN = """
network: {{ name: {network}, input_px: {window} }}
data: {{ train: [{store}], val_fraction: 0.25 }}
augment: {{ brightness: 0.1 }}
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


def counted(name, *arguments):
    """Runs a command once; what it took is kept in NAME.cpu, in CPU seconds."""
    if not os.path.exists(place(name + ".cpu")):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*arguments, "--threads", "1", "-q")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(place(name + ".cpu"), "w") as out:
            print(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, file=out)
    with open(place(name + ".cpu")) as file:
        return float(file.read())


def cohort(name, slides, seed, centers):
    if not os.path.exists(place(name, "slides.csv")):
        run("phantom", "-o", place(name), "--slides", str(slides), "--size", str(SIZE_PX), "--seed", str(seed),
            "--centers", centers, "-q")
    return place(name, "slides.csv")


def template():
    """The first learning slide as a picture."""
    from PIL import Image
    path = place("template.png")
    if not os.path.exists(path):
        slide = Image.open(place("learning", "slides", "patient_000_node_0.tiff")).convert("RGB")
        slide.save(path + ".part", format="png")
        os.rename(path + ".part", path)
    return path


class Arm:
    def __init__(self, name):
        self.name = name
        self.learning = cohort("learning", LEARNING, 11, LEARNING_CENTERS)
        self.testing = cohort("testing", TESTING, 12, TESTING_CENTERS)
        self.stain = () if name == "raw" else ("--stain", ARMS[name], "--template", template())

    def at(self, name):
        return f"{self.name}-{name}"

    def store(self, patch_px, count):
        name = self.at(f"patches-{patch_px}")
        counted(name, "extract", self.learning, "-o", place(name), "--random", str(count), "--patch", str(patch_px),
                *self.stain)
        return place(name)

    def train(self, name, config, *options):
        name = self.at(name)
        with open(place(name + ".yaml"), "w") as out:
            out.write(config)
        counted(name, "train", place(name + ".yaml"), "-o", place(name), "--resume", *options)
        return place(name)

    def models(self):
        large, small = self.store(256, 50), self.store(96, 110)
        scan = self.train("scan", TRAIN.format(network="scan_tiny", window=SCAN_PX, epochs=8, batch=32, rate=0.02,
                                               store=large))
        padded = self.train("padded", TRAIN.format(network="resnet18", window=PADDED_PX, epochs=6, batch=64,
                                                   rate=0.02, store=small))
        distilled = self.train("distilled", DISTIL.format(store=large), "--distill-dense", padded)
        return dict(scan=scan, padded=padded, distilled=distilled)

    def predict(self, name, model, stride, *options):
        """CPU seconds of all heatmaps."""
        name = self.at(f"{name}-{stride}")
        return counted(name, "predict", self.testing, "-o", place(name), "--model", model, "--stride", str(stride),
                       "--export", "none", *self.stain, *options)

    def judge(self, name, stride):
        """Slides, lesions and cells against the truth; the check of dense against windows, if there was one."""
        at = place(self.at(f"{name}-{stride}"))
        run("classify", "lesions", at, "-o", at + "-lesions", "-q")
        scores = lesion_scores(at + "-lesions")
        with open(at + "-scores.csv", "w") as out:
            out.write("slide,score\n")
            out.writelines(f"{slide},{score}\n" for slide, score in scores.items())
        roc = None  # of scores that are all the same there is no curve: no slide has a lesion above 0.9
        if len(set(scores.values())) > 1:
            roc = json.loads(run("evaluate", "roc", at + "-scores.csv", "--truth", self.testing, "--positive", "tumor",
                                 "--by", "center", "--json", "-q"))["curves"][0]
        froc = json.loads(run("evaluate", "froc", at + "-lesions", "--truth", self.testing, "--isolated", "0", "--json",
                              "-q"))["curves"][0]
        pixels = json.loads(run("evaluate", "pixels", at, "--truth", self.testing, "--json", "-q"))["all"]
        check = None
        if os.path.exists(os.path.join(at, "check.json")):
            with open(os.path.join(at, "check.json")) as file:
                check = json.load(file)["check"]
        return dict(roc=roc, froc=froc, pixels=pixels, check=check)

    def compute(self):
        """Coarse strides first: they cost least."""
        models = self.models()
        for stride in reversed(STRIDES):
            for title, name, model, options in WAYS:
                cell = place(self.at(f"{name}-{stride}.json"))
                if os.path.exists(cell):
                    continue
                row = dict(case=title, stride=stride, arm=self.name,
                           cpu_s=self.predict(name, models[model], stride, *options), **self.judge(name, stride))
                with open(cell + ".part", "w") as out:
                    json.dump(row, out, indent=2)
                os.rename(cell + ".part", cell)


def lesion_scores(lesions):
    """slide -> the highest score of its lesions, 0 where it has none."""
    scores = {}
    for file in sorted(os.listdir(lesions)):
        if file.endswith(".csv"):
            with open(os.path.join(lesions, file)) as stream:
                found = [float(row["score"]) for row in csv.DictReader(stream)]
            scores[os.path.splitext(file)[0]] = max(found, default=0.0)
    return scores


def print_row(row):
    roc, check = row["roc"], row["check"]
    compared = f"{check['r']:.3f} | {check['mean']:.3f} | {100 * check['flipped']:.1f} %" if check else "| |"
    auc, groups = "–", {}
    if roc:
        auc = f"{roc['auc']:.3f} ({roc['delong_95'][0]:.2f}–{roc['delong_95'][1]:.2f})"
        groups = {group["value"]: group["auc"] for group in roc["groups"]}
    centers = " | ".join(f"{groups[c]:.3f}" if groups.get(c) is not None else "–" for c in TESTING_CENTERS.split(","))
    print(f"| {row['case']} | {row['stride']} | {row['arm']} | {auc} | {centers} | {row['froc']['froc']:.3f} "
          f"| {row['pixels']['auc']:.3f} | {row['cpu_s'] / TESTING:.1f} | {compared} |")


def print_table():
    """All cells that are there, and BUILD/bench/cohort.json of them."""
    rows = []
    for _, name, _, _ in WAYS:
        for stride in STRIDES:
            for arm in ARMS:
                cell = place(f"{arm}-{name}-{stride}.json")
                if os.path.exists(cell):
                    with open(cell) as file:
                        rows.append(json.load(file))
                    print_row(rows[-1])
                else:
                    print(f"missing: {cell}", file=sys.stderr)
    os.makedirs(os.path.join(build, "bench"), exist_ok=True)
    with open(os.path.join(build, "bench", "cohort.json"), "w") as out:
        json.dump(rows, out, indent=2)


def main():
    arms = sys.argv[3:] or list(ARMS)
    if arms != ["table"]:
        for arm in arms:
            Arm(arm).compute()
    print_table()


main()
