"""Rows of bench_explain: Grad-CAM of one image of 224 x 224 px at the last layer against the package `grad-cam` with PyTorch.

Timed is one map at the size of the image, patch after patch, from the network's input: forward, backward, the map, its
resizing and scaling. Both maps are compared: the bench fails if they differ.
"""
import os
import subprocess

import numpy

from explain_lime import image, numbers
from measure import have_package, output
from setting import PYTHON, build, folder, here, microtome, site

NETWORKS = ["resnet50", "resnet18"]
ROUNDS, REPEATS = 3, 10
# Modules that the package imports; its other requirements would replace Debian's PyTorch.
REQUIRED = {"ttach": "ttach", "cv2": "opencv-python-headless==4.8.1.78", "matplotlib": "matplotlib==3.7.5",
            "contourpy": "contourpy==1.2.1", "cycler": "cycler", "pyparsing": "pyparsing", "kiwisolver": "kiwisolver",
            "fontTools": "fonttools", "dateutil": "python-dateutil", "packaging": "packaging", "six": "six", "tqdm": "tqdm"}
TOLERANCE = 1e-3  # of a map from 0 to 1


def ours(network, weights, patch, path):
    return numbers(output([os.path.join(build, "explain_time"), network, weights, patch, "gradcam", "1", "1", str(REPEATS),
                           path], 1))


def peer(network, weights, patch, path):
    return numbers(output([PYTHON, os.path.join(here, "peers", "grad_cam_time.py"), network, weights, patch, "layer4", "1",
                           str(REPEATS), path], 1, PYTHONPATH=site))


def have_peer():
    """Whether the package is there; installs it with what Python lacks."""
    absent = [package for module, package in REQUIRED.items()
              if subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode]
    return have_package(PYTHON, site, "grad-cam==1.5.4", "grad-cam", ["--no-deps", *absent], "pytorch_grad_cam")


def scaled(path):
    """The package scales a map before it is resized, microtome after it."""
    values = numpy.load(path).astype(numpy.float64)
    return (values - values.min()) / (values.max() - values.min())


def gradcam_rows(table):
    if not have_peer():
        return
    patch = image()
    for network in NETWORKS:
        weights = os.path.join(folder, network + ".safetensors")
        maps = [os.path.join(folder, f"gradcam_{who}.npy") for who in ("ours", "peer")]
        if not os.path.exists(weights):
            subprocess.run([microtome, "model", "convert", "--network", network, "-o", weights, "--quiet"], check=True)
        mine, theirs = [], []
        for _ in range(ROUNDS):
            mine.append(ours(network, weights, patch, maps[0]))
            theirs.append(peer(network, weights, patch, maps[1]))
        difference = abs(scaled(maps[0]) - scaled(maps[1])).max()
        if not difference < TOLERANCE:
            raise SystemExit(f"Grad-CAM of {network}: the maps differ by {difference:g}")
        table.add(f"Grad-CAM, {network}, layer4", "ms", 1e3 * min(run["seconds"] for run in mine),
                  1e3 * min(run["seconds"] for run in theirs), "grad-cam 1.5, PyTorch eager", less_is_better=True)
