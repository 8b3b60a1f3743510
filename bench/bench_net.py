"""Whole networks against ONNX Runtime, OpenVINO and PyTorch, on one and on two pinned cores.

The first two are installed from PyPI into BUILD/bench/python if PyPI can be reached; otherwise their rows are omitted with a
message. If the processor has AVX-512, microtome is also run with AVX2 only, as on most clusters, against ONNX Runtime,
which cannot be restricted to it.
"""
import json
import os
import subprocess

from measure import ONNX_PEERS, onnx_peers, output
from setting import PYTHON, cores, folder, here, microtome, site
from table import Table

CASES = [("googlenet", 1, 30), ("googlenet", 8, 6), ("googlenet", 16, 3), ("resnet18", 8, 5), ("resnet50", 8, 3)]
TRAIN = ("resnet18", 16, 3)
ROUNDS = 3  # microtome (one and two threads) and the peers take turns: a slow moment affects all alike


def ours(network, batch, threads, repeats, train=False, **environment):
    command = [microtome, "model", "bench", "--network", network, "--batch", str(batch), "--threads", str(threads),
               "--repeats", str(repeats), "--json", "--quiet"] + (["--train"] if train else [])
    return json.loads(output(command, threads, **environment))


def onnx(peer, network, batch, threads, repeats):
    model = os.path.join(folder, network + ".onnx")
    if not os.path.exists(model):
        subprocess.run([microtome, "model", "convert", "--network", network, "-o", model, "--quiet"], check=True)
    return float(output([PYTHON, os.path.join(here, "peers", "onnx_time.py"), peer, model, str(batch), str(threads),
                         str(repeats)], threads, PYTHONPATH=site))


def torch(network, batch, threads, repeats, mode):
    return float(output([PYTHON, os.path.join(here, "peers", "torch_time.py"), network, str(batch), str(threads),
                         str(repeats), mode], threads))


table = Table("net", folder)
peers = onnx_peers(PYTHON, site)
counts = [1, 2][: len(cores)]
with open("/proc/cpuinfo") as stream:
    wide = "avx512f" in stream.read()
ready = {}
for network, batch, repeats in CASES:
    mine, eager = {t: [] for t in counts}, {t: [] for t in counts}
    theirs = {(peer, t): [] for peer in peers for t in counts}
    facts, narrow = [], []
    for turn in range(ROUNDS):
        for threads in counts:
            run = ours(network, batch, threads, repeats)
            mine[threads].append(run["best_ms"])
            if threads == 1:
                facts.append(run)
            if wide and threads == 1:
                narrow.append(ours(network, batch, 1, repeats, DNNL_MAX_CPU_ISA="AVX2")["best_ms"])
            for peer in peers:
                theirs[peer, threads].append(onnx(peer, network, batch, threads, repeats))
            if turn % 2 == 0:  # a peer that is far slower takes fewer turns
                eager[threads].append(torch(network, batch, threads, repeats, "infer"))
    # One process after another, so that freed memory is available; else a virtual machine waits for its host.
    facts += [ours(network, batch, 1, 1) for _ in range(ROUNDS)]
    ready[network, batch] = min(facts, key=lambda run: run["ready_ms"])
    for threads in counts:
        case = f"{network} b{batch}, {threads} thread{'s' if threads > 1 else ''}"
        for peer in peers:
            table.add(case, "ms", min(mine[threads]), min(theirs[peer, threads]), ONNX_PEERS[peer], less_is_better=True)
        table.add(case, "ms", min(mine[threads]), min(eager[threads]), "PyTorch eager", less_is_better=True)
    if "onnxruntime" in peers and wide:
        table.add(f"{network} b{batch}, 1 thread, AVX2 only", "ms", min(narrow), min(theirs["onnxruntime", 1]),
                  "ONNX Runtime (AVX-512)", less_is_better=True)
    if len(counts) > 1:
        table.add(f"{network} b{batch}, two threads", "ms", min(mine[2]), min(mine[1]), "one thread", less_is_better=True)
network, batch, repeats = TRAIN
mine, eager = {t: [] for t in counts}, {t: [] for t in counts}
for _ in range(ROUNDS):
    for threads in counts:
        mine[threads].append(ours(network, batch, threads, repeats, train=True)["best_ms"])
        eager[threads].append(torch(network, batch, threads, repeats, "train"))
for threads in counts:
    table.add(f"{network} b{batch} training step, {threads} thread{'s' if threads > 1 else ''}", "ms",
              min(mine[threads]), min(eager[threads]), "PyTorch eager", less_is_better=True)
table.finish()
print(f"fastest of {2 * ROUNDS} processes:")
for (network, batch), run in ready.items():
    print(f"{network} b{batch}: ready in {run['ready_ms']:.0f} ms (its plan in {run['plan_ms']:.0f} ms), "
          f"arena {run['arena_mb']:.0f} MB")
