"""Reading overlapping patches from pyramids of every compression against openslide-python.

The same pixels, a strip as wide as a slide usually is, as TIFF in tiles of 256 px by libvips: 448-px patches every 224
px, RGB in memory. Ours uses two threads on two cores; the peer is one process, as it is usually used, and then two
processes on both cores. OpenSlide is the newest from PyPI (openslide-bin), or the installed one if that cannot be had.
JPEG 2000 is in Aperio's form (YCbCr), which is the one that OpenSlide reads.
"""
import os
import re
import shutil
import subprocess

from measure import output
from setting import PYTHON, build, cores, folder, here, microtome, site
from table import Table

WIDTH, HEIGHT, PHANTOM = 24576, 3072, 8192
REPEATS = 3
data = os.path.join(folder, "slides")
lossless = ["--predictor", "horizontal"]
KINDS = {  # name: what vips is given
    "jpeg": ["--compression", "jpeg", "--Q", "85"],
    "jp2k": ["--compression", "jp2k", "--Q", "42", "--properties"],
    "lzw": ["--compression", "lzw", *lossless],
    "deflate": ["--compression", "deflate", *lossless],
    "zstd": ["--compression", "zstd", *lossless],
    "webp": ["--compression", "webp", "--Q", "85"],
    "none": ["--compression", "none"],
}


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def as_aperio(path):
    """Compression and description as Aperio's, tiles as they are."""
    import tifffile
    with tifffile.TiffFile(path, mode="r+b") as file:
        for page in file.pages:
            page.tags["Compression"].overwrite(33003)
        file.pages[0].tags["ImageDescription"].overwrite(
            f"Aperio Image Library v11\r\n{WIDTH}x{HEIGHT}|AppMag = 20|MPP = 0.5")


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
    """Whether openslide-python and the newest OpenSlide are in `site`; they are installed from PyPI if possible."""
    place = os.path.join(site, "openslide")
    if not os.path.isdir(place):
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-warn-conflicts", "--root-user-action=ignore",
                        "--no-deps", "--target", site, "openslide-python", "openslide-bin"])
    return os.path.isdir(place)


def measured(command, threads, **environment):
    """The fastest of the repeats: patches per second, and CPU seconds; and OpenSlide's version."""
    runs = []
    for _ in range(REPEATS):
        found = dict(re.findall(r"(\w+) ([\d.]+)", output(command, threads, **environment)))
        runs.append((float(found["patches"]) / float(found["seconds"]), float(found["cpu"]), found.get("openslide")))
    return max(rate for rate, _, _ in runs), min(cpu for _, cpu, _ in runs), runs[0][2]


def peer(slide, processes, threads):
    """With the newest OpenSlide, or the installed one if that lacks the compression; None if no one reads the slide."""
    for environment in ({"PYTHONPATH": site} if newest else {}, {}):
        try:
            return measured([PYTHON, peer_script, slide, str(processes)], threads, **environment)
        except subprocess.CalledProcessError:
            pass
    return None


if not shutil.which("vips"):
    raise SystemExit("bench_slides needs libvips-tools")
os.makedirs(data, exist_ok=True)
newest = have_openslide()
table = Table("slides", folder)
peer_script = os.path.join(here, "peers", "openslide_patches.py")
two = min(2, len(cores))
for name, options in KINDS.items():
    slide = make(name, options)
    ours, ours_cpu, _ = measured([os.path.join(build, "read_patches"), slide, str(two)], two)
    found = peer(slide, 1, 1)
    if not found:
        print(f"{name}: OpenSlide does not read it, its rows are omitted")
        continue
    one, one_cpu, version = found
    both, _, _ = peer(slide, 2, two)
    who = f"openslide-python, OpenSlide {version}"
    table.add(f"{name}, two threads", "patches/s", ours, one, who + ", one process")
    table.add(f"{name}, two threads", "patches/s", ours, both, who + ", two processes")
    table.add(f"{name}, processor time", "s", ours_cpu, one_cpu, who + ", one process", less_is_better=True)
    print(f"{name}: {ours:.0f}, {one:.0f} and {both:.0f} patches/s, {ours_cpu:.2f} and {one_cpu:.2f} s", flush=True)
table.finish()
