#!/usr/bin/env python3
"""Whole images learnt from slide labels alone, on a phantom cohort: the tables and plots of docs/whole-image.md.

    bench/study_whole.py BUILD FOLDER [PART ...] [--threads N]

Parts, in this order if none is named: cohorts, start, whole, sizes, counts, heads, tissues, patches, maps, table,
pictures. What is in FOLDER already is not made again, so a study that was stopped can be continued, part by part. Seeds
are fixed.

The cohort has 150 slides of 75 patients and two centres, whose stains nothing else has; 25 patients are for testing.
Starting weights come from patches of 42 slides of three other centres. A whole-image training sees the slides' labels
and nothing else; the patch-based pipeline beside it sees the annotations of the same slides, and starts from the same
weights. Needs numpy and Pillow.
"""
import argparse
import csv
import json
import math
import os
import subprocess
import sys
import time
from xml.etree import ElementTree

import numpy
from PIL import Image, ImageDraw

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", type=os.path.abspath, metavar="BUILD")
parser.add_argument("folder", type=os.path.abspath, metavar="FOLDER")
parser.add_argument("parts", nargs="*", metavar="PART")
parser.add_argument("--threads", type=int, default=0, help="of microtome (0: as many as it likes)")
options = parser.parse_args()
folder = options.folder
microtome = os.path.join(options.build, "microtome")

SLIDES, SIZE_PX, SEED, CENTERS = 150, 6144, 21, "3,4"
OTHER_SLIDES, OTHER_PX, OTHER_SEED, OTHER_CENTERS = 42, 4096, 22, "0,1,2"
EPOCHS = 6  # of whole-image trainings on all slides
TRAINING = 100  # slides of the cohort that are not for testing
SCALES = (0.25, 0.5, 1.0, 2.0)  # um/px; the first one is the main result
COUNTS, COUNTS_MPP = (12, 24, 50, 100), 1.0
HEADS, HEADS_MPP = ("mean", "max", "attention", "classes"), 1.0
TISSUES, TISSUES_EPOCHS = "whole-1.0-tissues", 12
PATCH_PX, INPUT_PX = 160, 144  # of 144 px the network makes one cell
START = """seed: 1
network: {{ name: scan_tiny, input_px: {input}, weights: "{weights}" }}
data: {{ train: [{store}], val_fraction: 0.2, balance: weights }}
augment: {{ brightness: 0.1 }}
train: {{ epochs: {epochs}, batch: 32, ema: 0.98 }}
schedule: {{ learning_rate: {rate}, warmup_epochs: 1 }}
"""
WHOLE = """seed: 1
network: {{ name: scan_tiny, head: {head}, norm: frozen, weights: {weights} }}
data: {{ slides: [{slides}], mpp: {mpp}, split: attribute }}
augment: {{ brightness: 0.1 }}
train: {{ epochs: {epochs}, batch: 4, memory: stream, memory_mb: 1000, monitor: last }}
optimizer: {{ name: adam }}
schedule: {{ learning_rate: {rate}, warmup_epochs: 1 }}
"""


def place(*parts):
    return os.path.join(folder, *parts)


