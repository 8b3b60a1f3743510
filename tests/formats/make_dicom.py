"""A small DICOM slide of two levels, one file each: make_dicom.py FOLDER SERIES.

768 x 512 px at 0.5 um/px and half of it, JPEG frames of 256 px, tiled in full. The elements are written here, in
explicit little endian, so that no DICOM library is needed.
"""
import io
import os
import struct
import sys

import numpy
from PIL import Image

LONG = {b"OB", b"SQ", b"UN"}  # lengths of four bytes
WSI = "1.2.840.10008.5.1.4.1.1.77.1.6"
JPEG = "1.2.840.10008.1.2.4.50"
TILE = 256


def element(group, number, kind, value):
    """One data element; text is padded to an even length, numbers are 16 or 32 bit."""
    if isinstance(value, str):
        value = value.encode() + (b"\0" if kind == "UI" else b" ") * (len(value) % 2)
    elif kind == "US":
        value = struct.pack("<H", value)
    elif kind == "UL":
        value = struct.pack("<I", value)
    elif kind == "FL":
        value = struct.pack("<f", value)
    head = struct.pack("<HH", group, number) + kind.encode()
    if kind.encode() in LONG:
        return head + b"\0\0" + struct.pack("<I", len(value)) + value
    return head + struct.pack("<H", len(value)) + value


def item(*elements):
    content = b"".join(elements)
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(content)) + content


def frames_of(px):
    for y in range(0, px.shape[0], TILE):
        for x in range(0, px.shape[1], TILE):
            out, tile = io.BytesIO(), px[y:y + TILE, x:x + TILE]
            tile = numpy.pad(tile, ((0, TILE - tile.shape[0]), (0, TILE - tile.shape[1]), (0, 0)), "edge")
            Image.fromarray(tile).save(out, "JPEG", quality=90)
            yield out.getvalue() + b"\0" * (len(out.getvalue()) % 2)


def write_level(path, px, mpp, number, series):
    height, width = px.shape[:2]
    frames = list(frames_of(px))
    instance = f"{series}.{number}"
    spacing = f"{mpp / 1000:.6f}"
    measures = element(0x0028, 0x9110, "SQ", item(element(0x0018, 0x0050, "DS", "0.001"),
                                                  element(0x0028, 0x0030, "DS", f"{spacing}\\{spacing}")))
    kind = "ORIGINAL\\PRIMARY\\VOLUME\\NONE" if number == 1 else "DERIVED\\PRIMARY\\VOLUME\\RESAMPLED"
    body = [
        element(0x0008, 0x0008, "CS", kind),
        element(0x0008, 0x0016, "UI", WSI), element(0x0008, 0x0018, "UI", instance),
        element(0x0008, 0x0060, "CS", "SM"),
        element(0x0020, 0x000D, "UI", series + ".8"), element(0x0020, 0x000E, "UI", series),
        element(0x0020, 0x0013, "IS", str(number)), element(0x0020, 0x0052, "UI", series + ".9"),
        element(0x0020, 0x9311, "CS", "TILED_FULL"),
        element(0x0028, 0x0002, "US", 3), element(0x0028, 0x0004, "CS", "YBR_FULL_422"),
        element(0x0028, 0x0006, "US", 0), element(0x0028, 0x0008, "IS", str(len(frames))),
        element(0x0028, 0x0010, "US", TILE), element(0x0028, 0x0011, "US", TILE),
        element(0x0028, 0x0100, "US", 8), element(0x0028, 0x0101, "US", 8), element(0x0028, 0x0102, "US", 7),
        element(0x0028, 0x0103, "US", 0),
        element(0x0048, 0x0001, "FL", width * mpp / 1000), element(0x0048, 0x0002, "FL", height * mpp / 1000),
        element(0x0048, 0x0006, "UL", width), element(0x0048, 0x0007, "UL", height),
        element(0x0048, 0x0105, "SQ", item(element(0x0048, 0x0106, "SH", "1"), element(0x0048, 0x0112, "DS", "20"))),
        element(0x0048, 0x0302, "UL", 1), element(0x0048, 0x0303, "UL", 1),
        element(0x5200, 0x9229, "SQ", item(measures)),
        struct.pack("<HH", 0x7FE0, 0x0010) + b"OB\0\0" + struct.pack("<I", 0xFFFFFFFF) + item(),
        *(item(frame) for frame in frames),
        struct.pack("<HHI", 0xFFFE, 0xE0DD, 0),
    ]
    meta = b"".join([element(0x0002, 0x0001, "OB", b"\0\1"), element(0x0002, 0x0002, "UI", WSI),
                     element(0x0002, 0x0003, "UI", instance), element(0x0002, 0x0010, "UI", JPEG),
                     element(0x0002, 0x0012, "UI", series + ".7")])
    with open(path, "wb") as out:
        out.write(b"\0" * 128 + b"DICM" + element(0x0002, 0x0000, "UL", len(meta)) + meta + b"".join(body))


folder, series = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
y, x = numpy.mgrid[0:512, 0:768]
drawn = numpy.stack([128 + 100 * numpy.sin(x / 40), 128 + 100 * numpy.cos(y / 30), 128 + 60 * numpy.sin((x + y) / 25)], -1)
drawn = drawn.astype(numpy.uint8)
Image.fromarray(drawn).save(os.path.join(folder, "drawn.png"))
write_level(os.path.join(folder, "level0.dcm"), drawn, 0.5, 1, series)
write_level(os.path.join(folder, "level1.dcm"), numpy.ascontiguousarray(drawn[::2, ::2]), 1.0, 2, series)
