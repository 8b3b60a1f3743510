#!/usr/bin/python3
"""What PyTorch gives for every network of the zoo, for tests/unit/test_zoo.c.

    make_zoo_golden.py [--out DIR] [--float] [CASE...]

Weights, inputs and the gradient of the loss come from numbers(name, n), which the C test computes
too, so no weights are stored. PyTorch runs in double precision. For every case (cases.txt):

CASE.npy  a record for every parameter, running statistic, input and output: the FNV-1a hash of
          "name [shape]"; then, in eval and in train mode, the Euclidean norm and the dot product
          with numbers("dot:" + name). Of parameters and inputs it is the gradient that counts, of
          running statistics the value after a forward pass in train mode, of outputs the value.
          slack: see below.
CASE.txt  outputs and gradients of a few small parameters in full: mode, kind, name, values.
CASE.bin  the same records with all their floats, eval then train: made by check_zoo.py only.
--float   only prints how far PyTorch's own float32 is from its float64.

ReLU and max pooling have kinks: an activation within rounding of 0, or of its neighbour in a
window, may fall on the other side in float32, and then the gradient differs by what that one
element carries, whoever computes it. Two things keep the comparison sharp. In train mode, where
batch norm makes deep random networks chaotic, norms have a small scale and a large bias
(first_value), so that hardly any activation is near 0. And the gradient is computed twice more
with every activation within MARGIN of a kink put on one side and on the other: the relative change
of a gradient is its slack, 0 for most.
"""
import argparse
import os
import sys
from collections import namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import AUDIOS, MODELS, TEXTS, UNet, length  # noqa: E402

Case = namedtuple("Case", "case network batch channels height width classes auxiliary conditions "
                          "gain depth", defaults=(0,))
RECORD = np.dtype([("key", "<u8"), ("eval", "<f4", (2,)), ("train", "<f4", (2,)),
                   ("slack", "<f2", (2,))])
MARGIN = 5e-6  # of the root mean square of an activation: several times float32's error here
NEVER_ADDED = ("bn1.bias", ".bn.bias", "norm1.bias", "norm2.bias")  # norms before no residual sum
BLOCK = 1 << 15  # numbers made at a time, within the cache
SMALL = 64  # an output with at most so many values is written in full, and so are two gradients


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def mixed(first, past, key):
    """SplitMix64: the numbers first to past - 1 of the stream of a key."""
    with np.errstate(over="ignore"):
        z = np.arange(first, past, dtype=np.uint64)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(key)
        for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1):
            z ^= z >> np.uint64(shift)
            z *= np.uint64(factor)
    return z


def numbers(name, n):
    """n numbers in [-1, 1), exact in float32: SplitMix64 of the hash of the name and the index."""
    key, u = fnv(name), np.empty(n, np.float32)
    for at in range(0, n, BLOCK):
        z = mixed(at + 1, min(at + BLOCK, n) + 1, key)
        z >>= np.uint64(40)
        u[at:at + BLOCK] = z  # below 2^24: exact, and so is what follows
    u /= np.float32(2**23)
    u -= np.float32(1)
    return u


def first_value(name, shape, gain, held):
    """The float32 values of a parameter or running statistic. held: activations off the kinks."""
    u = numbers(name, int(np.prod(shape))).astype(np.float64)
    if name.endswith("running_var"):
        u = 1 + 0.5 * u
    elif len(shape) == 1 and held and name.endswith("weight"):
        u = 0.15 + 0.05 * u
    elif len(shape) == 1 and held and name.endswith("bias"):
        u = 0.75 + 0.25 * u
        if name.endswith(NEVER_ADDED):
            u[3::4] *= -1
        if name.endswith("conv2d.bias"):  # no norm stands before this residual sum
            u += 1.25
    elif len(shape) == 1:
        u = 0.25 * u + (1 if name.endswith("weight") else 0)
    elif len(shape) == 3:  # tokens and positions
        u = 0.5 * u
    else:
        u = u * (gain * np.sqrt(3.0 / np.prod(shape[1:])))
    return u.astype(np.float32).reshape(shape)


class NoDraws:
    """Within it, PyTorch's layers begin with what is in memory: first_value sets all of it."""

    def __enter__(self):
        names = ("uniform_", "normal_")
        self.kept = {name: getattr(torch.Tensor, name) for name in names}
        for name in names:
            setattr(torch.Tensor, name, lambda tensor, *args, **kwargs: tensor)

    def __exit__(self, *args):
        for name, draw in self.kept.items():
            setattr(torch.Tensor, name, draw)


