"""The memory and time of one gradient of images that no machine could hold whole.

    study_stream.py BUILD run [NETWORK:SIZE:MB[:SPILL] ...]   runs them one after another, adds to stream_runs.json
    study_stream.py BUILD largest                             the largest image by memory, to stream_largest.json
    study_stream.py BUILD publish                             both as tables and the plot of the cost per pixel, and
                                                              exact.json of tests/stream/exact.py as a table

Results are in BUILD/bench; tables go to docs/benchmarks.md between <!-- stream NAME --> and <!-- end -->, the plot to docs/images/stream-cost.svg and .png. `run` without more runs RUNS, of which the last takes hours at
40,000 px: every result is written as soon as it is there, and what is there already is not run again.
"""
import json
import os
import re
import resource
import subprocess
import sys
import time

import numpy

from setting import build, cores, folder, here, microtome

# network, side in px, --memory-mb, whether strips may be spilled
RUNS = [("resnet50", 5000, 4000, False), ("resnet50", 10000, 4000, False), ("resnet50", 20000, 4000, True),
        ("scan_tiny", 5000, 2000, True), ("scan_tiny", 10000, 2000, True), ("scan_tiny", 20000, 2000, True),
        ("scan_tiny", 40000, 2000, True), ("resnet50", 40000, 4000, True)]
GIGABYTES, TILES = [1, 2, 4, 8, 16], [256, 512, 1024, 2048]
RESULTS, LARGEST = os.path.join(folder, "stream_runs.json"), os.path.join(folder, "stream_largest.json")
SPILL = os.path.join(folder, "stream-spill")
DOCS = os.path.join(here, "..", "docs")


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as stream:
        return json.load(stream)


def write(path, rows):
    with open(path + ".part", "w") as out:
        json.dump(rows, out, indent=2)
        out.write("\n")
    os.rename(path + ".part", path)


def command_of(network, size, megabytes, spill, repeats):
    os.makedirs(SPILL, exist_ok=True)
    command = [microtome, "model", "bench", "--network", network, "--train", "--memory", "stream", "--memory-mb",
               str(megabytes), "--size", str(size), "--repeats", str(repeats), "--threads", str(min(2, len(cores))),
               "--json", "--quiet"]
    return command + (["--spill", SPILL] if spill else [])


