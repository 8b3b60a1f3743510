#!/usr/bin/env python3
"""The scores of `microtome model run` against ONNX Runtime, for networks that end in logits, softmax,
log softmax or sigmoid (tests/golden/onnx_scores), on random images. Skipped, with a word, where ONNX
Runtime is not installed; tests/unit/test_classifier.c compares one image without it."""
import glob
import json
import os
import struct
import subprocess
import sys
import zlib

try:
    import numpy as np
    import onnxruntime
except ImportError:
    print("skipped: onnxruntime is not installed")
    sys.exit(77)

HIDDEN = "softmax_swapped"  # a softmax that is not at the end


def write_png(path, rgb):
    height, width, _ = rgb.shape
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                  chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def probabilities(name, y):
    if name == "logits":
        e = np.exp(y - y.max())
        return e / e.sum()
    if name.startswith("logits"):
        return 1 / (1 + np.exp(-y))
    return np.exp(y) if name == "log_softmax" else y


folder = os.path.join(os.environ["SCRATCH"], "onnx_scores")
os.makedirs(folder, exist_ok=True)
random = np.random.default_rng(1)
images = [random.integers(0, 256, (16, 16, 3), dtype=np.uint8) for _ in range(20)]
paths = [os.path.join(folder, f"{i}.png") for i in range(len(images))]
for path, rgb in zip(paths, images):
    write_png(path, rgb)
worst = 0
for model in sorted(glob.glob(os.path.join(os.environ["SOURCE"], "tests/golden/onnx_scores/*.onnx"))):
    name = os.path.basename(model)[:-5]
    command = [os.environ["MICROTOME"], "model", "run", *paths, "--model", model, "--json", "--quiet"]
    command += ["--scores", "probabilities"] if name == HIDDEN else []
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    apart = 0
    for row, rgb in zip(rows, images):
        x = (rgb.astype(np.float32) / np.float32(255)).transpose(2, 0, 1)[None]
        y = session.run(None, {"x": x})[0].astype(np.float64).reshape(-1)
        apart = max(apart, np.abs(probabilities(name, y) - list(row["scores"].values())).max())
    print(f"{name}: {len(rows)} images, apart by at most {apart:.1e}")
    worst = max(worst, apart)
sys.exit(0 if worst < 1e-6 else 1)
