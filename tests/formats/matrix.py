"""The matrix of slide formats in docs/formats.md: makes a file of every kind, opens it with microtome, compares its
pixels with other readers, and fails if a fact differs from the committed table. `--write` writes the table."""
import json
import os
import shutil
import subprocess
import sys

try:
    import numpy as np
    import PIL.Image
    import tifffile  # noqa: F401, of files.py
except ImportError as missing:
    print("skipped: needs python3-numpy, python3-pil and python3-tifffile (%s)" % missing)
    sys.exit(77)

import files
import readers
from files import APERIO, DEEP, LEVELS, Missing, as_jp2k, as_jpeg, encoded, gdal, philips_description, tiff, \
    vips_lossless, vips_lossy, vips_one_bit

SOURCE = os.environ["SOURCE"]
DOCS = os.path.join(SOURCE, "docs", "formats.md")
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
HEAD = ["file kind", "opens", "fast", "µm/px", "levels", "colours checked against", "OpenSlide 3.4.1"]

DRAWN, TIFFFILE, VIPS, PIL_, OS3, OS4 = "drawn pixels", "tifffile", "libvips", "Pillow", "OpenSlide 3.4.1", "OpenSlide 4.0.1"
VIPS_ROUNDED = "libvips (±1)"  # which rounds YCbCr in another way
RGBA = np.dstack([LEVELS[0], LEVELS[0][:, :, 1]])
GREY = LEVELS[0][:, :, 0]
OME = {"axes": "YXS", "PhysicalSizeX": 250, "PhysicalSizeXUnit": "nm", "PhysicalSizeY": 250, "PhysicalSizeYUnit": "nm"}


class Differs(Exception):
    pass


def palette(path):
    colours = np.arange(768, dtype=np.uint16).reshape(3, 256) * 85
    tiff([GREY], photometric="palette", colormap=colours)(path)
    return [(colours[:, GREY] >> 8).astype(np.uint8).transpose(1, 2, 0)]


def grey_16(path):
    tiff([DEEP[0][:, :, 0]], photometric="minisblack", compression="deflate")(path)
    return [np.repeat((DEEP[0][:, :, :1] >> 8).astype(np.uint8), 3, 2)]


def inverted(path):
    tiff([255 - GREY], photometric="miniswhite", compression="deflate", predictor=True)(path)
    return [np.repeat(GREY[:, :, None], 3, 2)]


def stack(axes, n, **options):
    planes = np.stack([GREY] * n)
    return tiff([planes], photometric="minisblack", ome=True, mpp=None, metadata={"axes": axes}, **options)


def floats(path):
    return tiff([GREY.astype(np.float32)], photometric="minisblack")(path, [None])


def phantom(path):
    folder = path + "-cohort"
    subprocess.run([os.environ["MICROTOME"], "phantom", "-q", "-o", folder, "--slides", "1", "--size", "1024"],
                   check=True)
    slides = os.path.join(folder, "slides")
    shutil.copy(os.path.join(slides, os.listdir(slides)[0]), path)
    return [None, None]


def image(path):
    dpi = files.PX_PER_CM * 2.54
    PIL.Image.fromarray(LEVELS[0]).save(path, dpi=(dpi, dpi), **({"quality": 90} if path.endswith("jpg") else {}))
    return [LEVELS[0]]


def strips(path):
    done = run(["vips", "copy", files.picture_of(LEVELS[0], path), path + "[compression=lzw,strip]"]) \
        if shutil.which("vips") else None
    if not done or done.returncode != 0:
        raise Missing("libvips-tools")
    return [LEVELS[0]]


def real(name):
    def find(path):
        slide = os.path.join(os.environ.get("SHARED", ""), "data", "slides", name)
        if not os.path.exists(slide):
            raise Missing(name)
        os.symlink(os.path.abspath(slide), path)
        return [None]
    return find


