#!/usr/bin/env python3
"""A network of torchvision that PyTorch exported (both from Debian) has layers of the same names and
shapes as the same network of the zoo. Skipped, with a word, where PyTorch is not installed."""
import json
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
    from torchvision import models
except ImportError:
    print("skipped: PyTorch and torchvision are not installed")
    sys.exit(77)

NETWORKS = {"resnet18": {}, "densenet121": {}, "googlenet": {"aux_logits": False, "init_weights": False}}


def layers(*words):
    shown = subprocess.run([os.environ["MICROTOME"], "model", "show", "--layers", "--json", *words],
                           stdout=subprocess.PIPE, check=True)
    return {row["layer"]: row["shape"] for row in json.loads(shown.stdout)}


failed = False
for name, options in NETWORKS.items():
    path = os.path.join(os.environ["SCRATCH"], name + "_modules.onnx")
    network = getattr(models, name)(num_classes=2, **options).eval()
    torch.onnx.export(network, torch.randn(1, 3, 64, 64), path, opset_version=13)
    ours, theirs = layers("--network", name, "--classes", "2", "--size", "64"), layers("--model", path)
    os.remove(path)
    wrong = [layer for layer, shape in ours.items() if theirs.get(layer) != shape]
    print(f"{name}: {len(ours)} layers, {len(theirs)} in PyTorch's file, not the same: {wrong}")
    failed |= bool(wrong) or len(ours) < 10
sys.exit(1 if failed else 0)
