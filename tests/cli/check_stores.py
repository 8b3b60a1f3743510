"""Checks the stores of extract_h5py.sh with h5py and openslide-python: check_stores.py SLIDE"""
import glob
import sys

import h5py
import numpy
import openslide

slide = openslide.OpenSlide(sys.argv[1])
width, height = slide.dimensions


def read(x, y, size):
    """A region whose outside is white."""
    out = numpy.full((size, size, 3), 255, numpy.uint8)
    x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + size, width), min(y + size, height)
    if x1 > x0 and y1 > y0:
        region = slide.read_region((x0, y0), 0, (x1 - x0, y1 - y0)).convert("RGB")
        out[y0 - y:y1 - y, x0 - x:x1 - x] = numpy.asarray(region)
    return out


def check(images, corners, size):
    for image, (x, y) in zip(images, corners):
        assert image.shape == (size, size, 3) and image.dtype == numpy.uint8
        assert (image == read(int(x), int(y), size)).all()
    return len(images)


def patches_of_blocks(file):
    k = int(round(file["patch_blocks"].shape[1] ** 0.5))
    for blocks in file["patch_blocks"][:]:
        rows = [numpy.concatenate([file["blocks"][b] for b in blocks[i * k:i * k + k]], 1) for i in range(k)]
        yield numpy.concatenate(rows, 0)


def open_store(folder):
    return h5py.File(glob.glob(folder + "/*.h5")[0], "r")


blocks, fda, clam, process, random = map(open_store, ("blocks", "fda", "clam", "process", "random"))
n = check(list(patches_of_blocks(blocks)), blocks["coords"][:], 448)
assert blocks["coords"].dtype == numpy.int64 and blocks["labels"].dtype == numpy.int8
assert blocks["tissue_fraction"].dtype == blocks["tumor_fraction"].dtype == numpy.float32
assert blocks["groups"][:].tolist() == [[i, min(7, n - i)] for i in range(0, n, 7)]
assert len(numpy.unique(blocks["patch_blocks"][:])) == len(blocks["blocks"])
assert blocks["blocks"].nbytes < 0.6 * clam["imgs"].nbytes
attributes = dict(blocks["coords"].attrs)
for name, want in dict(patch_size=448, patch_level=0, patch_size_level0=448, overlap=224, level0_width=2048,
                       level0_height=2048, level0_magnification=40, target_magnification=40,
                       patch_spacing_um_px=0.25).items():
    assert attributes[name] == want, (name, attributes[name])
assert isinstance(attributes["name"], str) and attributes["level_dim"].tolist() == [2048, 2048]
root = dict(blocks.attrs)
assert root["format"] == "microtome-patches" and root["version"] == 1 and root["layout"] == "blocks"
assert root["patient"] and root["margin"] == 112 and root["mode"] == "dense" and root["mpp"] == 0.25

names = ["t%d" % (i + 1) for i in range((n + 6) // 7)]
assert set(fda) == set(names)
coord = numpy.concatenate([fda[name]["coord"][:] for name in names])
assert coord.shape == (n, 5) and coord.dtype == numpy.int64 and (coord[:, 4] == 448).all()
assert (coord[:, 2:4] == 224 * coord[:, :2] - 112).all() and (coord[:, 2:4] == blocks["coords"][:]).all()
assert check(numpy.concatenate([fda[name]["img"][:] for name in names]), coord[:, 2:4], 448) == n
assert (numpy.concatenate([fda[name]["label"][:] for name in names]) == blocks["labels"][:]).all()

assert check(clam["imgs"][:], clam["coords"][:], 448) == n
assert clam["imgs"].attrs["wsi_name"] == attributes["name"]

counts = {}


def visit(name, item):
    if name.endswith("/patches"):
        parts = name.split("/")
        assert [part[0] for part in parts[1:5]] == list("lcpn") and parts[5].isdigit(), name
        locations = process[name.replace("/patches", "/locations")][:]
        counts[parts[0]] = counts.get(parts[0], 0) + check(item[:], locations, 448)


process.visititems(visit)
labels = blocks["labels"][:]
assert counts == {name: int((labels == label).sum()) for name, label in
                  (("tumor", 1), ("normal", 0), ("unlabeled", -1)) if (labels == label).any()}

assert check(list(patches_of_blocks(random)), random["coords"][:], 96) == len(random["labels"])
assert random.attrs["mode"] == "random" and random.attrs["seed"] == 2
print(n, "patches as OpenSlide reads them")