def read_cases():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.txt")
    with open(path) as stream:
        rows = [line.split() for line in stream if line.strip() and line[0] != "#"]
    return [Case(r[0], r[1], *map(int, r[2:9]), float(r[9]), int(r[10]) if len(r) > 10 else 0) for r in rows]


def make_model(case, mode, dtype):
    with NoDraws():
        model = MODELS[case.network](case).to(dtype)
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    public = getattr(model, "public_name", lambda name: name)
    names = {public(key): tensor for key, tensor in model.state_dict(keep_vars=True).items()
             if not key.endswith("num_batches_tracked")}
    held = mode == "train" and any(name.endswith("running_mean") for name in names)
    with torch.no_grad():
        for name, tensor in names.items():
            values = first_value(name, tuple(tensor.shape), case.gain, held)
            tensor.copy_(torch.from_numpy(values))
    return model, names


class Kinks:
    """Within it, ReLU and max pooling put what is near a kink on one side."""

    def __init__(self, side):
        self.side, self.random = side, torch.Generator().manual_seed(side + 2)

    def relu(self, x, inplace=False):
        margin = MARGIN * x.detach().square().mean().sqrt()
        return x * (x.detach() > self.side * margin)

    def max_pool2d(self, x, *args, **kwargs):
        kwargs.pop("return_indices", None)
        margin = MARGIN * x.detach().square().mean().sqrt()
        noise = margin * torch.rand(x.shape, generator=self.random, dtype=x.dtype)
        _, where = self.pool(x.detach() + noise, *args, return_indices=True, **kwargs)
        return x.flatten(2).gather(2, where.flatten(2)).view(where.shape)

    def __enter__(self):
        self.kept, self.pool = (F.relu, F.max_pool2d), F.max_pool2d
        F.relu, F.max_pool2d = self.relu, self.max_pool2d

    def __exit__(self, *args):
        F.relu, F.max_pool2d = self.kept


def make_texts(case, dtype):
    """Ids from 2 on (0 and 1 are for padding), and a mask; the first text is not padded."""
    shape = (case.batch, case.height)
    ids = np.floor((numbers("input", int(np.prod(shape))) + np.float32(1)) / np.float32(2) * np.float32(case.channels - 2)) + 2
    mask = np.zeros(shape)
    for i in range(case.batch):
        mask[i, :length(case, i)] = 1
    return {name: torch.from_numpy(values.reshape(shape)).to(dtype).requires_grad_()
            for name, values in (("input", ids), ("mask", mask))}


