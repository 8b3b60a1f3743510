"""Training on ranks: images per second of ResNet-18 (224 px, 16 patches on each rank) and of a diffusion U-Net
(unet_small at 32 px, 32 on each) on 1 and 2 ranks of one thread, the time per step saved by summing while the backward pass
runs, and a model of 1 to 1,024 ranks from measured sums, drawn against the published efficiency.

Usage: bench_scaling.py BUILD. Writes BUILD/bench/scaling.json, scaling.svg and scaling.png.

Ranks that share two cores with the rest of a machine wait for each other most of the time. So for each step only the
shortest wait counts: that of the last rank to arrive, which waits for nothing but the sums.

The model: a step on P ranks takes the computing of one rank plus, for every bucket of n bytes, a ring:
2 (P - 1) alpha + 2 (P - 1) / P n beta. alpha and beta are fitted to sums on this machine, whose ranks share its
memory; the curve for a network uses the numbers in its name. With overlap, sums computed while the backward pass (two
thirds of the computing) is still running cost nothing, but the last bucket always does.
"""
import json
import os
import shutil
import subprocess
import sys

import numpy as np

import measure
from table import Table

BUILD = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(BUILD, "bench")
WORK = os.path.join(BUILD, "bench-work", "scaling")
MICROTOME = os.path.join(BUILD, "microtome")
BATCH, STEPS, EPOCHS = 16, 5, 2
GENERATOR_BATCH = 32  # whose steps are short
PARAMETERS = {"resnet18": 11689512, "unet_small": 2592707}
CLASSIFIER = ("network.name=resnet18", "network.input_px=224", f"data.train={WORK}/stores", f"train.batch={BATCH}")
GENERATOR = ("objective=generate", "network.name=unet_small", "network.input_px=32", f"data.train={WORK}/small",
             f"train.batch={GENERATOR_BATCH}")
PUBLISHED = (16, 75.0)  # diffusion model, data parallel, 1 to 16 GPUs


def prepare():
    """Stores of patches of phantom slides: few of 256 px, and more of 64 px for the generator."""
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    log = os.path.join(WORK, "prepare.log")
    measure.run([MICROTOME, "phantom", "-q", "-o", WORK + "/cohort", "--slides", "4", "--size", "4096", "--seed", "1"], {0, 1}, log)
    slides = WORK + "/cohort/slides.csv"
    with open(slides) as file:
        rows = file.read().replace(",test\n", ",train\n")  # none is kept for a test
    with open(slides, "w") as file:
        file.write(rows)
    count = 2 * BATCH * STEPS // 2 // 2
    measure.run([MICROTOME, "extract", "-q", slides, "-o", WORK + "/stores", "--random", str(count)], {0, 1}, log)
    measure.run([MICROTOME, "extract", "-q", slides, "-o", WORK + "/small", "--random", "240", "--patch", "64"], {0, 1}, log)


def train(ranks, cores, learnt, settings=()):
    """Images per second of the training itself, and the record of the run."""
    out, log = os.path.join(WORK, "run"), os.path.join(WORK, "train.log")
    command = [MICROTOME, "train", "-q", "--json", "--overwrite", "-o", out, "--threads", "1", "--ranks", str(ranks)]
    for setting in (*learnt, f"train.epochs={EPOCHS}", "data.val_fraction=0.3", "data.workers=1",
                    "schedule.learning_rate=0.001", *settings):
        command += ["--set", setting]
    measure.run(command, cores, log)
    with open(log) as text:
        rate = json.loads(text.read())["patches_per_s"]
    with open(os.path.join(out, "run.json")) as text:
        return rate, json.load(text)


def on_ranks(program, ranks):
    """[(bytes, seconds)] of a program of this folder: all_reduce, exchange."""
    command = ["mpirun", "-n", str(ranks), "--quiet", "--oversubscribe", "--bind-to", "none"]
    command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    text = subprocess.run(command + [os.path.join(BUILD, program)], check=True, capture_output=True, text=True).stdout
    return [(int(line.split()[0]), float(line.split()[1])) for line in text.splitlines()]


def ring(ranks, size, alpha, beta):
    return 2 * (ranks - 1) * alpha + 2 * (ranks - 1) / ranks * size * beta


def fit(sums):
    """alpha and beta with the smallest relative error; neither below 0."""
    rows = [[2 * (p - 1) / t, 2 * (p - 1) / p * n / t] for p, n, t in sums]
    alpha, beta = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)[0]
    return max(alpha, 1e-9), max(beta, 1e-13)