def processor_s():
    """Of all programs that have ended: what a shared machine changes least."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(cases):
    for network, size, megabytes, spill in cases:
        rows = read(RESULTS)
        if any((row["network"], row["size"], row["memory_mb"]) == (network, size, megabytes) for row in rows):
            continue
        began, used = time.time(), processor_s()
        row = json.loads(subprocess.run(command_of(network, size, megabytes, spill, 1), check=True, text=True,
                                        stdout=subprocess.PIPE).stdout)
        load = os.getloadavg()[2]
        write(RESULTS, read(RESULTS) + [dict(network=network, size=size, memory_mb=megabytes, load=load,
                                             processor_s=processor_s() - used, **{
                                                 key: value for key, value in row.items()
                                                 if key not in ("mode", "batch", "memory")})])
        print(f"{network} at {size} px: {row['seconds']:.0f} s, {1e9 * row['seconds'] / size ** 2:.0f} ns/px, peak "
              f"{row['peak_rss_mb']:.0f} MB of {megabytes}, predicted {row['predicted_mb']:.0f}, tiles of "
              f"{row['tile_px']} px, strips {row['strips_mb']:.0f} MB, spilled {row['strips_spilled_mb']:.0f} MB; "
              f"{time.time() - began:.0f} s in all", flush=True)


def least_mb(network, size, tile, spill):
    """The least memory with which the image could be run by these tiles, as the refusal of 1 MB names it."""
    refusal = command_of(network, size, 1, spill, 0) + ["--tile-px", str(tile)]
    text = subprocess.run(refusal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    least = re.search(r"needs at least (\d+) MB", text)
    return int(least.group(1)) if least else sys.exit(f"{' '.join(refusal)}: {text}")


def largest(network, tile, spill):
    """By gigabytes. What is needed is c + a side + b side²: from three sizes, to 1,000 px; up to 200,000 px."""
    sides = numpy.array([8000, 16000, 32000])
    curve = numpy.polyfit(sides, [least_mb(network, side, tile, spill) for side in sides], 2)
    tried = numpy.arange(1000, 201000, 1000)
    return {gigabytes: int(max(tried[numpy.polyval(curve, tried) <= 1000 * gigabytes], default=0))
            for gigabytes in GIGABYTES}


def find_largest():
    rows = []
    for network in ("resnet18", "resnet50"):
        memory, spilled = ([largest(network, tile, spill) for tile in TILES] for spill in (False, True))
        for gigabytes in GIGABYTES:
            rows.append(dict(network=network, gb=gigabytes, memory=max(sizes[gigabytes] for sizes in memory),
                             spilled=max(sizes[gigabytes] for sizes in spilled)))
            print(rows[-1], flush=True)
    write(LARGEST, rows)


def px(side):
    return "none" if not side else f"{side:,}" + (" or more" if side == 200000 else "")


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def ns_a_px(row):
    return 1e9 * row["processor_s"] / row["size"] ** 2


def runs_table(rows):
    lines = ["| network | image, px | time | processor time | per pixel | memory allowed | predicted | measured peak | tiles, px | strips | of them on disk |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: (row["network"], row["size"], row["memory_mb"])):
        lines.append(f"| {row['network']} | {row['size']:,} | {duration(row['seconds'])} | {duration(row['processor_s'])} | "
                     f"{ns_a_px(row):,.0f} ns | "
                     f"{row['memory_mb']:,} MB | {row['predicted_mb']:,.0f} MB | {row['peak_rss_mb']:,.0f} MB | "
                     f"{row['tile_px']:,} | {row['strips_mb'] / 1e3:.1f} GB | {row['strips_spilled_mb'] / 1e3:.1f} GB |")
    return lines


def largest_table(rows):
    lines = ["| memory | ResNet-18 | ResNet-18, strips on disk | ResNet-50 | ResNet-50, strips on disk |",
             "|---|---|---|---|---|"]
    for gigabytes in GIGABYTES:
        cells = [row for name in ("resnet18", "resnet50") for row in rows
                 if (row["network"], row["gb"]) == (name, gigabytes)]
        lines.append(f"| {gigabytes} GB | " + " | ".join(f"{px(row['memory'])} | {px(row['spilled'])}"
                                                         for row in cells) + " |")
    return lines


def exact_table(rows):
    lines = ["| network | head | image, px | tiles, px | error, whole | streamed | ratio | by layer, whole | streamed | ratio |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['network']} | {row['head']} | {row['height']:,} x {row['width']:,} | {row['tile_px']:,} "
                     f"({row['tiles']}) | {row['plain']:.1e} | {row['stream']:.1e} | {row['ratio']:.2f} | "
                     f"{row['plain_alike']:.1e} | {row['stream_alike']:.1e} | {row['ratio_alike']:.2f} |")
    return lines


def publish():
    path = os.path.join(DOCS, "benchmarks.md")
    with open(path) as stream:
        text = stream.read()
    exact = read(os.path.join(folder, "exact.json"))
    for name, rows, make in (("runs", read(RESULTS), runs_table), ("largest", read(LARGEST), largest_table),
                             ("exact", exact, exact_table)):
        if rows:
            block = f"<!-- stream {name} -->\n" + "\n".join(make(rows)) + "\n<!-- end -->"
            text = re.sub(rf"<!-- stream {name} -->\n.*?<!-- end -->", lambda _: block, text, flags=re.S)
    with open(path, "w") as out:
        out.write(text)
    curves = {}
    for row in sorted(read(RESULTS), key=lambda row: row["size"]):
        curves.setdefault(row["network"], []).append(row)
    lines = ""
    for name, rows in curves.items():
        points = " ".join(f"{row['size']} {ns_a_px(row) / ns_a_px(rows[0])}" for row in rows)
        lines += f"{name}\tline\t{points}\n" if len(rows) > 1 else ""
    if lines:
        subprocess.run([os.path.join(build, "scaling_plot"), os.path.join(DOCS, "images", "stream-cost.svg"),
                        os.path.join(DOCS, "images", "stream-cost.png"), "One gradient within 4 GB",
                        "side of the image / px", "processor time per pixel, 5,000 px = 1", "0",
                        str(max(row["size"] for row in read(RESULTS))), "0", "1.5"],
                       input=lines, text=True, check=True)


def case(word):
    network, size, megabytes, *spill = word.split(":")
    return network, int(size), int(megabytes), spill == ["spill"]


action = sys.argv[2] if len(sys.argv) > 2 else ""
if action == "run":
    run([case(word) for word in sys.argv[3:]] or RUNS)
elif action == "largest":
    find_largest()
elif action == "publish":
    publish()
else:
    sys.exit(__doc__)
