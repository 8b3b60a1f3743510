#!/usr/bin/python3
"""Writes two ICC profiles and what PIL.ImageCms (Little CMS) makes of colours.png by them, in sRGB with the intent in the
profile: matrix.icc (primaries of Adobe RGB, gamma 2.2, relative colorimetric) and lut.icc (a table of 9 x 9 x 9 nodes to
Lab, perceptual). Needs python3-numpy and python3-pil."""
import io
import os
import struct

import numpy as np
from PIL import Image, ImageCms

here = os.path.dirname(os.path.abspath(__file__))


def fixed(value):
    return struct.pack(">i", int(round(value * 65536)))


def xyz(*values):
    return b"XYZ \0\0\0\0" + b"".join(fixed(v) for v in values)


def description(text):
    data = text.encode() + b"\0"
    return b"desc\0\0\0\0" + struct.pack(">I", len(data)) + data + b"\0" * (4 + 4 + 2 + 1 + 67)


def profile(kind, space, intent, tags):
    head, body, table = b"", b"", b""
    place = 128 + 4 + 12 * len(tags)
    for name, data in tags:
        table += name + struct.pack(">II", place + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    size = place + len(body)
    head = struct.pack(">I4sI4s4s4s", size, b"\0\0\0\0", 0x02100000, kind, b"RGB ", space)
    head += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + b"\0" * 24 + struct.pack(">I", intent)
    head += fixed(0.9642) + fixed(1) + fixed(0.8249)
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def matrix():
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, int(2.2 * 256)) + b"\0\0"
    common = [(b"desc", description("Matrix of Adobe RGB")), (b"cprt", b"text\0\0\0\0CC0\0"),
              (b"wtpt", xyz(0.9505, 1, 1.0891))]
    return profile(b"scnr", b"XYZ ", 1, common + [
        (b"rXYZ", xyz(0.60974, 0.31111, 0.01947)), (b"gXYZ", xyz(0.20528, 0.62567, 0.06087)),
        (b"bXYZ", xyz(0.14919, 0.06322, 0.74457)), (b"rTRC", curve), (b"gTRC", curve), (b"bTRC", curve)])


def lut():
    """Lab that is a little warmer and darker than the pixels' sRGB."""
    n = 9
    grid = np.stack(np.meshgrid(*3 * [np.linspace(0, 1, n)], indexing="ij"), -1)
    linear = grid ** 2.0
    to_xyz = np.array([[0.4361, 0.3851, 0.1431], [0.2225, 0.7169, 0.0606], [0.0139, 0.0971, 0.7142]])
    f = np.cbrt(np.clip(linear @ to_xyz.T / [0.9642, 1, 0.8249], 1e-4, None))
    lab = np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]) + 4 * grid[..., 0],
                    200 * (f[..., 1] - f[..., 2]) + 6 * grid[..., 1]], -1)
    codes = np.stack([lab[..., 0] * 652.8, (lab[..., 1] + 128) * 256, (lab[..., 2] + 128) * 256], -1)
    codes = np.clip(np.rint(codes), 0, 65280).astype(">u2").tobytes()
    data = b"mft2\0\0\0\0" + struct.pack(">4B", 3, 3, n, 0)
    data += b"".join(fixed(v) for v in (1, 0, 0, 0, 1, 0, 0, 0, 1)) + struct.pack(">HH", 2, 2)
    data += struct.pack(">6H", *3 * (0, 65535)) + codes + struct.pack(">6H", *3 * (0, 65535))
    return profile(b"scnr", b"Lab ", 0, [(b"desc", description("Table of a scanner")),
                                         (b"cprt", b"text\0\0\0\0CC0\0"), (b"wtpt", xyz(0.9642, 1, 0.8249)),
                                         (b"A2B0", data)])


def convert(image, data):
    source = ImageCms.ImageCmsProfile(io.BytesIO(data))
    return ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"),
                                     renderingIntent=ImageCms.getDefaultIntent(source), outputMode="RGB")


if __name__ == "__main__":
    rng = np.random.default_rng(5)
    steps = np.stack(np.meshgrid(*3 * [np.arange(0, 256, 17)], indexing="ij"), -1).reshape(64, 64, 3)
    colours = np.concatenate([steps, rng.integers(0, 256, (64, 64, 3))], 1).astype(np.uint8)
    image = Image.fromarray(colours)
    image.save(os.path.join(here, "colours.png"), optimize=True)
    for name, data in (("matrix", matrix()), ("lut", lut())):
        with open(os.path.join(here, name + ".icc"), "wb") as f:
            f.write(data)
        convert(image, data).save(os.path.join(here, name + ".png"), optimize=True)