LOSSLESS = [DRAWN, VIPS, OS4]
# (kind, file name, how it is made, colours checked against) or, for what is refused, (..., words of the error)
ROWS = [
    ("Aperio SVS, JPEG (real slide)", "real.svs", real("CMU-1-Small-Region.svs"), [OS3, OS4]),
    ("Aperio SVS, JPEG", "jpeg.svs", encoded(as_jpeg, 7, 6, APERIO), [OS3, OS4]),
    ("Aperio SVS, JPEG 2000 RGB (33005)", "rgb.svs", encoded(as_jp2k(), 33005, 2, APERIO, lossless=True),
     [DRAWN, OS3, OS4]),
    ("Aperio SVS, JPEG 2000 YCbCr (33003)", "ycc.svs", encoded(as_jp2k(ycbcr=True), 33003, 6, APERIO), [OS3, OS4]),
    ("Philips TIFF, padded levels", "philips.tiff",
     encoded(as_jpeg, 7, 6, philips_description(3), "Philips DP v1.0", padded=True), [OS3, OS4]),
    ("OME-TIFF, SubIFDs, deflate, sizes in nm", "sub.ome.tif",
     tiff(LEVELS, sub=True, compression="deflate", ome=True, mpp=None, metadata=OME), [DRAWN, TIFFFILE]),
    ("OME-TIFF, SubIFDs, 16 bit, predictor", "wide.ome.tif",
     tiff(DEEP, sub=True, compression="deflate", predictor=True, ome=True, mpp=None, metadata=OME), [DRAWN, TIFFFILE]),
    ("OME-TIFF, planes of colours", "planar.ome.tif",
     tiff([np.ascontiguousarray(LEVELS[0].transpose(2, 0, 1))], planarconfig="separate", compression="deflate",
          ome=True, mpp=None, metadata=dict(OME, axes="SYX")), [DRAWN]),
    ("OME-TIFF, 4 fluorescence channels", "channels.ome.tif", stack("CYX", 4), "has 4 channels"),
    ("OME-TIFF, focus planes", "focus.ome.tif", stack("ZYX", 5), "has 5 focus planes"),
    ("our phantom slides, JPEG, BigTIFF", "phantom.tiff", phantom, [VIPS, OS3, OS4]),
    ("pyramid, JPEG", "jpeg.tif", vips_lossy("--compression", "jpeg"), [VIPS, OS3, OS4]),
    ("pyramid, JPEG, RGB", "jpeg-rgb.tif", vips_lossy("--compression", "jpeg", "--Q", "95"), [VIPS, OS3, OS4]),
    ("pyramid, JPEG 2000 YCbCr (33004)", "jp2k.tif", vips_lossy("--compression", "jp2k"), [VIPS_ROUNDED]),
    ("pyramid, JPEG 2000 (34712)", "jpeg2000.tif", encoded(as_jp2k(), 34712, lossless=True), [DRAWN]),
    ("pyramid, LZW", "lzw.tif", vips_lossless("--compression", "lzw", "--predictor", "none"), LOSSLESS),
    ("pyramid, LZW, predictor", "lzw-2.tif", vips_lossless("--compression", "lzw"), LOSSLESS),
    ("pyramid, deflate, predictor", "deflate.tif", vips_lossless("--compression", "deflate"), LOSSLESS + [TIFFFILE]),
    ("pyramid, Zstandard, predictor", "zstd.tif", vips_lossless("--compression", "zstd"), LOSSLESS),
    ("pyramid, WebP, lossless", "webp.tif", vips_lossless("--compression", "webp", "--lossless"), [DRAWN, VIPS]),
    ("pyramid, WebP, lossy", "webp-lossy.tif", vips_lossy("--compression", "webp", "--Q", "80"), [VIPS]),
    ("pyramid, PackBits", "packbits.tif", vips_lossless("--compression", "packbits"), LOSSLESS),
    ("pyramid, uncompressed", "none.tif", vips_lossless("--compression", "none"), LOSSLESS + [TIFFFILE]),
    ("pyramid in SubIFDs, BigTIFF", "subifd.tif",
     vips_lossless("--compression", "deflate", "--subifd", "--bigtiff"), [DRAWN, VIPS]),
    ("pyramid of pages without marks", "unmarked.tif", tiff(LEVELS, marked=False, compression="deflate"), [DRAWN]),
    ("big-endian classic TIFF", "big-endian.tif", tiff(LEVELS, byteorder=">", compression="deflate"), [DRAWN, TIFFFILE]),
    ("big-endian BigTIFF, 16 bit, predictor", "big-endian-16.tif",
     tiff(DEEP, byteorder=">", bigtiff=True, compression="deflate", predictor=True), [DRAWN, OS4]),
    ("GDAL COG, deflate, predictor", "cog.tif", gdal("COMPRESS=DEFLATE", "PREDICTOR=YES"), [DRAWN, VIPS, OS4]),
    ("GDAL COG, JPEG", "cog-jpeg.tif", gdal("COMPRESS=JPEG", lossless=False), [VIPS, OS3, OS4]),
    ("16-bit RGB", "rgb16.tif", vips_lossless("--compression", "lzw", source=DEEP[0]), LOSSLESS),
    ("8-bit grey", "grey.tif", vips_lossless("--compression", "lzw", source=GREY), LOSSLESS),
    ("16-bit grey", "grey16.tif", grey_16, [DRAWN]),
    ("grey, 0 is white", "inverted.tif", inverted, [DRAWN, OS4]),
    ("1-bit mask", "mask.tif", vips_one_bit, [DRAWN, OS4]),
    ("palette", "palette.tif", palette, [DRAWN, OS4]),
    ("RGBA, alpha over white", "rgba.tif", vips_lossless("--compression", "deflate", source=RGBA, alpha=True),
     [DRAWN, OS4]),
    ("planes of colours, predictor", "planar.tif",
     tiff([np.ascontiguousarray(LEVELS[0].transpose(2, 0, 1))], planarconfig="separate", compression="deflate",
          predictor=True), [DRAWN, OS4]),
    ("tiles missing from the file", "sparse.tif", encoded(as_jpeg, 7, 6, absent=3), [OS4]),
    ("CMYK", "cmyk.tif", tiff([RGBA], photometric="separated", compression="deflate"), [OS4]),
    ("floating point", "float.tif", floats, "floating-point"),
    ("PNG", "image.png", image, [DRAWN]),
    ("JPEG", "image.jpg", image, [PIL_]),
    ("TIFF in strips, LZW", "strips.tif", strips, [DRAWN, VIPS]),
]


