"""The peer: dense patches with openslide-python and h5py, patch by patch, in the FDA layout.

    openslide_h5py.py SLIDE PATCHES.h5 OUT.h5

The patches are those of PATCHES.h5 (a store in the same layout), so that both do the same work. A
group is collected in memory and written at once, the faster of the usual ways; the file is synced.
"""
import os
import sys

import h5py
import numpy
import openslide


def main(slide_path, patches_path, out_path):
    slide = openslide.OpenSlide(slide_path)
    with h5py.File(patches_path, "r") as model, h5py.File(out_path, "w") as out:
        names = sorted((name for name in model if name.startswith("t")), key=lambda name: int(name[1:]))
        for name in names:
            coord = model[name]["coord"][:]
            size = model[name]["img"].shape[1]
            images = numpy.empty((len(coord), size, size, 3), numpy.uint8)
            for i, (x, y) in enumerate(model[name]["img_corner"][:] if "img_corner" in model[name] else coord[:, 2:4]):
                images[i] = numpy.asarray(slide.read_region((int(x), int(y)), 0, (size, size)).convert("RGB"))
            group = out.create_group(name)
            group.create_dataset("img", data=images)
            group.create_dataset("coord", data=coord)
    with open(out_path, "rb") as written:
        os.fsync(written.fileno())


main(*sys.argv[1:])
