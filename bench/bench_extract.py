"""Patch extraction against openslide-python + h5py, and reading against bare libjpeg-turbo.

On one 32,768 x 32,768 phantom slide, dense 448-px patches, one pinned core, end to end with fsync.
"""
import os
import re
import shutil

from measure import best
from setting import PYTHON, build, cores, folder, here, microtome
from table import Table

SIZE_PX = 32768
data = os.path.join(folder, "data")
out = os.path.join(folder, "out")
log = os.path.join(folder, "extract.log")
one, two = {cores[-1]}, set(cores[-2:])


def extract(layout, threads, pinned, repeats):
    command = [microtome, "extract", slide, "-o", out, "--dense", "--patch", "224", "--margin", "112",
               "--layout", layout, "--threads", str(threads), "--quiet"]
    return best(command, pinned, log, repeats, before=lambda: shutil.rmtree(out, ignore_errors=True))


def patches_in(store):
    import h5py
    with h5py.File(store, "r") as file:
        return sum(file[name]["img"].shape[0] for name in file if re.fullmatch(r"t\d+", name))


best([microtome, "phantom", "-o", data, "--slides", "1", "--size", str(SIZE_PX), "--seed", "7", "--quiet"],
     set(cores), log, 1)
slide = next(os.path.join(data, "slides", name) for name in os.listdir(os.path.join(data, "slides"))
             if name.endswith(".tiff"))
store = os.path.join(out, os.path.splitext(os.path.basename(slide))[0] + ".h5")

fda_s, fda_mb = extract("fda", 1, one, 3)
model = os.path.join(folder, "model.h5")
os.replace(store, model)
n = patches_in(model)
peer_out = os.path.join(folder, "peer.h5")


def remove_peer():
    if os.path.exists(peer_out):
        os.remove(peer_out)


peer_s, peer_mb = best([PYTHON, os.path.join(here, "peers", "openslide_h5py.py"), slide, model, peer_out],
                       one, log, 2, before=remove_peer)
blocks_s, blocks_mb = extract("blocks", 1, one, 3)
blocks_two_s, _ = extract("blocks", 2, two, 3) if len(cores) > 1 else (None, None)
fda_two_s, _ = extract("fda", 2, two, 3) if len(cores) > 1 else (None, None)
best([os.path.join(build, "read_rate"), slide], one, log, 1)
rates = dict(re.findall(r"(\w+) ([\d.]+)", open(log).read()))

table = Table("extract", folder)
peer = "openslide-python + h5py"
table.add("448-px patches, fda layout", "patches/s", n / fda_s, n / peer_s, peer)
table.add("448-px patches, blocks layout", "patches/s", n / blocks_s, n / peer_s, peer + " (fda layout)")
table.add("reading the tissue's tiles", "Mpx/s", float(rates["pass"]), float(rates["bare"]), "bare libjpeg-turbo")
table.add("peak memory, fda layout", "MB", fda_mb, peer_mb, peer, less_is_better=True)
table.add("peak memory, blocks layout", "MB", blocks_mb, peer_mb, peer, less_is_better=True)
if blocks_two_s:
    table.add("two threads, fda layout", "patches/s", n / fda_two_s, n / fda_s, "one thread")
    table.add("two threads, blocks layout", "patches/s", n / blocks_two_s, n / blocks_s, "one thread")
table.finish()
print(f"{n} patches; peer {peer_s:.1f} s, fda {fda_s:.2f} s, blocks {blocks_s:.2f} s")
for path in (peer_out, model):
    os.remove(path)
shutil.rmtree(out, ignore_errors=True)
