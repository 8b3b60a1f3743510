"""Whether scores lie where they belong, to the pixel: a network that knows nothing but the mean
brightness of its window, so that every score can be computed from OpenSlide's pixels.
  check_alignment.py make FOLDER            writes model.onnx and config.json (PyTorch)
  check_alignment.py check SLIDE FOLDER...  compares the heatmaps, and the pictures made of them"""
import json
import os
import sys
import warnings

import numpy as np

WINDOW = 32
GAIN, MIDDLE = 8.0, 0.75


def make(folder):
    import torch

    warnings.filterwarnings("ignore")
    conv = torch.nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        conv.weight[:] = 0
        conv.weight[1] = -GAIN / 3
        conv.bias[:] = torch.tensor([0, GAIN * MIDDLE])
    network = torch.nn.Sequential(conv, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    os.makedirs(folder, exist_ok=True)
    torch.onnx.export(network.eval(), torch.zeros(1, 3, WINDOW, WINDOW),
                      os.path.join(folder, "model.onnx"), opset_version=11)
    config = {"num_classes": 2, "patch_size_pixels": WINDOW, "spacing_um_px": 0.25,
              "class_names": ["Light", "Dark"], "transform": [{"name": "ToTensor"}]}
    with open(os.path.join(folder, "config.json"), "w") as stream:
        json.dump(config, stream)


def want_scores(pixels, facts):
    """The score of every window, from the pixels; outside of the slide is white."""
    stride, (x0, y0) = facts["stride"], facts["origin"]
    brightness = pixels.mean(2) / 255
    around = WINDOW + stride
    sums = np.pad(brightness, around, constant_values=1).cumsum(0).cumsum(1)
    sums = np.pad(sums, ((1, 0), (1, 0)))
    x = x0 + stride * np.arange(facts["width"]) - WINDOW // 2 + around
    y = (y0 + stride * np.arange(facts["height"]) - WINDOW // 2 + around)[:, None]
    total = sums[y + WINDOW, x + WINDOW] - sums[y, x + WINDOW] - sums[y + WINDOW, x] + sums[y, x]
    return 1 / (1 + np.exp(-GAIN * (MIDDLE - total / WINDOW ** 2)))


def check(slide_path, folders):
    import openslide
    import PIL.Image
    import tifffile

    slide = openslide.OpenSlide(slide_path)
    pixels = np.asarray(slide.read_region((0, 0), 0, slide.dimensions).convert("RGB"), np.float64)
    for folder in folders:
        with open(os.path.join(folder, "heatmap.json")) as stream:
            facts = json.load(stream)
        want = want_scores(pixels, facts)
        scores = np.load(os.path.join(folder, "heatmap.npy"))[..., 1]
        tissue = ~np.isnan(scores)
        worst = np.abs(scores - want)[tissue].max()
        moved = np.abs(scores[:, 1:] - want[:, :-1])[tissue[:, 1:]].mean()
        plane = tifffile.imread(os.path.join(folder, "heatmap.ome.tif"), key=1)
        if worst > 1e-4 or moved < 1e-2 or not np.array_equal(plane, scores, equal_nan=True):
            sys.exit(f"{folder}: scores are off by {worst:.2g} (by one cell: {moved:.2g})")
        # The black lines of the picture are where the scores pass 0.5.
        high = np.kron(scores >= 0.5, np.ones((facts["stride"],) * 2, bool))
        high = high[: facts["height_l0"], : facts["width_l0"]]
        scale = max(high.shape) / 1600  # the slide is larger than that
        overlay = np.asarray(PIL.Image.open(os.path.join(folder, "overlay.png")).convert("L"))
        black = (overlay == 0)[64:-92, 20:-20]
        y, x = np.nonzero(black)
        x0, y0 = (x * scale).astype(int), (y * scale).astype(int)
        reach = int(2 * scale + 2)
        wide = np.pad(high, reach)
        mixed = [0 < wide[b : b + 2 * reach, a : a + 2 * reach].mean() < 1 for a, b in zip(x0, y0)]
        if len(mixed) < 100 or not all(mixed):
            sys.exit(f"{folder}: lines of the overlay are off ({sum(mixed)} of {len(mixed)} right)")
        print(f"{folder.split('/')[0]}: {tissue.sum()} scores, off by less than 1e-4")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    check(sys.argv[2], sys.argv[3:])
