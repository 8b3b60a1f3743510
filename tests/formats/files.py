"""Slides of many kinds, made at test time from the same pixels: tissue-like colours, 700 x 520 px, 0.25 um/px.

Each function writes one file and returns the expected levels (uint8 RGB arrays, the finest first; None where only
another reader can say), or raises Missing if a program that writes it is not installed."""
import io
import os
import shutil
import struct
import subprocess

import numpy as np
import PIL.Image
import tifffile

WIDTH, HEIGHT, TILE = 700, 520, 128
MPP = 0.25
PX_PER_CM = 10000 / MPP


class Missing(Exception):
    pass


def draw(width, height, seed=1):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    wave = np.sin(x * 0.031) * np.cos(y * 0.047)
    px = np.stack([180 + 50 * wave, 110 + 60 * np.sin((x + y) * 0.023), 160 - 45 * wave], 2)
    return np.clip(px + rng.integers(-6, 7, (height, width, 1)), 0, 255).astype(np.uint8)


LEVELS = [draw(WIDTH, HEIGHT), draw(WIDTH // 2, HEIGHT // 2, 2), draw(WIDTH // 4, HEIGHT // 4, 3)]
WIDE = [level.astype(np.uint16) * 257 for level in LEVELS]  # 16 bits
DEEP = [(level.astype(np.uint32) * 257 + 77).clip(0, 65535).astype(np.uint16) for level in LEVELS]


def to_8_bits(px):  # as libtiff does
    return ((px.astype(np.uint32) + 128) // 257).astype(np.uint8) if px.dtype == np.uint16 else px


def grey(px):
    return np.repeat(px[:, :, :1], 3, 2)


# ---- libvips

def picture_of(px, path, alpha=False):
    """A plain TIFF to convert."""
    picture = os.path.splitext(path)[0] + "-source.tif"
    kind = {"photometric": "rgb"} if px.ndim == 3 else {"photometric": "minisblack"}
    if alpha:
        kind["extrasamples"] = ["unassalpha"]
    tifffile.imwrite(picture, px, **kind)
    return picture


def vips(path, options, source=None, alpha=False):
    """Levels are libvips' own averages: only level 0 is known; the others are compared with other readers."""
    if not shutil.which("vips"):
        raise Missing("libvips-tools")
    picture = picture_of(LEVELS[0] if source is None else source, path, alpha)
    command = ["vips", "tiffsave", picture, path, "--tile", "--tile-width", str(TILE), "--tile-height", str(TILE),
               "--xres", str(PX_PER_CM / 10), "--yres", str(PX_PER_CM / 10), "--resunit", "cm", "--strip"]
    done = subprocess.run(command + options, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing("libvips with support for " + " ".join(options) + ": " + done.stderr.strip())


def vips_lossless(*options, source=None, alpha=False):
    def make(path):
        vips(path, ["--pyramid", *options], source, alpha)
        px = LEVELS[0] if source is None else source
        if alpha:
            a = px[:, :, 3:].astype(int)
            px = ((px[:, :, :3] * a + 127) // 255 + 255 - a).astype(np.uint8)
        return [to_8_bits(px) if px.ndim == 3 else np.repeat(px[:, :, None], 3, 2), None, None]
    return make


def vips_lossy(*options):
    def make(path):
        vips(path, ["--pyramid", *options])
        return [None, None, None]
    return make


def vips_one_bit(path):
    bits = np.where(LEVELS[0][:, :, 0] > 170, 255, 0).astype(np.uint8)
    vips(path, ["--bitdepth", "1", "--compression", "none"], bits)
    return [np.repeat(bits[:, :, None], 3, 2)]


# ---- GDAL

def gdal(*options, lossless=True):
    def make(path):
        if not shutil.which("gdal_translate"):
            raise Missing("gdal-bin")
        command = ["gdal_translate", "-q", "-of", "COG", "-co", "BLOCKSIZE=%d" % TILE, picture_of(LEVELS[0], path), path]
        for option in options:
            command += ["-co", option]
        subprocess.run(command, check=True, capture_output=True)
        return [LEVELS[0] if lossless else None, None, None]
    return make


# ---- tifffile

def tiff(levels, photometric="rgb", sub=False, marked=True, description=None, software=None, mpp=MPP, byteorder="<",
         **options):
    """Writes levels as given, as SubIFDs or as pages; tiles may be encoded by Pillow (see tiles_of)."""
    def make(path, want=None):
        resolution = {"resolution": (10000 / mpp, 10000 / mpp), "resolutionunit": "CENTIMETER"} if mpp else {}
        ome = options.pop("ome", False)
        with tifffile.TiffWriter(path, bigtiff=options.pop("bigtiff", False), byteorder=byteorder, ome=ome) as file:
            for i, level in enumerate(levels):
                more = dict(options)
                if i == 0 and sub:
                    more["subifds"] = len(levels) - 1
                if i > 0 and (marked or sub):
                    more["subfiletype"] = 1
                if i == 0 and description is not None:
                    more["description"] = description
                if not ome:
                    more["metadata"] = None
                elif i > 0:
                    more.pop("metadata", None)
                file.write(level, photometric=photometric, tile=(TILE, TILE), software=software or "test", **more,
                           **(resolution if i == 0 else {}))
        return [to_8_bits(level) for level in levels] if want is None else want
    return make


# ---- tiles encoded by Pillow

def entry(tag, values):
    """A directory entry: text, doubles as rationals, or integers."""
    if isinstance(values, str):
        return tag, 2, len(values.encode()) + 1, values.encode() + b"\0"
    if isinstance(values, float):
        return tag, 5, 1, struct.pack("<II", round(values * 1000), 1000)
    values = values if isinstance(values, list) else [values]
    return tag, 4, len(values), struct.pack("<%dI" % len(values), *values)


def write_directory(file, entries, link):
    """Values first, then the directory; its position goes to `link`. Returns the position of the next link."""
    packed = []
    for tag, kind, count, data in sorted(entries):
        if len(data) > 4:
            packed.append((tag, kind, count, struct.pack("<I", file.seek(0, 2))))
            file.write(data + b"\0" * (len(data) % 2))
        else:
            packed.append((tag, kind, count, data.ljust(4, b"\0")))
    at = file.seek(0, 2)
    file.write(struct.pack("<H", len(packed)))
    for tag, kind, count, data in packed:
        file.write(struct.pack("<HHI", tag, kind, count) + data)
    file.write(b"\0\0\0\0")
    file.seek(link)
    file.write(struct.pack("<I", at))
    return at + 2 + 12 * len(packed)


def encoded(encode, compression, photometric=2, description=None, software=None, padded=False, lossless=False,
            absent=-1):
    """A classic TIFF with a page for each level; padded: the directories of levels cover whole tiles; absent: this tile
    of level 0 is not written."""
    def make(path):
        with open(path, "w+b") as file:
            file.write(b"II*\0\0\0\0\0")
            link = 4
            for i, level in enumerate(LEVELS):
                height, width = level.shape[:2]
                rows, columns = -(-height // TILE), -(-width // TILE)
                full = np.pad(level, ((0, rows * TILE - height), (0, columns * TILE - width), (0, 0)), "edge")
                if padded and i > 0:
                    height, width = full.shape[:2]
                places, sizes = [], []
                for tile in range(rows * columns):
                    y, x = tile // columns * TILE, tile % columns * TILE
                    data = b"" if i == 0 and tile == absent else encode(full[y:y + TILE, x:x + TILE])
                    places.append(file.seek(0, 2) if data else 0)
                    sizes.append(len(data))
                    file.write(data)
                entries = [entry(254, 1 if i else 0), entry(256, width), entry(257, height), entry(258, 8),
                           entry(259, compression), entry(262, photometric), entry(277, 3), entry(284, 1),
                           entry(322, TILE), entry(323, TILE), entry(324, places), entry(325, sizes)]
                if photometric == 6:
                    entries.append((530, 3, 2, struct.pack("<HH", 2, 2)))
                if i == 0:
                    entries += [entry(270, description)] if description else []
                    entries += [entry(305, software)] if software else []
                    entries += [entry(282, PX_PER_CM), entry(283, PX_PER_CM), entry(296, 3)]
                link = write_directory(file, entries, link)
        return LEVELS if lossless else [None] * len(LEVELS)
    return make


APERIO = "Aperio Image Library v12\r\n700x520 (128x128)|AppMag = 40|MPP = 0.2500|Filename = made"


def philips_description(n):
    spacing = "<Attribute Name='DICOM_PIXEL_SPACING'>\"%g\" \"%g\"</Attribute>"
    level = "<DataObject ObjectType='PixelDataRepresentation'>" + spacing + "</DataObject>"
    levels = "".join(level % ((MPP / 1000 * 2 ** i,) * 2) for i in range(n))
    return ("<?xml version='1.0'?><DataObject ObjectType='DPUfsImport'><Attribute Name='PIM_DP_SCANNED_IMAGES'><Array>"
            "<DataObject ObjectType='DPScannedImage'>" + spacing % (MPP / 1000, MPP / 1000) +
            "<Attribute Name='PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE'><Array>" + levels + "</Array></Attribute>"
            "<Attribute Name='PIM_DP_IMAGE_TYPE'>WSI</Attribute></DataObject></Array></Attribute></DataObject>")


def as_jpeg(tile):
    out = io.BytesIO()
    PIL.Image.fromarray(tile).save(out, "JPEG", quality=85)
    return out.getvalue()


def as_jp2k(ycbcr=False):
    """Lossless; YCbCr without the codec's own transform of colours."""
    def encode(tile):
        out = io.BytesIO()
        picture = PIL.Image.fromarray(tile)
        if ycbcr:
            picture = PIL.Image.merge("RGB", picture.convert("YCbCr").split())
        picture.save(out, "JPEG2000", no_jp2=True, mct=0 if ycbcr else 1)
        return out.getvalue()
    return encode
