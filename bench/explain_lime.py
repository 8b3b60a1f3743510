"""Rows of bench_explain: LIME of 1000 samples against the package `lime` with PyTorch, and against the network alone.

Both explain the same image of 224 x 224 px with the same weights and the same superpixels, which ours computes and writes
for the peer before anything is timed. The package takes batches of 10, its default; batches of 32 took longer. Processor
time counts, of one thread each, so that a minute in which something else runs does not decide.
"""
import os
import subprocess

from PIL import Image

from measure import have_package, output
from setting import PYTHON, build, folder, here, microtome, site

SAMPLES = 1000  # explain_time's too: the default of microtome
NETWORKS = ["googlenet", "resnet18", "resnet50"]


def numbers(text):
    """Lines "name value" -> a dict."""
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


def image():
    """A real patch, enlarged to the size of the networks."""
    path = os.path.join(folder, "explain.png")
    patch = os.path.join(here, "..", "tests", "golden", "stain", "source.png")
    Image.open(patch).convert("RGB").resize((224, 224), Image.BICUBIC).save(path)
    return path


def ours(network, weights, patch, superpixels):
    return numbers(output([os.path.join(build, "explain_time"), network, weights, patch, "lime", "64", "1", "1",
                           superpixels], 1))


def peer(network, weights, patch, superpixels):
    return numbers(output([PYTHON, os.path.join(here, "peers", "lime_time.py"), network, weights, patch, superpixels,
                           str(SAMPLES), "10", "1"], 1, PYTHONPATH=site))


def lime_rows(table):
    with_peer = have_package(PYTHON, site, "lime")
    patch = image()
    for network in NETWORKS:
        weights = os.path.join(folder, network + ".safetensors")
        superpixels = os.path.join(folder, "superpixels.png")
        if not os.path.exists(weights):
            subprocess.run([microtome, "model", "convert", "--network", network, "-o", weights, "--quiet"], check=True)
        runs = [ours(network, weights, patch, superpixels)]
        theirs = peer(network, weights, patch, superpixels) if with_peer else None
        runs.append(ours(network, weights, patch, superpixels))
        mine = min(run["cpu"] for run in runs)
        case = f"LIME of {SAMPLES} samples, {network}, processor time"
        if theirs:
            table.add(case, "s", mine, theirs["cpu"], "lime 0.2, PyTorch eager", less_is_better=True)
        table.add(case, "samples/s", SAMPLES / mine, 1e3 / min(run["forward_cpu"] for run in runs), "the network alone")