def run(*arguments):
    """What the program printed."""
    print("$ microtome", *arguments, file=sys.stderr, flush=True)
    return subprocess.run([microtome, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def measured(name, *arguments):
    """Runs a command once; what it took is kept in NAME.took.json. A command that was stopped and continued adds up."""
    path = place(name + ".took.json")
    took = dict(wall_s=0.0, cpu_s=0.0, peak_mb=0.0, done=False)
    if os.path.exists(path):
        with open(path) as file:
            took = json.load(file)
    if took["done"]:
        return took
    threads = ("--threads", str(options.threads)) if options.threads else ()
    print("$ microtome", *arguments, file=sys.stderr, flush=True)
    with open(place(name + ".log"), "a") as log:
        begin = time.monotonic()
        child = subprocess.Popen([microtome, *arguments, *threads], stdout=log, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    took["wall_s"] += time.monotonic() - begin
    took["cpu_s"] += usage.ru_utime + usage.ru_stime
    took["peak_mb"] = max(took["peak_mb"], usage.ru_maxrss / 1024)
    took["done"] = child.returncode == 0
    with open(path, "w") as out:
        json.dump(took, out)
    if not took["done"]:
        sys.exit(f"microtome {arguments[0]} failed: see {place(name + '.log')}")
    return took


# --- cohorts ---

def cohort(name, slides, size_px, seed, centers):
    if not os.path.exists(place(name, "slides.csv")):
        run("phantom", "-o", place(name), "--slides", str(slides), "--size", str(size_px), "--seed", str(seed),
            "--centers", centers, "-q")


def cohort_rows(name="cohort"):
    """Lines of the slide list, with absolute paths."""
    with open(place(name, "slides.csv")) as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for key in ("slide", "annotation"):
            row[key] = place(name, row[key]) if row[key] else ""
    return rows


def write_list(name, rows, columns):
    with open(place(name), "w") as out:
        writer = csv.DictWriter(out, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return place(name)


def labels_only(count):
    """A slide list without annotations: all test slides, and the first `count` of the others, two of each patient."""
    rows = cohort_rows()
    chosen = [row for row in rows if row["split"] == "train"][:count] + [row for row in rows if row["split"] == "test"]
    return write_list(f"labels-{count}.csv", chosen, ("slide", "mpp", "label", "patient", "center", "split"))


def side_list(side):
    rows = [row for row in cohort_rows() if row["split"] == side]
    return write_list(f"{side}.csv", rows, list(rows[0]))


def part_cohorts():
    cohort("cohort", SLIDES, SIZE_PX, SEED, CENTERS)
    cohort("other", OTHER_SLIDES, OTHER_PX, OTHER_SEED, OTHER_CENTERS)


# --- trainings ---

def train(name, config):
    with open(place(name + ".yaml"), "w") as out:
        out.write(config)
    return measured(name, "train", place(name + ".yaml"), "-o", place(name), "--resume")


def patches(name, slides, mpp, seed, *more):
    """Patches whose label is that of their centre, so that small lesions count at coarse scales too."""
    measured(name, "extract", slides, "-o", place(name), "--random", "60", "--patch", str(PATCH_PX), "--mpp", str(mpp),
             "--label-rule", "center", "--seed", str(seed), *more)
    return place(name)


def start(mpp):
    """Weights from patches of other slides with other stains."""
    store = patches(f"other-{mpp}", place("other", "slides.csv"), mpp, 1)
    train(f"start-{mpp}", START.format(input=INPUT_PX, weights="", store=store, epochs=10, rate=0.02))
    return place(f"start-{mpp}", "model.safetensors")


def start_without_tumour(mpp):
    """Weights from patches of the same other slides that tell lymphoid tissue, stroma and fat apart: no tumour is
    drawn, so the network learns what one is from slide labels alone."""
    if not os.path.exists(place("tissues", "slides.csv")):
        run("phantom", "-o", place("tissues"), "--slides", str(OTHER_SLIDES), "--size", str(OTHER_PX), "--seed",
            str(OTHER_SEED), "--centers", OTHER_CENTERS, "--classes", "lymphoid,stroma,fat", "-q")
    store = patches(f"tissues-{mpp}", place("tissues", "slides.csv"), mpp, 1, "--class-map",
                    place("tissues", "classes.yaml"), "--white", "1")
    train(f"start-tissues-{mpp}", START.format(input=INPUT_PX, weights="", store=store, epochs=10, rate=0.02))
    return place(f"start-tissues-{mpp}", "model.safetensors")


def untrained(mpp):
    """The starting weights on the whole test slides: four slides for training, at a rate that changes nothing."""
    name = f"untrained-{mpp}"
    train(name, WHOLE.format(head="lse", weights=start(mpp), slides=labels_only(4), mpp=mpp, epochs=1, rate=1e-12))
    return name


def whole_name(mpp, count=TRAINING, head="lse"):
    return f"whole-{mpp}-{count}-{head}"


def whole(mpp, count=TRAINING, head="lse"):
    """A whole-image training; fewer slides are seen more often, so that all take equally many steps."""
    name = whole_name(mpp, count, head)
    train(name, WHOLE.format(head=head, weights=start(mpp), slides=labels_only(count), mpp=mpp,
                             epochs=round(EPOCHS * TRAINING / count), rate=0.001))
    return name


def part_start():
    for mpp in SCALES:
        start(mpp)


def part_whole():
    whole(SCALES[0])


def part_sizes():
    for mpp in reversed(SCALES):
        whole(mpp)
        untrained(mpp)


def part_counts():
    for count in COUNTS:
        whole(COUNTS_MPP, count)


def part_heads():
    for head in HEADS:
        whole(HEADS_MPP, head=head)


def part_tissues():
    train(TISSUES, WHOLE.format(head="lse", weights=start_without_tumour(HEADS_MPP), slides=labels_only(TRAINING),
                                mpp=HEADS_MPP, epochs=TISSUES_EPOCHS, rate=0.001))


# --- the patch-based pipeline, and maps ---

def part_patches():
    """extract, train, predict, classify: with the annotations of the same training slides."""
    mpp = SCALES[0]
    store = patches("annotated", side_list("train"), mpp, 2)
    train("patch-net", START.format(input=INPUT_PX, weights=start(mpp), store=store, epochs=10, rate=0.01))
    measured("patch-maps", "predict", side_list("test"), "-o", place("patch-maps"), "--model", place("patch-net"),
             "--stride", "16", "--export", "none")
    measured("patch-lesions", "classify", "lesions", place("patch-maps"), "-o", place("patch-lesions"))


def part_maps():
    """Where the whole-image networks see tumour on every test slide: Grad-CAM, or CAM of heads that have it."""
    trained = [(f"maps-{mpp}", whole_name(mpp)) for mpp in SCALES]
    for name, model in trained + [(f"maps-{head}", whole_name(HEADS_MPP, head=head)) for head in HEADS]:
        measured(name, "predict", side_list("test"), "-o", place(name), "--model", place(model), "--mode", "whole",
                 "--export", "none")


def lesion_scores():
    """The table of the patch-based pipeline: a slide's score is the highest of its lesions, 0 where it has none."""
    with open(place("patch-scores.csv"), "w") as out:
        out.write("slide,score\n")
        for row in cohort_rows():
            if row["split"] == "test":
                name = os.path.splitext(os.path.basename(row["slide"]))[0]
                with open(place("patch-lesions", name + ".csv")) as file:
                    found = [float(lesion["score"]) for lesion in csv.DictReader(file)]
                out.write(f"{name},{max(found, default=0.0)}\n")
    return place("patch-scores.csv")


# --- tables, plots, pictures ---

def roc(table, *more):
    """AUC with its 95 % interval."""
    curve = json.loads(run("evaluate", "roc", table, "--json", "-q", *more))["curves"][0]
    return dict(auc=curve["auc"], low=curve["delong_95"][0], high=curve["delong_95"][1])


def result(name):
    """What a whole-image training reached on the test slides, and took; None if it is not there."""
    if not os.path.exists(place(name, "test_scores.csv")):
        return None
    found = roc(place(name, "test_scores.csv"), "--slide", "sample", "--score", "prob_tumor")
    with open(place(name + ".took.json")) as file:
        return dict(name=name, kinds=by_kind(name), **found, **json.load(file))


def by_kind(name):
    """AUC of slides with a large metastasis, with small ones and with isolated cells, each against all normal slides.
    The phantom gives patients one of the three in turn."""
    with open(place(name, "test_scores.csv")) as file:
        rows = [(row["label"] == "1", int(row["patient"].split("_")[1]), float(row["prob_tumor"]))
                for row in csv.DictReader(file)]
    normal = numpy.array([score for tumour, _, score in rows if not tumour])
    found = {}
    for kind, title in enumerate(("large", "small", "isolated")):
        scores = numpy.array([score for tumour, patient, score in rows
                              if tumour and (patient + patient // 3) % 3 == kind])
        above = scores[:, None] - normal[None]
        found[title] = (above > 0).mean() + (above == 0).mean() / 2
    return found


def pixels(maps):
    found = json.loads(run("evaluate", "pixels", place(maps), "--truth", side_list("test"), "--json", "-q"))["all"]
    return dict(pixel_auc=found["auc"], dice=found["dice"])


def collect():
    """All results that are there, as one JSON."""
    found = dict(sizes=[], untrained=[], counts=[], heads=[])
    for mpp in SCALES:
        for key, name in (("sizes", whole_name(mpp)), ("untrained", f"untrained-{mpp}")):
            row = result(name)
            found[key] += [dict(mpp=mpp, side_px=mean_side_px(mpp), **row)] if row else []
    for count in COUNTS:
        row = result(whole_name(COUNTS_MPP, count))
        found["counts"] += [dict(slides=count, **row)] if row else []
    for head in ("lse", *HEADS):
        row = result(whole_name(HEADS_MPP, head=head))
        found["heads"] += [dict(head=head, **row)] if row else []
    if os.path.exists(place("patch-lesions.took.json")):
        found["patches"] = dict(**roc(lesion_scores(), "--truth", side_list("test"), "--positive", "tumor"),
                                **pixels("patch-maps"))
    found["maps"] = [dict(of=of, **pixels(f"maps-{of}")) for of in (*SCALES, *HEADS)
                     if os.path.exists(place(f"maps-{of}.took.json"))]
    return found


def mean_side_px(mpp):
    """Side of a square with as many pixels as an image has on average: the box of the tissue at this scale."""
    path = place("tissue.json")
    if not os.path.exists(path):
        table = run("tissue", place("cohort", "slides.csv"), "-o", place("tissue"), "--json", "-q")
        with open(path, "w") as out:
            out.write(table)
    with open(path) as file:
        boxes = [row["box_l0"] for row in json.load(file)]
    return math.sqrt(numpy.mean([w * h for _, _, w, h in boxes])) * 0.25 / mpp


def interval(row):
    return f"{row['auc']:.3f} ({row['low']:.2f}–{row['high']:.2f})"


def print_rows(title, head, rows):
    print(f"\n{title}\n\n| {head} | slide AUC (95 %) | large | small | isolated | minutes | CPU minutes | peak MB |\n"
          "|---|---|---|---|---|---|---|---|")
    for first, row in rows:
        kinds = " | ".join(f"{auc:.3f}" for auc in row["kinds"].values())
        print(f"| {first} | {interval(row)} | {kinds} | {row['wall_s'] / 60:.1f} | {row['cpu_s'] / 60:.1f} "
              f"| {row['peak_mb']:.0f} |")


class Plot:
    """A plot of AUC with intervals, x logarithmic, as SVG."""
    WIDTH, HEIGHT, LEFT, TOP, LOW = 470, 300, 60, 40, 0.4

    def __init__(self, x_px, title, label, ticks):
        self.x_px, self.parts = x_px, []
        self.span = (math.log(ticks[0] / 1.25), math.log(ticks[-1] * 1.25))
        self.text(self.x_px + self.LEFT, 22, title, 15, "start", "bold")
        self.text(self.at(math.sqrt(ticks[0] * ticks[-1])), self.TOP + self.HEIGHT + 42, label)
        for tick in ticks:
            self.text(self.at(tick), self.TOP + self.HEIGHT + 20, f"{tick:,.0f}")
        for auc in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            y = self.height(auc)
            self.parts.append(f'<line x1="{self.x_px + self.LEFT}" x2="{self.x_px + self.WIDTH}" y1="{y}" y2="{y}" '
                              f'stroke="{"#d62728" if auc == 0.9 else "#dddddd"}" stroke-width="1" '
                              f'stroke-dasharray="{"5 4" if auc == 0.9 else "0"}"/>')
            self.text(self.x_px + self.LEFT - 8, y + 4, f"{auc:.1f}", 12, "end")

    def at(self, x):
        share = (math.log(x) - self.span[0]) / (self.span[1] - self.span[0])
        return self.x_px + self.LEFT + share * (self.WIDTH - self.LEFT)

    def height(self, auc):
        return self.TOP + self.HEIGHT * (1 - (max(auc, self.LOW) - self.LOW) / (1.02 - self.LOW))

    def text(self, x, y, words, size=12, anchor="middle", weight="normal", colour="#333333"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
                          f'font-weight="{weight}" fill="{colour}">{words}</text>')

    def curve(self, name, xs, rows, colour, name_at):
        points = [(self.at(x), self.height(row["auc"])) for x, row in zip(xs, rows)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), row in zip(points, rows):
            self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.height(row["low"]):.1f}" '
                              f'y2="{self.height(row["high"]):.1f}" stroke="{colour}" stroke-width="1.4"/>'
                              f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        self.text(points[name_at][0] + 8, points[name_at][1] + 20, name, 12, "start", colour=colour)


def draw_plots(found):
    plots = []
    if found["sizes"]:
        plot = Plot(0, "Slide AUC by size of the image", "side of the image (px, mean)",
                    sorted(row["side_px"] for row in found["sizes"]))
        for key, name, colour in (("sizes", "slide labels", "#1f77b4"), ("untrained", "starting weights", "#7f7f7f")):
            if found[key]:
                plot.curve(name, [row["side_px"] for row in found[key]], found[key], colour, len(found[key]) // 2)
        if "patches" in found:
            plot.curve("", [mean_side_px(SCALES[0]) * 1.08], [found["patches"]], "#2ca02c", 0)
            plot.text(plot.x_px + plot.WIDTH, plot.height(1.0) - 8, "patches and drawings", 12, "end",
                      colour="#2ca02c")
        plots.append(plot)
    if found["counts"]:
        plot = Plot(500, "Slide AUC by number of training slides", "training slides",
                    [row["slides"] for row in found["counts"]])
        plot.curve("slide labels", [row["slides"] for row in found["counts"]], found["counts"], "#1f77b4",
                   len(found["counts"]) // 2)
        plots.append(plot)
    with open(place("whole-auc.svg"), "w") as out:
        out.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 990 400" '
                  'font-family="Helvetica, Arial, sans-serif">\n<rect width="990" height="400" fill="#ffffff"/>\n' +
                  "\n".join(part for plot in plots for part in plot.parts) + "\n</svg>\n")


# --- pictures ---

def outlines(annotation):
    """Outlines of an ASAP XML, level-0 px."""
    tree = ElementTree.parse(annotation)
    return [[(float(point.get("X")), float(point.get("Y"))) for point in drawn.iter("Coordinate")]
            for drawn in tree.iter("Annotation")]


def overview(row, side_px):
    slide = Image.open(row["slide"])
    slide.seek(min(2, slide.n_frames - 1))  # level 2: a quarter of the side
    return slide.convert("RGB").resize((side_px, side_px), Image.LANCZOS)


def coloured(image, maps, name):
    """The image, grey, with the map of tumour over it: from transparent over orange to red."""
    with open(place(maps, name, "heatmap.json")) as file:
        info = json.load(file)
    scores = numpy.nan_to_num(numpy.load(place(maps, name, "heatmap.npy"))[..., info["classes"].index("tumor")])
    side_l0 = info["stride"] * info["downsample"]
    size = [round(n * side_l0 / info["width_l0"] * image.width) for n in (scores.shape[1], scores.shape[0])]
    heat = numpy.zeros((image.height, image.width))
    sized = numpy.asarray(Image.fromarray(scores.astype(numpy.float32)).resize(size, Image.BILINEAR))
    height, width = (min(a, b) for a, b in zip(heat.shape, sized.shape))
    heat[:height, :width] = sized[:height, :width]
    grey = numpy.asarray(image.convert("L"), dtype=float)[..., None].repeat(3, -1)
    colour = numpy.stack([numpy.full_like(heat, 220), 170 * (1 - heat), numpy.full_like(heat, 20)], -1)
    strength = 0.85 * numpy.clip(heat, 0, 1)[..., None]
    return Image.fromarray((grey * (1 - strength) + colour * strength).astype(numpy.uint8))


def part_pictures(side_px=300, gap_px=6):
    """whole-maps.png: test slides with their planted lesions outlined, and maps of three networks."""
    rows = [row for row in cohort_rows() if row["split"] == "test"]
    chosen = [row for row in rows if row["label"] == "tumor"][:3] + [row for row in rows if row["label"] != "tumor"][:1]
    out = Image.new("RGB", (4 * (side_px + gap_px), len(chosen) * (side_px + gap_px)), "white")
    for y, row in enumerate(chosen):
        name = os.path.splitext(os.path.basename(row["slide"]))[0]
        image = overview(row, side_px)
        for x, maps in enumerate((None, f"maps-{SCALES[0]}", "maps-classes", "patch-maps")):
            panel = coloured(image, maps, name) if maps else image.copy()
            for line in outlines(row["annotation"]) if row["annotation"] else ():
                points = [(px * side_px / SIZE_PX, py * side_px / SIZE_PX) for px, py in line]
                ImageDraw.Draw(panel).line(points + points[:1], fill=(0, 60, 255), width=2)
            out.paste(panel, (x * (side_px + gap_px), y * (side_px + gap_px)))
    out.quantize(200).save(place("whole-maps.png"), optimize=True)


def part_table():
    found = collect()
    print_rows("By size of the image", "µm/px, mean side", [(f"{row['mpp']}, {row['side_px']:,.0f} px", row)
                                                          for row in found["sizes"]])
    print_rows("The starting weights, untrained", "µm/px", [(row["mpp"], row) for row in found["untrained"]])
    print_rows(f"By number of slides, {COUNTS_MPP} µm/px", "slides", [(row["slides"], row) for row in found["counts"]])
    print_rows(f"By head, {HEADS_MPP} µm/px", "head", [(row["head"], row) for row in found["heads"]])
    tissues = result(TISSUES)
    if tissues:
        print_rows("Starting from patches without tumour", "µm/px", [(HEADS_MPP, tissues)])
    if "patches" in found:
        print(f"\nPatch-based: slide AUC {interval(found['patches'])}, pixel AUC {found['patches']['pixel_auc']:.3f}, "
              f"Dice {found['patches']['dice']:.3f}")
    for row in found["maps"]:
        print(f"Map of {row['of']}: pixel AUC {row['pixel_auc']:.3f}, Dice {row['dice']:.3f}")
    draw_plots(found)
    with open(place("whole.json"), "w") as out:
        json.dump(found, out, indent=2)


PARTS = dict(cohorts=part_cohorts, start=part_start, whole=part_whole, sizes=part_sizes, counts=part_counts,
             heads=part_heads, tissues=part_tissues, patches=part_patches, maps=part_maps, table=part_table,
             pictures=part_pictures)


def main():
    os.makedirs(folder, exist_ok=True)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"{unknown[0]}: the parts are {', '.join(PARTS)}")
    for part in options.parts or PARTS:
        PARTS[part]()


main()