def run(command):
    return subprocess.run(command, capture_output=True, text=True)


def own_levels(path, info, scratch):
    done = run([os.environ["READ_LEVEL"], path, scratch])
    if done.returncode != 0:
        raise Differs("%s: %s" % (path, done.stderr.strip()))
    return [np.fromfile(os.path.join(scratch, "%d.rgb" % i), np.uint8).reshape(level["height"], level["width"], 3)
            for i, level in enumerate(info["levels"])]


def as_rgb(px):
    if px.ndim == 1:
        return px
    if px.ndim == 3 and px.shape[0] == 3 and px.shape[2] != 3:
        px = px.transpose(1, 2, 0)
    px = px[:, :, None] if px.ndim == 2 else px
    return np.repeat(px, 3, 2) if px.shape[2] == 1 else px


def reference_levels(name, path, drawn, info, scratch, installed):
    if name == DRAWN:
        return [None if level is None else as_rgb(level) for level in drawn]
    if name == TIFFFILE:
        return [as_rgb(level) for level in readers.tifffile_levels(path)]
    if name == PIL_:
        return [np.asarray(PIL.Image.open(path))]
    if name in (VIPS, VIPS_ROUNDED):
        sizes = [(level["width"], level["height"]) for level in info["levels"]]
        return [as_rgb(level) for level in readers.vips_levels(path, sizes, "subifd" in path, scratch)]
    return installed[name].levels(path)


def same(ours, theirs, most=0):
    return theirs is None or (ours.shape == theirs.shape and
                              np.abs(ours.astype(int) - theirs.astype(int)).max() <= most)


def check_colours(row, path, drawn, info, ours, scratch, installed, notes):
    for name in row[3]:
        if name in (OS3, OS4) and not installed[name]:
            notes.add("not compared with " + name + ", which is not installed")
            continue
        theirs = reference_levels(name, path, drawn, info, scratch, installed)
        if not theirs or (len(theirs) != len(ours) and name != DRAWN):
            raise Differs("%s: %s reads %d levels of %d" % (row[0], name, len(theirs or []), len(ours)))
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if not same(a, b, 1 if name == VIPS_ROUNDED else 0):
                worst = np.abs(a.astype(int) - b.astype(int)).max() if a.shape == b.shape else b.shape
                raise Differs("%s: level %d differs from %s by %s" % (row[0], i, name, worst))


