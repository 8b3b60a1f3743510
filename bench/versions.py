"""This version against another one: what `make bench` times, without the peers.

    PYTHONPATH=bench python3 bench/versions.py BUILD OTHER_BUILD [WORD...]

Both are builds of the program. They take turns, the median of five runs of each counts, and a ratio above 1 means that
BUILD is faster. WORDs select cases by what their names contain. Rows are written to BUILD/bench/versions.json.
"""
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys

from measure import output, run
from setting import cores, folder, microtome
from table import Table

other = os.path.join(os.path.abspath(sys.argv[2]), "microtome")
words = sys.argv[3:]
TURNS = 5
data = os.path.join(folder, "versions")
out, log = os.path.join(data, "out"), os.path.join(folder, "versions.log")


def wall(program, threads, *arguments):
    """Seconds of one command; OUT in its arguments is a folder that is new each time."""
    shutil.rmtree(out, ignore_errors=True)
    command = [program, *[out if word == "OUT" else word for word in arguments], "--threads", str(threads), "--quiet"]
    return run(command, set(cores[-threads:]), log)[0]


def net(network, batch, repeats, *options):
    def seconds(program, threads):
        command = [program, "model", "bench", "--network", network, "--batch", str(batch), "--threads", str(threads),
                   "--repeats", str(repeats), "--json", "--quiet", *options]
        return json.loads(output(command, threads))["best_ms"]
    return seconds


def command(*arguments):
    return lambda program, threads: wall(program, threads, *arguments)


def train(stores, val):
    settings = [f"data.train={json.dumps(stores)}", f"data.val={json.dumps(val)}", "network.name=resnet18",
                "network.input_px=224", "train.batch=16", "train.epochs=1", "schedule.name=constant"]

    def seconds(program, threads):
        shutil.rmtree(out, ignore_errors=True)
        line = [program, "train", "-q", "--json", "-o", out, "--threads", str(threads)]
        for setting in settings:
            line += ["--set", setting]
        return 1 / json.loads(output(line, threads))["patches_per_s"]
    return seconds


def make_data():
    """Slides to extract and to score, and stores to train on."""
    shutil.rmtree(data, ignore_errors=True)
    for name, size in (("huge", 32768), ("large", 4096), ("middle", 2048), ("small", 1024)):
        subprocess.run([other, "phantom", "-q", "-o", f"{data}/{name}", "--slides", "1", "--size", str(size), "--seed",
                        "7"], check=True)
    subprocess.run([other, "phantom", "-q", "-o", data + "/cohort", "--slides", "6", "--size", "2048", "--seed", "1"],
                   check=True)
    subprocess.run([other, "extract", "-q", data + "/cohort/slides.csv", "-o", data + "/stores", "--random", "20",
                    "--patch", "256"], check=True, stdout=subprocess.DEVNULL)


def slide(name):
    return glob.glob(f"{data}/{name}/slides/*.tiff")[0]


def cases():
    """name, unit, threads, function of (program, threads) -> time"""
    stores = sorted(glob.glob(data + "/stores/*.h5"))
    val = [store for store in stores if "patient_002" in store]
    stores = [store for store in stores if store not in val]
    extract = ["extract", slide("huge"), "-o", "OUT", "--dense", "--patch", "224", "--margin", "112", "--layout"]
    predict = ["predict", "-o", "OUT", "--check-windows", "16", "--stride"]
    plain = ["--export", "none"]
    for threads in (1, 2)[: len(cores)]:
        for network, batch, repeats in (("googlenet", 1, 20), ("googlenet", 8, 4), ("googlenet", 16, 2),
                                        ("resnet18", 8, 4), ("resnet50", 8, 2), ("vit_small_patch16_224", 4, 2)):
            yield f"{network} b{batch}", "ms", threads, net(network, batch, repeats)
        for network, batch in (("resnet18", 16), ("googlenet", 16), ("resnet50", 8)):
            yield f"{network} b{batch} training step", "ms", threads, net(network, batch, 2, "--train")
        yield "resnet18 b16 from a store", "s/image", threads, train(stores, val[:1])
        for layout in ("fda", "blocks"):
            yield f"extraction, {layout} layout", "s", threads, command(*extract, layout)
        yield "tissue masks", "s", threads, command("tissue", slide("huge"), "-o", "OUT")
        for network in ("googlenet", "scan_small"):
            yield (f"{network} dense heatmap", "s", threads,
                   command(*predict, "16", slide("middle"), "--network", network, "--mode", "dense", *plain))
        yield ("googlenet windows", "s", threads,
               command(*predict, "64", slide("small"), "--network", "googlenet", "--mode", "window", *plain))
        yield ("scan_small dense with all exports", "s", threads,
               command(*predict, "16", slide("large"), "--network", "scan_small", "--mode", "dense"))
    yield "phantom slide", "s", 1, command("phantom", "-o", "OUT", "--slides", "1", "--size", "4096")


table = Table("versions", folder)
make_data()
for name, unit, threads, measure in cases():
    name += f", {threads} thread{'s' if threads > 1 else ''}"
    if words and not any(word in name for word in words):
        continue
    ours, theirs = [], []
    for turn in range(TURNS):
        for program, times in ((microtome, ours), (other, theirs))[:: 1 if turn % 2 else -1]:
            times.append(measure(program, threads))
    table.add(name, unit, statistics.median(ours), statistics.median(theirs), "the version before",
              less_is_better=True)
    print(f"{name}: {table.rows[-1]['ratio']:.3f}", flush=True)
table.finish()
shutil.rmtree(data, ignore_errors=True)
