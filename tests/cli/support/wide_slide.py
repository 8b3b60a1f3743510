"""wide_slide.py OUT SIDE: a slide of SIDE x SIDE px, 0.25 um/px, in a small file: all tiles of glass are
one tile, and so are those of the tissue, a square of 1/64 of the side in its middle. SIDE is a power of
two, 16384 or more."""
import io
import struct
import sys

import numpy
from PIL import Image

TILE = 256
out, side = sys.argv[1], int(sys.argv[2])


def jpeg(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels.astype(numpy.uint8)).save(stream, "JPEG", quality=80, subsampling=0)
    return stream.getvalue()


noise = numpy.random.default_rng(1).integers(-30, 30, (TILE, TILE, 1))
tissue = numpy.array([190, 110, 170]) + noise


def tile(below, right, reach):
    """Glass, with tissue in the corner that is nearest to the middle of the slide."""
    pixels = numpy.full((TILE, TILE, 3), 245)
    rows = slice(0, reach) if below else slice(TILE - reach, TILE)
    columns = slice(0, reach) if right else slice(TILE - reach, TILE)
    pixels[rows, columns] = tissue[rows, columns]
    return jpeg(pixels)


levels = [1, 4, 16, 32]
with open(out, "wb") as f:
    f.write(b"II*\0" + struct.pack("<I", 0))
    glass = jpeg(numpy.full((TILE, TILE, 3), 245))
    links = [4]
    for level in levels:
        across = side // level // TILE
        reach = side // level // 128
        middle = across // 2
        near = max(reach // TILE, 1)
        tiles = [glass] + [tile(k // 2, k % 2, min(reach, TILE)) for k in range(4)]
        place = []
        for data in tiles:
            place.append(f.tell())
            f.write(data)
        f.write(b"\0" * (-f.tell() % 2))
        kind = [1 + 2 * (y >= middle) + (x >= middle)
                if middle - near <= x < middle + near and middle - near <= y < middle + near else 0
                for y in range(across) for x in range(across)]
        offsets = f.tell()
        f.write(struct.pack("<%dI" % len(kind), *[place[k] for k in kind]))
        counts = f.tell()
        f.write(struct.pack("<%dI" % len(kind), *[len(tiles[k]) for k in kind]))
        more = f.tell()
        f.write(struct.pack("<3HH2I", 8, 8, 8, 0, 40000, 1))
        directory = f.tell()
        entries = [(254, 4, 1, int(level > 1)), (256, 4, 1, side // level), (257, 4, 1, side // level),
                   (258, 3, 3, more), (259, 3, 1, 7), (262, 3, 1, 6), (277, 3, 1, 3),
                   (282, 5, 1, more + 8), (283, 5, 1, more + 8), (284, 3, 1, 1), (296, 3, 1, 3),
                   (322, 3, 1, TILE), (323, 3, 1, TILE), (324, 4, len(kind), offsets),
                   (325, 4, len(kind), counts), (530, 3, 2, 1 | 1 << 16)]
        f.write(struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries))
        end = f.tell()
        f.write(struct.pack("<I", 0))
        f.seek(links[-1])
        f.write(struct.pack("<I", directory))
        f.seek(0, 2)
        links.append(end)
