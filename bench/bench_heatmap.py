"""Heatmaps at stride 16: seconds for a 224-px tile on one pinned core, against the sliding window in PyTorch,
ONNX Runtime and OpenVINO; core-hours for CAMELYON16; two threads; blocks of padded networks streamed and scored at once, on solid
and on scattered tissue (work and processor seconds); and a whole slide of 32,768 px from file to exports.

The peers score only a few tiles, since each takes them many seconds; the table says how many. Our times are means over
all the tissue of a slide and include finding the tissue, reading and writing (but not the check of a padded network,
which is made once per cohort). The last two peers are installed from PyPI into BUILD/bench/python if PyPI can be
reached.
"""
import json
import os
import resource
import shutil
import subprocess

import numpy
from PIL import Image

from measure import ONNX_PEERS, onnx_peers, output, run
from setting import PYTHON, cores, folder, here, microtome, site
from table import Table

STRIDE, TILE = 16, 224
REPEATS, SHORT_S = 3, 10
CAMELYON16_TILES = 10.9e6
PUBLISHED_CORE_HOURS = 133034
PEER_TILES = {("torch", "googlenet"): 1, ("onnxruntime", "googlenet"): 2, ("openvino", "googlenet"): 2,
              ("torch", "scan_small"): 3, ("onnxruntime", "scan_small"): 4, ("openvino", "scan_small"): 4}


def phantom(name, size, seed, *options):
    """A slide of this size, created once."""
    place = os.path.join(folder, name)
    subprocess.run([microtome, "phantom", "-o", place, "--slides", "1", "--size", str(size), "--seed", str(seed),
                    "--quiet", *options], check=True)
    slides = os.path.join(place, "slides")
    return next(os.path.join(slides, file) for file in os.listdir(slides) if file.endswith(".tiff"))


def predict(slide, network, mode, threads, *options):
    """Tissue tiles, wall seconds for the slide, the program's output, and the folder of the heatmap."""
    out = os.path.join(folder, "heatmap_out")
    log = os.path.join(folder, "heatmap.log")
    command = [microtome, "predict", slide, "-o", out, "--network", network, "--mode", mode, "--stride", str(STRIDE),
               "--threads", str(threads), "--json", "--quiet", *options]
    times, done = [], False
    while not done:  # short runs are repeated, and the fastest counts
        shutil.rmtree(out, ignore_errors=True)
        _, megabytes = run(command, set(cores[-threads:]), log)
        with open(os.path.join(out, "run.json")) as stream:
            times.append(json.load(stream)["slides"][0]["seconds"])
        done = len(times) == REPEATS or times[0] > SHORT_S
    with open(log) as stream:
        said = json.load(stream)
    name = os.path.splitext(os.path.basename(slide))[0]
    tiles = said["slides"][0]["scored"] * STRIDE ** 2 / TILE ** 2
    return tiles, min(times), said, os.path.join(out, name), megabytes


def scattered(slide):
    """A folder with a mask of 40 small pieces of tissue, 7 % of the slide."""
    draw, mask = numpy.random.default_rng(1), numpy.zeros((256, 256), "uint8")
    y, x = numpy.mgrid[:256, :256]
    for _ in range(40):
        (row, column), radius = draw.integers(10, 246, 2), draw.integers(3, 9)
        mask[(y - row) ** 2 + (x - column) ** 2 < radius * radius] = 255
    place = os.path.join(folder, "scattered")
    os.makedirs(place, exist_ok=True)
    name = os.path.splitext(os.path.basename(slide))[0]
    Image.fromarray(mask).save(os.path.join(place, name + "_mask.png"))
    return place


