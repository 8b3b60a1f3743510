"""Strips of a streamed network that do not fit into memory: what the ways of spilling cost, one measure after the other
(tile by tile and waited for, in groups, in groups and ahead, as bfloat16), and what bfloat16 changes in gradients.

Tiles are small here, so that there are many strips for what is computed: with those that are chosen for large images
the shares are smaller. Transfers go past the page cache where the file system allows it.
"""
import array
import json
import math
import os
import shutil

from measure import output
from setting import build, cores, folder
from table import Table

NETWORK, SIDE_PX, TILE_PX = "resnet50", 1536, 256
STRIPS_MB = 16  # of memory for strips: nearly all are spilled
TARGET = 2.0  # % of a step
WAYS = [("tile by tile, waited for", "tiles", "single"), ("in groups, waited for", "groups", "single"),
        ("in groups, ahead", "ahead", "single"), ("in groups, ahead, bfloat16", "ahead", "bf16")]
program, work = os.path.join(build, "strips_time"), os.path.join(folder, "strips")


def gradient(network, side, tile, strips_mb, how, store, name):
    """One gradient: what strips_time prints, and where the gradients are."""
    path = os.path.join(work, name)
    text = output([program, network, str(side), str(tile), str(strips_mb), work, how, store, str(len(cores)), path],
                  len(cores))
    return dict(json.loads(text), gradients=path)


def changed(result, reference):
    """The difference between two gradients, in % of the second."""
    numbers = []
    for path in result["gradients"], reference["gradients"]:
        numbers.append(array.array("f"))
        with open(path, "rb") as file:
            numbers[-1].frombytes(file.read())
    difference = math.fsum((a - b) ** 2 for a, b in zip(*numbers))
    return 100 * math.sqrt(difference / math.fsum(b * b for b in numbers[1]))


def share(result, what):
    return max(100 * result[what] / result["seconds"], 1e-2)


shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
table = Table("strips", folder)
kept = gradient(NETWORK, SIDE_PX, TILE_PX, 0, "ahead", "single", "kept")
title = f"{NETWORK}, {SIDE_PX} px, tiles of {TILE_PX}"
results = {}
for case, how, store in WAYS:
    results[case] = result = gradient(NETWORK, SIDE_PX, TILE_PX, STRIPS_MB, how, store, how + store)
    rate = 2 * result["spilled_mb"] / max(result["io_s"], 1e-6)
    print(f"{case}: {result['seconds']:.1f} s ({kept['seconds']:.1f} s without spilling), "
          f"{result['spilled_mb']:.0f} of {result['strips_mb']:.0f} MB spilled at {rate:.0f} MB/s, "
          f"{result['io_s']:.2f} s of transfers, {result['waited_s']:.2f} s of them waited for")
    same = changed(result, kept) == 0
    if store == "single" and not same:
        raise SystemExit(f"{case}: spilling changed gradients")
first = results[WAYS[0][0]]
for case, how, store in WAYS[1:]:
    table.add(f"{title}: {case}", "% waited", share(results[case], "waited_s"), share(first, "waited_s"), WAYS[0][0],
              less_is_better=True)
table.add(f"{title}: in groups, ahead", "% waited", share(results[WAYS[2][0]], "waited_s"), TARGET, "target",
          less_is_better=True)
for network in "resnet18", NETWORK:
    single, half = (gradient(network, SIDE_PX // 2, TILE_PX // 2, 0, "ahead", store, network + store)
                    for store in ("single", "bf16"))
    table.add(f"{network}: gradients changed by bfloat16 strips", "%", changed(half, single), 0.3, "stated",
              less_is_better=True)
shutil.rmtree(work)
table.finish()
