"""A step of private training: gradients of single patches, clipped, summed, with noise; against Opacus.

The diffusion U-Net unet_small at 32 px on the same network, batch and number of threads, without the optimizer; once
with a patch as it is, once with four copies of it whose gradients are averaged before they are clipped (multiplicity),
for which Opacus needs the gradient of every copy. Opacus has several ways to make gradients of samples; its fastest one counts. The target is 3 times Opacus. A step that is not
private (denoiser_time) stands beside it, to show what privacy costs. Opacus and PyTorch 2 come from PyPI; a Python that
has them can be named in PRIVATE_PYTHON.
"""
import json
import os
import subprocess

from measure import output
from setting import build, cores, folder, here
from table import Table

NETWORK, PX, BATCH, COPIES, ROUNDS = "unet_small", 32, 32, 4, 2
THREADS = min(2, len(cores))
PYTHON = os.environ.get("PRIVATE_PYTHON")


def python():
    """One with Opacus, in a folder of its own."""
    if PYTHON:
        return PYTHON
    venv = os.path.join(folder, "opacus")
    if not os.path.exists(os.path.join(venv, "bin", "python")):
        subprocess.run(["/usr/bin/python3", "-m", "venv", venv], check=True)
        subprocess.run([os.path.join(venv, "bin", "pip"), "install", "-q", "torch", "opacus"], check=True)
    return os.path.join(venv, "bin", "python")


def ours(copies):
    return json.loads(output([os.path.join(build, "private_time"), NETWORK, str(PX), str(BATCH), str(copies),
                              str(THREADS), "2"], THREADS))


def plain():
    return json.loads(output([os.path.join(build, "denoiser_time"), NETWORK, str(PX), str(BATCH), str(THREADS), "2"],
                             THREADS))


def opacus(mode):
    return json.loads(output([python(), "-W", "ignore", os.path.join(here, "peers", "opacus_unet.py"), NETWORK, str(PX),
                              str(BATCH), str(THREADS), "2", mode], THREADS))


def better(a, b):
    return b if a is None or b["seconds"] < a["seconds"] else a


table = Table("private", folder)
own, copied, bare, peers = None, None, None, {}
for _ in range(ROUNDS):  # take turns, so that a slow moment affects all alike
    own, copied, bare = better(own, ours(1)), better(copied, ours(COPIES)), better(bare, plain())
    for mode in ("hooks", "ew", "ghost"):
        try:
            peers[mode] = better(peers.get(mode), opacus(mode))
        except subprocess.CalledProcessError:
            print(f"Opacus cannot do this network in the mode {mode}")
mode, peer = min(peers.items(), key=lambda item: item[1]["seconds"])
name = f"{NETWORK} {PX} px, {BATCH} patches, {THREADS} threads"
table.add(name, "patches/s", BATCH / own["seconds"], BATCH / peer["seconds"], f"Opacus ({mode})")
table.add(f"{name}, {COPIES} copies each", "copies/s", COPIES * BATCH / copied["seconds"], BATCH / peer["seconds"],
          f"Opacus ({mode}), one sample per copy")
table.add(name + ", memory", "MB", own["peak_mb"], peer["peak_mb"], f"Opacus ({mode})", less_is_better=True)
table.add(name + ", against no privacy", "patches/s", BATCH / own["seconds"], BATCH / bare["seconds"],
          "microtome without privacy")
for mode, peer in peers.items():
    print(f"Opacus {mode}: {BATCH / peer['seconds']:.2f} patches/s, {peer['peak_mb']:.0f} MB")
table.finish()
