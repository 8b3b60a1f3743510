"""One image over ranks by bands of rows: the gradient of ResNet-50 on one rank of one thread and on two, measured; and a
model of 1 to 32 ranks on an image of 20,000 x 20,000 pixels, beside the speed-up that was published for whole-image
training on 32 GPUs.

Usage: bench_bands.py BUILD. Writes BUILD/bench/bands.json.

Measured: the time of images of two heights on one rank, from which follow the time of a row and that of what does not
grow with the image; the time on two ranks; the bytes that neighbours exchange; alpha and beta of messages and of sums
between processes of this machine. Two ranks are compared by the time that passes and, because other programs on the
machine change that, by the processor time of the busiest rank, in which waiting counts.

The model: a rank computes the rows of the highest band (multiples of the network's stride), all of what does not grow
with the image, sends and receives the cells of its borders and their gradients without hiding any of it, and takes part
in a ring that sums the gradients: 2 (P - 1) alpha + 2 (P - 1) / P n beta. Memory that all ranks of a machine share, and
differences between ranks, are not in it.
"""
import json
import os
import subprocess
import sys

import numpy as np

import measure
from table import Table

BUILD = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(BUILD, "bench")
NETWORK, WIDTH, HEIGHT, TILE, STEP = "resnet50", 1024, 2048, 512, 32
LARGE = 20000
PUBLISHED = (32, 146.28, 4.11)  # ranks; speed-up, of which this factor is not that of ranks
ASSUMED = (20e-6, 1 / 1.25e9)  # 10 Gbit/s


def gradient(ranks, height, repeats=2):
    command = [os.path.join(BUILD, "bands_time"), NETWORK, str(height), str(WIDTH), str(TILE), str(repeats)]
    if ranks > 1:
        start = ["mpirun", "-n", str(ranks), "--quiet", "--oversubscribe", "--bind-to", "none"]
        start += ["--mca", "mpi_yield_when_idle", "1"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        return json.loads(subprocess.run(start + command, check=True, text=True, capture_output=True).stdout)
    return json.loads(measure.output(command, 1))


def on_ranks(program, ranks):
    command = ["mpirun", "-n", str(ranks), "--quiet", "--oversubscribe", "--bind-to", "none"]
    command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    text = subprocess.run(command + [os.path.join(BUILD, program)], check=True, capture_output=True, text=True).stdout
    return [(int(line.split()[0]), float(line.split()[1])) for line in text.splitlines()]


def fit(rows, seconds):
    """Seconds = alpha * rows[0] + beta * rows[1], with the smallest relative error; neither below 0."""
    rows = np.array(rows) / np.array(seconds)[:, None]
    alpha, beta = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return max(alpha, 1e-9), max(beta, 1e-13)


def model(ranks, row_s, fixed_s, strip, gradients, message, ring):
    """Seconds of a gradient of the large image."""
    rows = -(-LARGE // ranks)
    rows = LARGE if ranks == 1 else -(-rows // STEP) * STEP
    seconds = fixed_s + rows * row_s * LARGE / WIDTH
    if ranks > 1:
        seconds += 2 * (message[0] + message[1] * strip * LARGE / WIDTH)
        seconds += 2 * (ranks - 1) * ring[0] + 2 * (ranks - 1) / ranks * gradients * ring[1]
    return seconds


def main():
    os.makedirs(FOLDER, exist_ok=True)
    table = Table("bands", FOLDER)
    one, half, two = gradient(1, HEIGHT), gradient(1, HEIGHT // 2), gradient(2, HEIGHT)
    size = f"{NETWORK}, {HEIGHT} x {WIDTH} px"
    table.add(f"{size}, 2 ranks x 1 thread", "s", two["seconds"], one["seconds"], "1 rank x 1 thread", less_is_better=True)
    table.add(f"{size}, busiest of 2 ranks", "processor s", two["processor_s"], one["processor_s"], "1 rank x 1 thread",
              less_is_better=True)
    row_s = (one["processor_s"] - half["processor_s"]) / (HEIGHT - HEIGHT // 2)
    fixed_s = max(one["processor_s"] - row_s * HEIGHT, 0)
    exchanged, summed = on_ranks("exchange", 2), on_ranks("all_reduce", 2)
    message = fit([(1, n) for n, _ in exchanged], [t for _, t in exchanged])
    ring = fit([(2, n) for n, _ in summed], [t for _, t in summed])
    print(f"a row of {WIDTH} px {1e3 * row_s:.3f} ms, besides {fixed_s:.2f} s; neighbours exchange {two['strip_bytes'] / 1e6:.1f} MB "
          f"twice; messages {1e6 * message[0]:.1f} us, {1e-9 / message[1]:.1f} GB/s; sums {1e6 * ring[0]:.1f} us, "
          f"{1e-9 / ring[1]:.1f} GB/s")
    print(f"model, {LARGE} x {LARGE} px: ranks, speed-up on this machine's links, on assumed ones of 10 Gbit/s")
    for ranks in (1, 2, 4, 8, 16, 32):
        speed = []
        for links in ((message, ring), (ASSUMED, ASSUMED)):
            given = (row_s, fixed_s, two["strip_bytes"], two["gradient_bytes"])
            speed.append(model(1, *given, *links) / model(ranks, *given, *links))
        print(f"{ranks:3} {speed[0]:6.2f} {speed[1]:6.2f}")
        if ranks > 1:
            table.add(f"model, {LARGE}^2 px, {ranks} ranks, 10 Gbit/s", "speed-up", speed[1], ranks, "as many times as ranks")
        if ranks == PUBLISHED[0]:
            case = f"model, {LARGE}^2 px, {ranks} ranks, 10 Gbit/s"
            table.add(case, "speed-up", speed[1], PUBLISHED[1], f"published, {ranks} GPUs, with memory optimisation")
            table.add(case, "speed-up", speed[1], PUBLISHED[1] / PUBLISHED[2], f"the same without its {PUBLISHED[2]} by memory")
    table.finish()


main()
