"""Diffusion: training steps and sampling of the U-Nets against PyTorch 2, on the same pinned cores.

    PYTHONPATH=bench python3 bench/bench_synth.py BUILD [WORD...]

A training step is forward, the gradient of a squared error and backward, without the optimizer; of sampling, one
forward pass for a batch. PyTorch runs eager and compiled, eager also with convolutions in its own fast layout; the
fastest counts. The target is half its time. WORDs select cases by what their names contain. Before, both compute the same step from the same weights: outputs and
gradients must agree to 1e-4.

Then one step of a network of more than 200 million parameters at 256 x 256 px with recomputation, alone: its time and
its memory.

PyTorch is installed into BUILD/bench/torch, an environment of several GB, if PyPI can be reached; otherwise its rows
are omitted with a message. UNET_PYTHON names an interpreter that already has it.
"""
import json
import os
import subprocess
import sys
import venv

from measure import output
from setting import build, cores, folder, here
from table import Table

# name, network, px, batch, threads, mode, repeats of one run
CASES = [("training step of unet_small, 32 px, batch 16", "unet_small", 32, 16, 1, "train", 5),
         ("training step of unet_small, 32 px, batch 16", "unet_small", 32, 16, 2, "train", 5),
         ("training step of unet_small, 32 px, batch 64", "unet_small", 32, 64, 1, "train", 2),
         ("training step of unet_small, 32 px, batch 64", "unet_small", 32, 64, 2, "train", 2),
         ("training step of unet_small, 64 px, batch 16", "unet_small", 64, 16, 2, "train", 2),
         ("training step of unet, 64 px, batch 8", "unet", 64, 8, 2, "train", 2),
         ("sampling with unet_small, 32 px, batch 16", "unet_small", 32, 16, 1, "infer", 10),
         ("sampling with unet_small, 32 px, batch 16", "unet_small", 32, 16, 2, "infer", 10)]
WAYS = ["eager", "eager-last", "compiled"]
ROUNDS = 3
LARGE = ("unet_large", 256)
words = sys.argv[2:]


def torch_python():
    """The interpreter that has PyTorch 2, or None."""
    home = os.path.join(folder, "torch")
    python = os.environ.get("UNET_PYTHON", os.path.join(home, "bin", "python"))
    check = [python, "-c", "import torch, safetensors; assert torch.__version__ >= '2'"]
    if not os.path.exists(python):
        venv.create(home, with_pip=True)
    if subprocess.run(check, stderr=subprocess.DEVNULL).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "safetensors", "numpy", "setuptools"])
    if subprocess.run(check, stderr=subprocess.DEVNULL).returncode:
        print("PyTorch 2 cannot be installed here: its rows are omitted")
        return None
    return python


def ours(network, px, batch, threads, mode, repeats, *options):
    infer = ["--infer"] if mode == "infer" else []
    return json.loads(output([os.path.join(build, "denoiser_time"), network, str(px), str(batch), str(threads),
                              str(repeats), *infer, *options], threads))


def torch(python, network, px, batch, threads, mode, repeats, way, *file):
    return json.loads(output([python, os.path.join(here, "peers", "torch_unet.py"), network, str(px), str(batch),
                              str(threads), str(repeats), way, mode, *file], threads).splitlines()[-1])


def agree(python):
    file = os.path.join(folder, "unet.safetensors")
    for network, px in [("unet_small", 32), ("unet", 32)]:
        ours(network, px, 2, 1, "train", 1, "--write", file)
        errors = torch(python, network, px, 2, 1, "train", 0, "eager", file)
        print(f"{network}: the output differs by {errors['output_error']:.1e}, a gradient by at most "
              f"{errors['gradient_error']:.1e}")
        if max(errors["output_error"], errors["gradient_error"]) > 1e-4:
            raise SystemExit(f"{network}: not the same network as PyTorch's")
    os.remove(file)


table = Table("synth", folder)
python = torch_python()
if python:
    agree(python)
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__.split('+')[0])"], text=True,
                             stdout=subprocess.PIPE, check=True).stdout.strip()
    for name, network, px, batch, threads, mode, repeats in CASES:
        case = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
        if threads > len(cores) or (words and not any(word in case for word in words)):
            continue
        mine, theirs = [], {way: [] for way in WAYS}
        for turn in range(ROUNDS):  # take turns, so that a slow moment affects all alike
            mine.append(ours(network, px, batch, threads, mode, repeats)["seconds"])
            for way in WAYS if turn == 0 else WAYS[:-1]:  # to compile takes minutes
                theirs[way].append(torch(python, network, px, batch, threads, mode, repeats, way)["seconds"])
        fastest = min(theirs, key=lambda way: min(theirs[way]))
        table.add(case, "s", min(mine), min(theirs[fastest]), f"PyTorch {version}, {fastest}", less_is_better=True)
        print(f"{case}: ours {min(mine):.3f} s, " + ", ".join(f"{way} {min(theirs[way]):.3f} s" for way in WAYS))
network, px = LARGE
if not words or network in words:
    step = ours(network, px, 1, min(2, len(cores)), "train", 1, "--recompute")
    print(f"{network}, {step['parameters'] / 1e6:.0f} M parameters, one step at {px} px with recomputation: "
          f"{step['seconds']:.1f} s, {step['peak_mb'] / 1e3:.1f} GB")
if table.rows:
    table.finish()
