#!/usr/bin/env python3
"""The 3x3 convolutions of stride 1, layer by layer: direct (oneDNN) against our Winograd kernels with tiles of 2x2,
4x4 and (only with --fast) 6x6, in ms and effective share of the peak, and which one the plan uses: the Markdown tables
of docs/kernels.md. Also with oneDNN restricted to AVX2, as on most clusters.

    bench/convolutions.py [BUILD-FOLDER] > tables.md
"""
import os
import re
import subprocess
import sys

from plan_steps import peak_gflops, steps

CASES = [("googlenet", 1, 224, 100), ("resnet18", 8, 224, 12)]
build = sys.argv[1] if len(sys.argv) > 1 else "build"


def layers(network, batch, size, repeats, kernels, isa):
    env = dict(os.environ, **({"DNNL_MAX_CPU_ISA": isa} if isa else {}))
    text = subprocess.run([f"{build}/microtome", "model", "show", "--plan", "--network", network, "--batch", str(batch),
                           "--size", str(size), "--threads", "1", "--repeats", str(repeats), "--kernels", kernels],
                          check=True, capture_output=True, text=True, env=env).stdout
    passed = steps(text)
    found = {node: (kernel, shape.strip("[]"), ms, gflops) for node, kernel, shape, ms, gflops in passed
             if re.match(r"conv 3x3(?! s)", kernel)}
    return found, sum(step[3] for step in passed), peak_gflops(text)


def table(network, batch, size, repeats, isa):
    runs = {k: layers(network, batch, size, repeats, k, isa) for k in ("direct", "winograd2", "winograd4", "winograd6", "auto")}
    peak = runs["auto"][2]
    wide = isa is None
    print(f"**{network}, batch {batch}, {'AVX-512' if wide else 'AVX2'}**: all layers together "
          f"{runs['direct'][1]:.1f} ms direct, {runs['auto'][1]:.1f} ms as planned\n")
    print("| layer | outputs | direct | F2 | F4 | F6 | used |\n|---|---|---|---|---|---|---|")

    def cell(kernels, name):
        _, _, ms, gflops = runs[kernels][0][name]
        return f"{ms:.2f} ms, {100 * gflops / peak:.0f} %" if wide else f"{ms:.2f} ms"

    for name, (kernel, shape, _, _) in runs["auto"][0].items():
        tile = re.search(r"winograd (\d)", kernel)
        used = f"F{tile[1]}" if tile else "direct"
        cells = " | ".join(cell(kernels, name) for kernels in ("direct", "winograd2", "winograd4", "winograd6"))
        print(f"| {name} | {shape} | {cells} | {used} |")
    print()


for case in CASES:
    for isa in (None, "AVX2"):
        table(*case, isa)