def work(slide, network, stream, *options):
    """Megapixels through the network, processor seconds of one thread, how many blocks were streamed."""
    out, log = os.path.join(folder, "heatmap_out"), os.path.join(folder, "heatmap.log")
    shutil.rmtree(out, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run([microtome, "predict", slide, "-o", out, "--network", network, "--mode", "dense", "--stride", str(STRIDE),
         "--threads", "1", "--check-windows", "4", "--export", "none", "--quiet", "--stream", stream, *options],
        set(cores[-1:]), log)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    name = os.path.splitext(os.path.basename(slide))[0]
    with open(os.path.join(out, name, "plan.json")) as stream_of_plan:
        blocks = json.load(stream_of_plan)["blocks"]
    return sum(block[4] for block in blocks) / 1e6, seconds, sum(len(block) == 6 for block in blocks)


def inner_tiles(heatmap, count):
    """Tiles entirely of tissue, spread over the slide."""
    scored = ~numpy.isnan(numpy.load(os.path.join(heatmap, "heatmap.npy"))[:, :, 0])
    across = TILE // STRIDE
    rows, columns = scored.shape[0] // across, scored.shape[1] // across
    whole = scored[: rows * across, : columns * across].reshape(rows, across, columns, across).all((1, 3))
    places = numpy.argwhere(whole)
    picked = places[numpy.linspace(0, len(places) - 1, count + 2).astype(int)[1:-1]]
    return [f"{x * TILE},{y * TILE}" for y, x in picked]


def peer(kind, network, slide, tiles):
    model, environment = network, {}
    if kind in ONNX_PEERS:
        environment["PYTHONPATH"] = site  # with its own NumPy, which Debian's PyTorch cannot use
        model = os.path.join(folder, network + "_2.onnx")
        subprocess.run([microtome, "model", "convert", "--network", network, "--classes", "2", "-o", model, "--quiet"],
                       check=True)
    return float(output([PYTHON, os.path.join(here, "peers", "windows.py"), kind, model, slide, *tiles], 1, **environment))


table = Table("heatmap", folder)
peers = ["torch"] + onnx_peers(PYTHON, site)
PEER_NAMES = {kind: f"{title}, windows by 14" for kind, title in {"torch": "PyTorch eager", **ONNX_PEERS}.items()}
small, middle = phantom("heatmap_1024", 1024, 1), phantom("heatmap_12288", 12288, 1)
notes = []
for network in ["googlenet", "scan_small"]:
    tiles, seconds, _, where, _ = predict(small, network, "window", 1, "--export", "none")
    window = seconds / tiles
    by_window = numpy.load(os.path.join(where, "heatmap.npy"))
    _, _, _, where, _ = predict(small, network, "dense", 1, "--export", "none", "--check-windows", "16")
    gap = numpy.nanmax(numpy.abs(numpy.load(os.path.join(where, "heatmap.npy")) - by_window))
    notes.append(f"{network}: window and dense differ by at most {gap:.2g} on {tiles:.0f} tiles"
                 + (" (drawn weights, which hardly tell tiles apart)" if network == "googlenet" else ""))
    if network == "scan_small" and not gap < 1e-5:
        raise SystemExit(f"scan_small: window and dense differ by {gap}")
    many, seconds, _, where, megabytes = predict(middle, network, "dense", 1, "--export", "none",
                                                 "--check-windows", "16")
    dense = seconds / many
    for kind in peers:
        n = PEER_TILES[kind, network]
        theirs = peer(kind, network, middle, inner_tiles(where, n))
        note = f"{PEER_NAMES[kind]}, {n} tile{'s' if n > 1 else ''}"
        table.add(f"{network} window ({tiles:.0f} tiles)", "s/tile", window, theirs, note, less_is_better=True)
        table.add(f"{network} dense ({many:.0f} tiles)", "s/tile", dense, theirs, note, less_is_better=True)
    table.add(f"{network} dense", "core-hours", dense * CAMELYON16_TILES / 3600, PUBLISHED_CORE_HOURS,
              "published, 10.9 million tiles", less_is_better=True)
    notes.append(f"{network}: dense takes {megabytes:.0f} MB")
    exact = numpy.load(os.path.join(where, "heatmap.npy"))
    _, seconds, _, _, _ = predict(middle, network, "dense", 1, "--export", "none", "--check-windows", "16",
                                  "--kernels", "direct")
    table.add(f"{network} dense", "s/tile", dense, seconds / many, "--kernels direct", less_is_better=True)
    _, seconds, _, where, _ = predict(middle, network, "dense", 1, "--export", "none", "--check-windows", "16", "--fast")
    gap = numpy.nanmax(numpy.abs(numpy.load(os.path.join(where, "heatmap.npy")) - exact))
    notes.append(f"{network}: --fast changes scores by at most {gap:.2g}")
    table.add(f"{network} dense, --fast", "s/tile", seconds / many, dense, "without --fast", less_is_better=True)
    if len(cores) > 1:
        _, seconds, _, _, _ = predict(middle, network, "dense", 2, "--export", "none", "--check-windows", "16")
        table.add(f"{network} dense, two threads", "s/tile", seconds / many, dense, "one thread", less_is_better=True)
solid = phantom("heatmap_solid", 8192, 1, "--layout", "cords")
node = phantom("heatmap_node", 8192, 1)
for network in ["googlenet", "resnet18"]:
    for tissue, slide, options in [("solid", solid, []), ("node", node, []),
                                   ("scattered", solid, ["--tissue", scattered(solid)])]:
        theirs, their_s, _ = work(slide, network, "never", *options)
        ours, our_s, streamed = work(slide, network, "auto", *options)
        case = f"{network} dense, {tissue}, {streamed} blocks streamed"
        table.add(case, "Mpx", ours, theirs, "--stream never", less_is_better=True)
        table.add(case, "CPU s", our_s, their_s, "--stream never", less_is_better=True)
large = phantom("data", 32768, 7)  # the slide of bench_extract.py
threads = min(2, len(cores))
tiles, seconds, said, _, megabytes = predict(large, "scan_small", "dense", threads)
table.finish()
for note in notes:
    print(note)
parts = said["seconds"]
total = sum(parts.values())
shares = ", ".join(f"{name} {100 * parts[name] / total:.1f} %" for name in ["read", "normalise", "compute", "write"])
print(f"32768 x 32768 px, scan_small, {threads} threads, all exports: {seconds:.1f} s for {tiles:.0f} tiles of tissue, "
      f"{megabytes:.0f} MB; of the threads' time: {shares}")
