"""Reading overlapping patches from pyramids of every compression against openslide-python.

The same pixels, a strip as wide as a slide usually is, as TIFF in tiles of 256 px by libvips: 448-px patches every 224
px, RGB in memory. Ours uses two threads on two cores; the peer is one process, as it is usually used, and then two
processes on both cores. OpenSlide is the newest from PyPI (openslide-bin), or the installed one if that cannot be had.
JPEG 2000 is in Aperio's form, which is the one that OpenSlide reads.
"""
import os
import re
import shutil
import subprocess

from measure import output
from setting import PYTHON, build, cores, folder, here, microtome, site
from table import Table

WIDTH, HEIGHT, PHANTOM = 24576, 3072, 8192
REPEATS = 1
data = os.path.join(folder, "slides")
lossless = ["--predictor", "horizontal"]
KINDS = {  # name: what vips is given
    "jpeg": ["--compression", "jpeg", "--Q", "85"],
    "jp2k": ["--compression", "jp2k", "--Q", "42"],
    "lzw": ["--compression", "lzw", *lossless],
    "deflate": ["--compression", "deflate", *lossless],
    "zstd": ["--compression", "zstd", *lossless],
    "webp": ["--compression", "webp", "--Q", "85"],
    "none": ["--compression", "none"],
}


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def as_aperio(path):
    """Tiles and sizes as they are, compression and description as Aperio's."""
    import tifffile
    made = path + ".svs"
    with tifffile.TiffFile(path) as old, tifffile.TiffWriter(made, bigtiff=True) as new:
        for i, page in enumerate(old.pages):
            def tiles(page=page):
                for offset, size in zip(page.dataoffsets, page.databytecounts):
                    old.filehandle.seek(offset)
                    yield old.filehandle.read(size)
            new.write(tiles(), shape=page.shape, dtype=page.dtype, tile=(page.tilelength, page.tilewidth),
                      compression=33005, photometric="rgb", metadata=None, subfiletype=i > 0,
                      description=f"Aperio Image Library v11\r\n{WIDTH}x{HEIGHT}|AppMag = 20|MPP = 0.5" if i == 0 else None)
    os.replace(made, path)


def make(name, options):
    path = os.path.join(data, name + ".tif")
    if os.path.exists(path):
        return path
    pixels = os.path.join(data, "pixels.v")
    if not os.path.exists(pixels):
        run(microtome, "phantom", "-o", os.path.join(data, "phantom"), "--slides", "1", "--size", str(PHANTOM), "--seed", "7",
            "--quiet")
        slides = os.path.join(data, "phantom", "slides")
        first = next(os.path.join(slides, name) for name in sorted(os.listdir(slides)) if name.endswith(".tiff"))
        part = os.path.join(data, "part.v")
        run("vips", "extract_area", first, part, "0", str((PHANTOM - HEIGHT) // 2), str(PHANTOM), str(HEIGHT))
        run("vips", "replicate", part, pixels, str(WIDTH // PHANTOM), "1")
        os.remove(part)
    run("vips", "tiffsave", pixels, path, "--tile", "--pyramid", "--bigtiff", "--tile-width", "256", "--tile-height", "256",
        *options)
    if name == "jp2k":
        as_aperio(path)
    return path


def have_openslide():
    """Where openslide-python and the newest OpenSlide are, or nothing: the installed ones are used."""
    place = os.path.join(site, "openslide")
    if not os.path.isdir(place):
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-warn-conflicts", "--root-user-action=ignore",
                        "--no-deps", "--target", site, "openslide-python", "openslide-bin"])
    return {"PYTHONPATH": site} if os.path.isdir(place) else {}


def measured(command, threads, **environment):
    """The fastest of the repeats: patches per second, and CPU seconds; and OpenSlide's version."""
    runs = []
    for _ in range(REPEATS):
        found = dict(re.findall(r"(\w+) ([\d.]+)", output(command, threads, **environment)))
        runs.append((float(found["patches"]) / float(found["seconds"]), float(found["cpu"]), found.get("openslide")))
    return max(rate for rate, _, _ in runs), min(cpu for _, cpu, _ in runs), runs[0][2]


if not shutil.which("vips"):
    raise SystemExit("bench_slides needs libvips-tools")
os.makedirs(data, exist_ok=True)
environment = have_openslide()
table = Table("slides", folder)
peer_script = os.path.join(here, "peers", "openslide_patches.py")
two = min(2, len(cores))
for name, options in KINDS.items():
    slide = make(name, options)
    ours, ours_cpu, _ = measured([os.path.join(build, "read_patches"), slide, str(two)], two)
    one, one_cpu, version = measured([PYTHON, peer_script, slide, "1"], 1, **environment)
    both, _, _ = measured([PYTHON, peer_script, slide, "2"], two, **environment)
    peer = f"openslide-python, OpenSlide {version}"
    table.add(f"{name}, two threads", "patches/s", ours, one, peer)
    table.add(f"{name}, two threads", "patches/s", ours, both, peer + ", two processes")
    table.add(f"{name}, processor time", "s", ours_cpu, one_cpu, peer, less_is_better=True)
table.finish()
