"""Checks of image_fields.sh: patches against the pixels of an image, the memory of a run.

check_fields.py patches STORE IMAGE    every patch of a CLAM store is cut from the image
check_fields.py same STORE STORE       two CLAM stores have the same patches
check_fields.py level SLIDE N IMAGE    writes level N of a slide, as OpenSlide reads it, as a PNG
check_fields.py peak MB COMMAND...     runs it; its resident memory must stay below MB"""
import resource
import subprocess
import sys

import numpy
from PIL import Image

Image.MAX_IMAGE_PIXELS = None


def patches(store, image):
    import h5py
    pixels = numpy.asarray(Image.open(image).convert("RGB"))
    height, width = pixels.shape[:2]
    with h5py.File(store) as file:
        for patch, (x, y) in zip(file["imgs"][:], file["coords"][:]):
            size = len(patch)
            x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + size, width), min(y + size, height)
            want = numpy.full_like(patch, 255)
            want[y0 - y:y1 - y, x0 - x:x1 - x] = pixels[y0:y1, x0:x1]
            assert (patch == want).all(), (store, x, y)
        print(len(file["imgs"]), "patches are those of", image)


def same(store, other):
    import h5py
    with h5py.File(store) as a, h5py.File(other) as b:
        print("same patches" if (a["imgs"][:] == b["imgs"][:]).all() else "OTHER PATCHES")


def level(slide, n, image):
    import openslide
    slide = openslide.OpenSlide(slide)
    pixels = slide.read_region((0, 0), int(n), slide.level_dimensions[int(n)]).convert("RGB")
    pixels.save(image, compress_level=1)
    print("level", n, "of the slide:", *pixels.size)


def peak(most, *command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print("little memory" if mb < float(most) else "TOO MUCH MEMORY: %.0f MB" % mb)


globals()[sys.argv[1]](*sys.argv[2:])