def make_audio(case, dtype):
    """Frames, and a mask of every four of them."""
    shapes = {"input": (case.batch, case.height, case.channels), "mask": (case.batch, case.height // 4)}
    mask = np.zeros(shapes["mask"])
    for i in range(case.batch):
        mask[i, :length(case, i)] = 1
    frames = numbers("input", int(np.prod(shapes["input"])))
    return {name: torch.from_numpy(values.reshape(shapes[name])).to(dtype).requires_grad_()
            for name, values in (("input", frames), ("mask", mask))}


def make_inputs(case, model, dtype):
    if case.network in AUDIOS:
        return make_audio(case, dtype)
    if case.network in TEXTS:
        return make_texts(case, dtype)
    if case.network == "transformer_encoder":
        shapes = {"input": (case.batch, case.height, case.channels)}
    else:
        shapes = {"input": (case.batch, case.channels, case.height, case.width)}
    if isinstance(model, UNet):
        shapes["time"] = (case.batch, model.width)
    if case.conditions:
        shapes["condition"] = (case.batch, case.conditions)
    return {name: torch.from_numpy(numbers(name, int(np.prod(shape))).reshape(shape)).to(
        dtype).requires_grad_() for name, shape in shapes.items()}


def named_outputs(case, result):
    if isinstance(result, dict):
        return result
    if case.network == "googlenet" and isinstance(result, tuple):
        # torchvision mixes up its names: aux_logits2 is what the head aux1 gives.
        return {"logits": result.logits, "aux2": result.aux_logits1, "aux1": result.aux_logits2}
    if case.network == "inception_v3" and isinstance(result, tuple):
        return {"logits": result.logits, "aux": result.aux_logits}
    return {"noise" if case.network.startswith("unet") else "logits": result}


def run(case, mode, dtype):
    """name -> (kind, shape, values) of all that is compared, in a fixed order."""
    model, names = make_model(case, mode, dtype)
    model.train(mode == "train")
    inputs = make_inputs(case, model, dtype)
    outputs = named_outputs(case, model(*inputs.values()))
    loss = sum((value * torch.from_numpy(numbers("loss:" + name, value.numel())).to(dtype).view(
        value.shape)).sum() for name, value in outputs.items())
    loss.backward()
    found = {}
    for name, tensor in names.items():
        if isinstance(tensor, nn.Parameter):
            values = tensor.grad if tensor.grad is not None else torch.zeros_like(tensor)
            found[name] = ("gradient", values)
        else:
            found[name] = ("statistic", tensor if mode == "train" else torch.zeros_like(tensor))
    for name, tensor in inputs.items():
        found["input " + name] = (
            "gradient", tensor.grad if tensor.grad is not None else torch.zeros_like(tensor))
    for name, tensor in outputs.items():
        found["output " + name] = ("output", tensor.detach())
    return {name: (kind, tuple(t.shape), t.detach().numpy().astype(np.float64, copy=False).ravel())
            for name, (kind, t) in found.items()}


def write_small(path, both):
    flat = [n for n, (kind, shape, v) in both["train"].items()
            if kind == "gradient" and len(shape) == 1 and len(v) <= SMALL]
    chosen = flat[:1] + flat[-1:]
    with open(path, "w") as stream:
        for mode, found in both.items():
            for name, (kind, _, values) in found.items():
                if (kind == "output" and len(values) <= SMALL) or name in chosen:
                    text = " ".join("%.8g" % v for v in values)
                    stream.write(f"{mode} {name.split()[-1]} {len(values)} {text}\n")


def slacks(case, mode, found):
    """name -> relative change of a gradient if all that is near a kink lies on one side."""
    largest = {name: 0.0 for name in found}
    zero = 1e-9 * max(np.linalg.norm(v) for k, _, v in found.values() if k == "gradient")
    for side in (-1, 1):
        with Kinks(side):
            other = run(case, mode, torch.float64)
        for name, (kind, _, values) in found.items():
            norm = np.linalg.norm(values)
            if kind == "gradient" and norm > zero:
                change = np.linalg.norm(other[name][2] - values) / norm
                largest[name] = max(largest[name], change if change > 1e-6 else 0.0)
    return largest


def run_both(case):
    return {mode: run(case, mode, torch.float64) for mode in ("eval", "train")}


def make_records(both, stream=None):
    """CASE.npy without slack; stream takes CASE.bin."""
    records = np.zeros(len(both["train"]), RECORD)
    for record, (name, (_, shape, values)) in zip(records, both["train"].items()):
        record["key"] = fnv(f"{name} {list(shape)}")
        # Auxiliary heads give nothing in eval mode.
        of_eval = both["eval"].get(name, (None, None, np.zeros(len(values))))[2]
        dots = numbers("dot:" + name, len(values)).astype(np.float64)
        for mode, of_mode in ("eval", of_eval), ("train", values):
            record[mode] = np.linalg.norm(of_mode), np.dot(of_mode, dots)
            if stream:
                stream.write(of_mode.astype("<f4"))
    return records


def make(case, out):
    both = run_both(case)
    slack = {mode: slacks(case, mode, both[mode]) for mode in both}
    records = make_records(both)
    for record, name in zip(records, both["train"]):
        record["slack"] = slack["eval"].get(name, 0), slack["train"][name]
    np.save(os.path.join(out, case.case + ".npy"), records)
    write_small(os.path.join(out, case.case + ".txt"), both)
    for mode in both:
        gradients = {n: np.linalg.norm(v) for n, (k, _, v) in both[mode].items()
                     if k == "gradient"}
        print(case.case, mode, "outputs rms %s, gradients %.1e to %.1e, slack %.1e, %d of %d" % (
            ["%.2g" % np.sqrt(np.mean(v**2)) for k, _, v in both[mode].values() if k == "output"],
            min(gradients.values()), max(gradients.values()),
            max(slack[mode].values()), sum(slack[mode][n] > 1e-3 for n in gradients), len(gradients)), flush=True)


def compare_float(case):
    for mode in ("eval", "train"):
        exact, plain = run(case, mode, torch.float64), run(case, mode, torch.float32)
        slack = slacks(case, mode, exact)
        largest = max(np.linalg.norm(v) for k, _, v in exact.values() if k == "gradient")
        worst = {}
        for name, (kind, _, values) in exact.items():
            norm = np.linalg.norm(values)
            error = np.linalg.norm(plain[name][2] - values) / (norm + 1e-3 * largest)
            kind += "" if slack[name] < 1e-3 else " with slack"
            worst[kind] = max(worst.get(kind, (0, "")), (error, name))
        print(case.case, mode, {k: "%.1e %s" % w for k, w in worst.items()}, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--float", action="store_true")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    torch.manual_seed(0)
    for case in read_cases():
        if case.network not in MODELS:
            print(case.case, "left out: timm or transformers is not installed")
        elif not args.cases or case.case in args.cases:
            compare_float(case) if args.float else make(case, args.out)


if __name__ == "__main__":
    main()
