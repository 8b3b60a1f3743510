"""Finding and measuring nuclei against scikit-image doing the same steps, on one core.

Squares of 1024 px from a phantom slide as PNG at 0.25 um/px; both read the images, find nuclei, measure ten features of
each and write a label image and a table; microtome also writes the outlines. The peer is the newest scikit-image of
PyPI with numpy and scipy.
"""
import csv
import glob
import os
import re
import shutil
import subprocess

from measure import best
from setting import PYTHON, cores, folder, here, microtome
from table import Table

SIDE, SQUARES, REPEATS = 1024, 6, 3
data = os.path.join(folder, "nuclei")
images, ours_out, peer_out = (os.path.join(data, name) for name in ("images", "ours", "peer"))
site = os.path.join(folder, "python-skimage")


def make_images():
    if os.path.isdir(images):
        return
    phantom = os.path.join(data, "phantom")
    subprocess.run([microtome, "phantom", "-o", phantom, "--slides", "1", "--size", "8192", "--seed", "7", "--quiet"],
                   check=True)
    slide = glob.glob(os.path.join(phantom, "slides", "*.tiff"))[0]
    part = images + ".part"
    os.makedirs(part, exist_ok=True)
    for k in range(SQUARES):
        x, y = 2048 + 1024 * (k % 3), 3072 + 1024 * (k // 3)
        subprocess.run(["vips", "extract_area", slide, os.path.join(part, f"square_{k}.png"), str(x), str(y), str(SIDE),
                        str(SIDE)], check=True)
    os.rename(part, images)


def have_skimage():
    there = os.path.join(site, "skimage")
    if not os.path.isdir(there):
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-warn-conflicts", "--root-user-action=ignore",
                        "--target", site, "scikit-image"])
    return os.path.isdir(there)


def count(pattern):
    """Nuclei in all tables."""
    return sum(sum(1 for _ in csv.reader(open(path))) - 1 for path in glob.glob(pattern))


if not shutil.which("vips"):
    raise SystemExit("bench_nuclei needs libvips-tools")
if not have_skimage():
    raise SystemExit("scikit-image cannot be installed here: bench_nuclei needs it")
os.makedirs(data, exist_ok=True)
make_images()
core, log = {cores[-1]}, os.path.join(folder, "nuclei.log")
seconds, megabytes = best([microtome, "nuclei", images, "-o", ours_out, "--slide-mpp", "0.25", "--threads", "1", "--quiet"],
                          core, log, REPEATS, lambda: shutil.rmtree(ours_out, ignore_errors=True))
names = sorted(glob.glob(os.path.join(images, "*.png")))
peer_seconds, peer_megabytes = best(["env", "OMP_NUM_THREADS=1", "PYTHONPATH=" + site, PYTHON,
                                     os.path.join(here, "peers", "skimage_nuclei.py"), peer_out, *names], core, log, REPEATS)
who = "scikit-image " + re.search(r"skimage ([\d.]+)", open(log).read()).group(1)
print(f"nuclei: {count(os.path.join(ours_out, '*_nuclei.csv'))}, {who} {count(os.path.join(peer_out, '*_nuclei.csv'))}")
table = Table("nuclei", folder)
table.add("nuclei of 1024-px squares, one core", "squares/s", SQUARES / seconds, SQUARES / peer_seconds, who)
table.add("nuclei of 1024-px squares, memory", "MB", megabytes, peer_megabytes, who, less_is_better=True)
table.finish()