def buckets(network):
    """Bytes that are summed together: 25 MB each from the last layer on, 1 MB last."""
    left = 4 * PARAMETERS[network] - (1 << 20)
    return [25 << 20] * (left // (25 << 20)) + [left % (25 << 20), 1 << 20]


def efficiency(ranks, network, compute, alpha, beta, overlap):
    if ranks == 1:
        return 100.0
    times = [ring(ranks, n, alpha, beta) for n in buckets(network)]
    shown = sum(times)
    if overlap:
        shown = times[-1] + max(0.0, sum(times[:-1]) - compute * 2 / 3)
    return 100 * compute / (compute + shown)


def draw(compute, alpha, beta, measured):
    ranks = [2 ** i for i in range(11)]
    def curve(name, kind, points):
        return f"{name}\t{kind}\t" + " ".join(f"{x} {y:.3f}" for x, y in points) + "\n"
    here = f"this machine: alpha {1e6 * alpha:.0f} us, {1e-9 / beta:.1f} GB/s"
    lines = curve(here + ", overlap", "line", [(p, efficiency(p, "resnet18", compute, alpha, beta, True)) for p in ranks])
    lines += curve(here + ", no overlap", "dashed", [(p, efficiency(p, "resnet18", compute, alpha, beta, False)) for p in ranks])
    lines += curve("assumed network: alpha 20 us, 10 Gbit/s, no overlap", "dashed",
                   [(p, efficiency(p, "resnet18", compute, 20e-6, 1 / 1.25e9, False)) for p in ranks])
    lines += curve("measured here, 2 ranks", "line", [(1, 100.0), (2, measured)])
    lines += curve("published: 75 % at 16", "line", [(1, 100.0), PUBLISHED])
    subprocess.run([os.path.join(BUILD, "scaling_plot"), FOLDER + "/scaling.svg", FOLDER + "/scaling.png"],
                   input=lines, text=True, check=True)


def main():
    table = Table("scaling", FOLDER)
    os.makedirs(FOLDER, exist_ok=True)
    prepare()
    one, _ = train(1, {0}, CLASSIFIER)
    free, _ = train(1, {0, 1}, CLASSIFIER)
    two, with_overlap = train(2, {0, 1}, CLASSIFIER)
    _, without = train(2, {0, 1}, CLASSIFIER, ["ranks.overlap=false"])
    table.add("resnet18 b16, 2 ranks x 1 thread", "patches/s", two, one, "1 rank x 1 thread on one core")
    table.add("resnet18 b16, 2 ranks x 1 thread", "patches/s", two, free, "1 rank x 1 thread, both cores free")
    generator_one = max(train(1, {0}, GENERATOR)[0] for _ in range(2))
    generator_two = max(train(2, {0, 1}, GENERATOR)[0] for _ in range(2))
    table.add("diffusion, unet_small b32, 2 ranks x 1 thread", "patches/s", generator_two, generator_one,
              "1 rank x 1 thread on one core")
    steps = STEPS * EPOCHS
    with_overlap, without = with_overlap["sums"], without["sums"]
    table.add("gradient sums not hidden by the backward pass", "ms/step", 1e3 * with_overlap["exposed_s"] / steps,
              1e3 * without["exposed_s"] / steps, "ranks.overlap: false", less_is_better=True)
    print(f"with overlap {100 * with_overlap['hidden_bytes'] / with_overlap['bytes']:.0f} % of the bytes "
          f"({with_overlap['hidden_buckets']} of {with_overlap['buckets']} buckets) were summed before the backward pass "
          f"ended; the first rank waited {1e3 * with_overlap['waited_s'] / steps:.0f} ms/step for the other and for sums "
          f"(without overlap {1e3 * without['waited_s'] / steps:.0f})")

    sums = []
    for ranks in (2, 3, 4):
        found = on_ranks("all_reduce", ranks)
        print(f"{ranks} ranks: " + ", ".join(f"{n / 1024:.0f} KB {1e3 * t:.3f} ms" for n, t in found))
        sums += [(ranks, n, t) for n, t in found if ranks <= len(os.sched_getaffinity(0))]
    print("an exchange of two ranks: " + ", ".join(f"{n} bytes {1e6 * t:.2f} us" for n, t in on_ranks("exchange", 2)))
    alpha, beta = fit(sums)
    compute = BATCH / one
    draw(compute, alpha, beta, 50 * two / one)
    print(f"alpha {1e6 * alpha:.1f} us, beta {1e9 * beta:.4f} ns/byte ({1e-9 / beta:.2f} GB/s); a step computes {compute:.2f} s")
    steps_s = {"resnet18": compute, "unet_small": GENERATOR_BATCH / generator_one}
    for network, step_s in steps_s.items():
        for ranks in (2, 16, 128, 1024):
            print(f"model of {network}, {ranks} ranks: {efficiency(ranks, network, step_s, alpha, beta, False):.1f} % without "
                  f"overlap, {efficiency(ranks, network, step_s, alpha, beta, True):.1f} % with")
        for link, a, b in (("this machine's sums", alpha, beta), ("20 us, 10 Gbit/s", 20e-6, 1 / 1.25e9)):
            table.add(f"model, {network}, 16 ranks, no overlap, {link}", "% efficiency",
                      efficiency(16, network, step_s, a, b, False), PUBLISHED[1], "published, 16 GPUs (diffusion model)")
    table.finish()


main()
