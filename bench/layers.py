#!/usr/bin/env python3
"""Where the time of a forward pass goes: groups of layers with ms, GFLOP/s and the share of the processor's
peak, as the Markdown tables of docs/engine.md. Operations are counted as those of the direct method.

    bench/layers.py [BUILD-FOLDER] > tables.md
"""
import re
import subprocess
import sys

from plan_steps import peak_gflops, steps

CASES = [("googlenet", 1, 300), ("googlenet", 16, 20), ("resnet18", 8, 40), ("resnet50", 8, 20)]
build = sys.argv[1] if len(sys.argv) > 1 else "build"


def reason(group, batch):
    """What keeps a group from the peak."""
    kernel, side = group
    if "wino" in kernel:
        return ("fewer multiplications than counted (2.25 times with 2x2 tiles, 4 times with 4x4); transforms "
                "and weights pass through the caches")
    if kernel.startswith("conv 7x7"):
        return "3 input channels: each row of weights is used for few multiply-adds before the next is loaded"
    if "conv 1x1" in kernel:
        if side and side <= 14 and batch == 1:
            return "few pixels per weight read; the last block of pixels is not full"
        return "one multiply-add per float loaded from the cache; strided at the start of a stage"
    if kernel.startswith("conv 5x5") or kernel.startswith("conv 3x3"):
        return "direct; borders, and rows that do not fill the registers"
    if kernel.startswith("linear"):
        return "memory bandwidth: weights are read once per batch" if batch < 16 else "weights from memory"
    if "pool" in kernel:
        return "no multiply-adds: memory-bound"
    return "moves data only"


def table(network, batch, repeats):
    text = subprocess.run([f"{build}/microtome", "model", "show", "--plan", "--network", network, "--batch", str(batch),
                           "--threads", "1", "--repeats", str(repeats)],
                          check=True, capture_output=True, text=True).stdout
    peak = peak_gflops(text)
    groups = {}
    for _, kernel, shape, ms, gflops in steps(text):
        sides = [int(x) for x in re.findall(r"\d+", shape)]
        side = sides[3] if len(sides) == 4 else 0
        entry = groups.setdefault((kernel, side), [0, 0.0, 0.0])
        entry[0] += 1
        entry[1] += ms
        entry[2] += ms * gflops
    total_ms = sum(entry[1] for entry in groups.values())
    total = sum(entry[2] for entry in groups.values())
    print(f"**{network}, batch {batch}**: {total_ms:.1f} ms, {total / total_ms:.0f} of {peak:.0f} GFLOP/s "
          f"({100 * total / total_ms / peak:.0f} %)\n")
    print("| layers | map | count | ms | GFLOP/s | % of peak | what limits it |\n|---|---|---|---|---|---|---|")
    small = [0, 0.0]
    for group, (count, ms, work) in sorted(groups.items(), key=lambda item: -item[1][1]):
        if ms < 0.01 * total_ms:
            small[0] += count
            small[1] += ms
            continue
        rate = work / ms
        side = f"{group[1]}²" if group[1] else "–"
        speed = f"{rate:.0f} | {100 * rate / peak:.0f}" if rate else "– | –"
        print(f"| {group[0]} | {side} | {count} | {ms:.2f} | {speed} | {reason(group, batch)} |")
    print(f"| all others, below 1 % each | | {small[0]} | {small[1]:.2f} | | | |\n")


for case in CASES:
    table(*case)