def judge_openslide_3(reader, path, ours):
    theirs = reader.levels(path)
    if not theirs:
        return "does not open it" if theirs is None else "cannot read it"
    wrong = [str(i) for i, (a, b) in enumerate(zip(ours, theirs)) if not same(a, b)]
    if wrong:
        return "wrong pixels in level " + ", ".join(wrong)
    return "the same" if len(theirs) == len(ours) else "%d of %d levels" % (len(theirs), len(ours))


def make_row(row, folder, installed, notes):
    """The cells of a row; None in a cell that cannot be checked here."""
    path, scratch = os.path.join(folder, row[1]), os.path.join(folder, row[1] + "-levels")
    os.makedirs(scratch)
    drawn = row[2](path)
    told = run([os.environ["MICROTOME"], "info", "--json", path])
    if isinstance(row[3], str):
        if told.returncode == 0 or row[3] not in told.stderr:
            raise Differs("%s: should say '%s': %s%s" % (row[0], row[3], told.stdout, told.stderr))
        return [row[0], "no: " + row[3], "", "", "", "", ""]
    if told.returncode != 0:
        raise Differs("%s: %s" % (row[0], told.stderr.strip()))
    info = json.loads(told.stdout)
    info = info[0] if isinstance(info, list) else info
    ours = own_levels(path, info, scratch)
    check_colours(row, path, drawn, info, ours, scratch, installed, notes)
    fast = all(level["fast"] for level in info["levels"])
    source = {"vendor": "by the scanner", "tiff tags": "by tags", "image header": "by its header", "unknown": "no"}
    return [row[0], "yes", "yes" if fast else "no: " + info["levels"][0]["reader"],
            source.get(info["mpp_source"], info["mpp_source"]), str(len(info["levels"])), ", ".join(row[3]),
            judge_openslide_3(installed[OS3], path, ours) if installed[OS3] else None]


def line(cells):
    return "| " + " | ".join(cells) + " |"


def committed():
    text = open(DOCS, encoding="utf-8").read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    rows = [[cell.strip() for cell in each.strip("| \n").split(" | ")] for each in text[begin:end].strip().split("\n")]
    return text[:begin], {row[0]: row + [""] * (len(HEAD) - len(row)) for row in rows[2:]}, text[end:]


def main():
    folder = os.path.join(os.environ["SCRATCH"], "formats")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    before, table, after = committed()
    installed = {OS3: readers.openslide_3(), OS4: readers.openslide_4()}
    notes, lines = set(), [line(HEAD), line(["---"] * len(HEAD))]
    wrong, differs = [], []
    for row in ROWS:
        try:
            cells = make_row(row, folder, installed, notes)
        except Differs as what:
            differs.append(str(what))
            table.pop(row[0], None)
            continue
        except Missing as what:
            notes.add("%s: not checked, needs %s" % (row[0], what))
            cells = [row[0]] + [None] * (len(HEAD) - 1)
        old = table.pop(row[0], [row[0]] + ["?"] * (len(HEAD) - 1))
        cells = [old[i] if cell is None else cell for i, cell in enumerate(cells)]
        if cells != [cell.strip() for cell in old]:
            wrong.append("%s\n  committed: %s\n  found:     %s" % (row[0], line(old), line(cells)))
        lines.append(line(cells))
    wrong += ["%s: in the table, but no file of this kind is made" % kind for kind in table]
    print("\n".join(sorted(notes)))
    if "--write" in sys.argv and not differs:
        open(DOCS, "w", encoding="utf-8").write(before + "\n" + "\n".join(lines) + "\n" + after)
    elif differs:
        raise SystemExit("\n".join(differs))
    elif wrong:
        raise SystemExit("docs/formats.md is not what the files say (matrix.py --write corrects it):\n" + "\n".join(wrong))
    shutil.rmtree(folder)


main()
