#!/usr/bin/env python3
"""heads_model.py: the time of a training step of T5-Large where attention heads and MLP columns are divided among H
neighbouring ranks, beside data parallelism, by a model: multiply-adds at a rate, sums over P ranks as a ring,
2 (P - 1) latency + 2 (P - 1) / P bytes / bandwidth. Prints a table in Markdown. Nothing is measured, but --links and
--near-links take latency and bandwidth from measurements: `mpirun .. microtome doctor --mpi --json`.

All grids have the same samples in a step. Data parallelism sums all gradients over all ranks once. With H, a rank has 1/H of
the gradients of the divided weights and sums them over ranks / H replicas; the layers sum activations of H times as many
samples over the H ranks. The last column hides sums of gradients behind the backward pass, two thirds of the
compute, as ranks.overlap does at best.

--plot BUILD draws docs/images/heads-model.svg and .png with BUILD/scaling_plot instead: the settings of the table in
docs/model-parallel.md, sums of gradients not hidden, beside what was published for SUPER."""
import argparse
import json
import os
import subprocess

LAYERS, WIDTH, INNER, VOCABULARY = 24, 1024, 4096, 32128  # T5-Large: as many layers in the encoder as in the decoder
ATTENTION = 4 * WIDTH * WIDTH  # weights of q, k, v and the output
MLP = 2 * WIDTH * INNER
DIVIDED = LAYERS * (ATTENTION + MLP) + LAYERS * (2 * ATTENTION + MLP)
WHOLE = VOCABULARY * WIDTH
SUMS = LAYERS * 2 + LAYERS * 3  # forward; as many on the way back
HEADS = (1, 2, 4, 8, 16)
PUBLISHED = 2.22  # SUPER over data parallelism, T5-Large; neither grid, batch nor machine is stated
SETTINGS = [("12 TFLOP/s, 6 GB/s between machines, 1 sample a rank", ""),
            ("12 TFLOP/s, 12 GB/s between machines, 1 sample a rank", "--bandwidth 12e9"),
            ("12 TFLOP/s, 6 GB/s between machines, 8 samples a rank", "--samples 8"),
            ("CPUs, 1.5 TFLOP/s, 12 GB/s between machines, 1 sample a rank",
             "--rate 1.5e12 --near 2 --near-bandwidth 20e9 --near-latency 1e-6 --bandwidth 12e9 --latency 2e-6")]
IMAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "images")


def ring(ranks, size, latency, bandwidth):
    return 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size / bandwidth


def compute(heads, a):
    """Seconds of a rank for its tokens in the encoder and as many in the decoder: forward and twice as much back. What is not
    divided (the product with the vocabulary) is done for the samples of all H ranks. Scores of attention are left out."""
    return 3 * 2 * (DIVIDED + heads * WHOLE) * a.samples * a.tokens / a.rate


def step(heads, a):
    """(compute, sums within layers, sums of gradients) of a step, in seconds."""
    activations = 4 * heads * a.samples * a.tokens * WIDTH
    near = (a.near_latency, a.near_bandwidth) if heads <= a.near else (a.latency, a.bandwidth)
    layers = 0 if heads == 1 else 2 * SUMS * ring(heads, activations, *near)
    gradients = ring(a.ranks // heads, 4 * (DIVIDED / heads + WHOLE), a.latency, a.bandwidth) if a.ranks > heads else 0
    return compute(heads, a), layers, gradients


def hidden(parts):
    return parts[0] + parts[1] + max(0, parts[2] - parts[0] * 2 / 3)


def times_as_fast(heads, a):
    return sum(step(1, a)) / sum(step(heads, a))


def plot(build, parser):
    def curve(name, kind, values):
        return f"{name}\t{kind}\t" + " ".join(f"{heads} {value:.4f}" for heads, value in zip(HEADS, values)) + "\n"
    lines = "".join(curve(name, "line", [times_as_fast(heads, parser.parse_args(options.split())) for heads in HEADS])
                    for name, options in SETTINGS)
    lines += curve("data parallelism", "dashed", [1] * len(HEADS))
    lines += curve(f"published for SUPER: up to {PUBLISHED}, setting not stated", "dashed", [PUBLISHED] * len(HEADS))
    subprocess.run([os.path.join(build, "scaling_plot"), os.path.join(IMAGES, "heads-model.svg"),
                    os.path.join(IMAGES, "heads-model.png"), "T5-Large on 64 ranks, by a model",
                    "heads: ranks that divide every layer", "times as fast as data parallelism",
                    str(HEADS[0]), str(HEADS[-1]), "0", "2.5", "log"],
                   input=lines, text=True, check=True)


def measured(path):
    """(latency, bandwidth) of `doctor --mpi --json`."""
    with open(path) as file:
        report = json.load(file)
    return report["latency_s"], report["bytes_per_s"]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--ranks", type=int, default=64)
    p.add_argument("--samples", type=float, default=1, help="samples in a step for each rank")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--rate", type=float, default=12e12, help="floating-point operations per second of a rank")
    p.add_argument("--near", type=int, default=4, help="ranks of a machine")
    p.add_argument("--near-latency", type=float, default=5e-6)
    p.add_argument("--near-bandwidth", type=float, default=60e9, help="bytes/s between ranks of a machine")
    p.add_argument("--latency", type=float, default=10e-6)
    p.add_argument("--bandwidth", type=float, default=6e9, help="bytes/s of a rank to other machines")
    p.add_argument("--links", metavar="JSON", help="latency and bandwidth as `microtome doctor --mpi --json` measured them")
    p.add_argument("--near-links", metavar="JSON", help="the same between ranks of a machine")
    p.add_argument("--plot", metavar="BUILD", help="draw the settings of docs/model-parallel.md; other options are not used")
    a = p.parse_args()
    if a.plot:
        return plot(a.plot, p)
    if a.links:
        a.latency, a.bandwidth = measured(a.links)
    if a.near_links:
        a.near_latency, a.near_bandwidth = measured(a.near_links)
    print(f"{(DIVIDED + WHOLE) / 1e6:.0f} M parameters, {DIVIDED / 1e6:.0f} M of them divided\n")
    columns = ["heads", "compute", "sums in layers", "sums of gradients", "step", "relative to data", "the same, hidden"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for heads in HEADS:
        parts = step(heads, a)
        times = " | ".join(f"{1e3 * t:.0f} ms" for t in (*parts, sum(parts)))
        print(f"| {heads} | {times} | {times_as_fast(heads, a):.2f} | {hidden(step(1, a)) / hidden(parts):.2f} |")


if __name__ == "__main__":
    main()
