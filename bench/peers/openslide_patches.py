"""The peer of read_patches: overlapping patches with openslide-python, as RGB arrays in memory.

    openslide_patches.py SLIDE PROCESSES

Patches of 448 px every 224 px, row by row; with several processes each reads a part of the rows. Prints the version of
OpenSlide, then patches, seconds (from opening the slide) and cpu seconds as read_patches does.
"""
import multiprocessing
import os
import sys
import time

import numpy
import openslide

PATCH, STRIDE = 448, 224


def read_rows(path, first, end):
    slide = openslide.OpenSlide(path)
    width, _ = slide.dimensions
    n = 0
    for y in range(first, end, STRIDE):
        for x in range(0, width - PATCH + 1, STRIDE):
            numpy.asarray(slide.read_region((x, y), 0, (PATCH, PATCH)).convert("RGB"))
            n += 1
    return n, sum(os.times()[:2])


def main(path, processes):
    began, cpu_began = time.monotonic(), sum(os.times()[:2])
    _, height = openslide.OpenSlide(path).dimensions
    rows = (height - PATCH) // STRIDE + 1
    edges = [STRIDE * (rows * i // processes) for i in range(processes + 1)]
    parts = [(path, edges[i], edges[i + 1]) for i in range(processes)]
    if processes == 1:
        counts = [read_rows(*parts[0])]
    else:
        with multiprocessing.Pool(processes) as pool:
            counts = pool.starmap(read_rows, parts, chunksize=1)
    print("openslide", openslide.__library_version__)
    print("patches", sum(n for n, _ in counts))
    print("seconds", time.monotonic() - began)
    print("cpu", sum(cpu for _, cpu in counts) - cpu_began)


try:
    main(sys.argv[1], int(sys.argv[2]))
except openslide.OpenSlideError as error:
    sys.exit(f"{sys.argv[1]}: {error}")
