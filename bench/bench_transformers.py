"""Vision Transformers and an encoder of texts against PyTorch 2, eager and compiled, ONNX Runtime and OpenVINO, all in
float32, on one and on two pinned cores; a training step of ViT-S/16 against PyTorch 2.

The peers come from PyPI, into BUILD/bench/transformers; BENCH_PYTHON names a Python that has torch, onnx, onnxruntime
and openvino instead. A peer that cannot run here is omitted with a message.

    bench_transformers.py BUILD [WORD...]      only the cases whose names contain one of the words: b8, training
"""
import json
import os
import subprocess
import sys

from measure import output
from setting import build, cores, folder, here, microtome
from table import Table

# network of the zoo, that of the peers, batch, repeats
CASES = [("vit_small_patch16_224", "small", 1, 20), ("vit_small_patch16_224", "small", 8, 4),
         ("vit_base_patch16_224", "base", 8, 2), ("vit_large_patch16_224", "large", 4, 1), ("bert_base", "text", 1, 3)]
TRAIN = ("vit_small_patch16_224", "small", 16, 1)
PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "eager": "PyTorch 2 eager",
         "compiled": "PyTorch 2 compiled"}
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))  # microtome and the peers take turns: a slow moment affects all alike


def find_python():
    given = os.environ.get("BENCH_PYTHON")
    if given:
        return given
    place = os.path.join(folder, "transformers")
    python = os.path.join(place, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "torch", "numpy", "onnx", "onnxruntime", "openvino"],
                       check=True)
    return python


def ours(network, batch, threads, repeats, train=False):
    command = [microtome, "model", "bench", "--network", network, "--batch", str(batch), "--threads", str(threads),
               "--repeats", str(repeats), "--json", "--quiet"] + (["--train"] if train else [])
    command += ["--size", "512"] if network.startswith("bert") else []
    return json.loads(output(command, threads))["best_ms"]


def theirs(peer, network, batch, threads, repeats):
    try:
        return float(output([PYTHON, os.path.join(here, "peers", "transformer_time.py"), network, str(batch),
                             str(threads), str(repeats), peer, folder], threads).split()[-1])
    except subprocess.CalledProcessError:
        return None


def title(network, batch, threads):
    return f"{network} b{batch}, {threads} thread{'s' if threads > 1 else ''}"


def wanted(case):
    words = sys.argv[2:]
    return not words or any(word in case for word in words)


PYTHON = find_python()
table = Table("transformers", folder)
absent = set()
for network, other, batch, repeats in CASES:
    for threads in [1, 2][: len(cores)]:
        if not wanted(title(network, batch, threads)):
            continue
        mine, peers = [], {peer: [] for peer in PEERS}
        for _ in range(ROUNDS):
            mine.append(ours(network, batch, threads, repeats))
            for peer in PEERS:
                if peer not in absent:
                    peers[peer].append(theirs(peer, other, batch, threads, repeats))
                    if peers[peer][-1] is None:
                        print(f"{PEERS[peer]} cannot run here: its rows are omitted")
                        absent.add(peer)
        for peer, times in peers.items():
            if times and None not in times:
                table.add(title(network, batch, threads), "ms", min(mine), min(times), PEERS[peer], less_is_better=True)
network, other, batch, repeats = TRAIN
for threads in [1, 2][: len(cores)]:
    case = f"{title(network, batch, threads)}, training step"
    if not wanted(case):
        continue
    mine, eager = [], []
    for _ in range(ROUNDS):
        mine.append(ours(network, batch, threads, repeats, train=True))
        eager.append(theirs("train", other, batch, threads, repeats))
    if None not in eager:
        table.add(case, "ms", min(mine), min(eager), "PyTorch 2 eager", less_is_better=True)
table.finish()
