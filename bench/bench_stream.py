"""Large images tile by tile: one gradient of a drawn image, batch norm frozen, on two pinned cores.

ResNet-50 streamed against run whole, which computes every cell once where streaming computes it twice and its gradient
once: 4/3 of the work; at 3,000 x 3,000 px if the machine has the 16 GB that the whole takes, else at the largest size
that fits. The targets: at most 1.45 times the time of the whole, tiles of 512 to 2,048 px within 10 % of each other.

ResNet-18 at 2,560 x 2,560 px against lightstream (PyPI), which streams with overlapping tiles, with PyTorch; at the
fastest of its tile sizes; the target is half its time. It is installed into BUILD/bench/lightstream, an environment of
several GB, if PyPI can be reached; otherwise its rows are omitted with a message.
"""
import json
import os
import subprocess
import venv

from measure import output
from setting import cores, folder, here, microtome
from table import Table

SIZES = [(3000, 16), (2560, 12), (2048, 8), (1536, 5)]  # px, GB that ResNet-50 takes whole
TILES = [512, 1024, 2048]
LIGHTSTREAM = ("resnet18", 2560, [1600, 1920])
ROUNDS = 1
THREADS = min(2, len(cores))


def available_gb():
    with open("/proc/meminfo") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("MemAvailable")) / 1e6


def ours(network, size, *options):
    """Seconds and peak MB. The second gradient of a process: memory has been touched once, as it is before the first
    one that counts where the network runs whole."""
    command = [microtome, "model", "bench", "--network", network, "--train", "--size", str(size), "--threads",
               str(THREADS), "--repeats", "2", "--json", "--quiet", *options]
    run = json.loads(output(command, THREADS))
    return run["best_ms"] / 1e3, run["peak_rss_mb"]


def streamed(network, size, tile):
    return ours(network, size, "--memory", "stream", "--tile-px", str(tile))


def lightstream_python():
    """The interpreter that has lightstream, or None."""
    home = os.path.join(folder, "lightstream")
    python = os.path.join(home, "bin", "python")
    if not os.path.exists(python):
        venv.create(home, with_pip=True)
    if subprocess.run([python, "-c", "import lightstream, torchvision"], stderr=subprocess.DEVNULL).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "lightstream==1.0.7", "torch==2.5.1",
                        "torchvision==0.20.1", "lightning", "numpy"])
    if subprocess.run([python, "-c", "import lightstream, torchvision"], stderr=subprocess.DEVNULL).returncode:
        print("lightstream cannot be installed here: its rows are omitted")
        return None
    return python


def lightstream(python, network, size, tile, *check):
    return json.loads(output([python, os.path.join(here, "peers", "lightstream_time.py"), network, str(size),
                              str(tile), str(THREADS), "2", *check], THREADS))


def best(runs):
    return min(seconds for seconds, _ in runs), max(megabytes for _, megabytes in runs)


table = Table("stream", folder)
size = next((px for px, gb in SIZES if gb < available_gb()), None)
if size:
    whole, tiles = [], {tile: [] for tile in TILES if tile < size}
    for _ in range(ROUNDS):  # take turns, so that a slow moment affects all alike
        whole.append(ours("resnet50", size, "--norm", "frozen"))
        for tile in tiles:
            tiles[tile].append(streamed("resnet50", size, tile))
    tiles, whole = {tile: best(runs) for tile, runs in tiles.items()}, best(whole)
    fastest = min(tiles, key=lambda tile: tiles[tile][0])
    name = f"resnet50, one gradient at {size} px"
    table.add(f"{name}, tiles of {fastest} px", "s", tiles[fastest][0], whole[0], "run whole", less_is_better=True)
    table.add(f"{name}, peak memory", "MB", tiles[fastest][1], whole[1], "run whole", less_is_better=True)
    for tile in tiles:
        if tile != fastest:
            table.add(f"{name}, tiles of {tile} px", "s", tiles[tile][0], tiles[fastest][0],
                      f"tiles of {fastest} px", less_is_better=True)
python = lightstream_python()
if python:
    network, size, theirs = LIGHTSTREAM
    mine, peers = [], {tile: [] for tile in theirs}
    for _ in range(ROUNDS):
        mine.append(streamed(network, size, 1024))
        for tile in theirs:
            run = lightstream(python, network, size, tile)
            peers[tile].append((run["seconds"], run["peak_rss_mb"]))
    mine, peers = best(mine), {tile: best(runs) for tile, runs in peers.items()}
    fastest = min(peers, key=lambda tile: peers[tile][0])
    peer = f"lightstream 1.0.7, PyTorch 2.5.1, tiles of {fastest} px"
    name = f"{network}, one gradient at {size} px"
    table.add(name, "s", mine[0], peers[fastest][0], peer, less_is_better=True)
    table.add(f"{name}, peak memory", "MB", mine[1], peers[fastest][1], peer, less_is_better=True)
    for tile in theirs:
        print(f"lightstream, tiles of {tile} px: {peers[tile][0]:.1f} s, {peers[tile][1]:.0f} MB")
    print(f"its gradient differs by {lightstream(python, network, 1600, 1280, 'check')['error']:.1e} from the whole")
table.finish()
