#!/usr/bin/env python3
"""exact.py GRADIENTS [study FOLDER]: how far gradients of streamed networks are from those that PyTorch computes in
double precision from the same weights and pixels, beside the gradients of the network run whole: at most 1.5 times as
far, for every network, head, size and tile size listed here. And bit by bit: with strips in memory and in a file, on
one thread and on two. With one cell too few of its neighbours, in any layer, a tile must fail (short_axis.c). GRADIENTS
is the program of gradients.c.

Without more, the cases of a test (seconds each); `study` runs all of them and writes FOLDER/exact.json.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
try:
    import numpy
    import torch
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint
    from torchvision import models
except ImportError:
    print("skipped: PyTorch and torchvision are not installed")
    sys.exit(77)

GRADIENTS = sys.argv[1]
LIMIT = 1.5
OUTPUT_GRADIENT = torch.tensor([[1, -0.5, 0.25]], dtype=torch.float64)  # as in gradients.c
# network, head, height, width, tiles in px
TEST = [("resnet18", "mean", 419, 547, [256]), ("resnet18", "max", 335, 419, [256]),
        ("googlenet", "attention", 335, 419, [256])]
STUDY = [("resnet18", "mean", 701, 833, [256, 512]),
         ("resnet18", "mean", 2177, 2307, [256, 1024, 2048]),
         ("resnet18", "attention", 701, 833, [256, 512]),
         ("resnet18", "max", 701, 833, [256, 512]),
         ("resnet34", "mean", 701, 833, [256, 512]),
         ("resnet34", "attention", 419, 547, [256]),
         ("resnet34", "max", 419, 547, [256]),
         ("resnet50", "mean", 701, 833, [256, 512]),
         ("resnet50", "attention", 419, 547, [256]),
         ("resnet50", "max", 419, 547, [256]),
         ("googlenet", "mean", 701, 833, [256, 512]),
         ("googlenet", "attention", 419, 547, [256]),
         ("googlenet", "max", 419, 547, [256]),
         ("googlenet", "max", 701, 833, [256, 512]),
         ("inception_v3", "mean", 1001, 1103, [256]),
         ("inception_v3", "attention", 701, 803, [256]),
         ("inception_v3", "max", 701, 803, [256]),
         ("densenet121", "mean", 1201, 1301, [256]),
         ("densenet121", "attention", 1089, 1121, [256]),
         ("densenet121", "max", 1089, 1121, [256])]
SHORT_EDGES = [0, 1, 2, 9, 17]  # of ResNet-18: the first convolution, the pooling, and others up to the last block
LARGE_PX = 600_000  # beyond this PyTorch computes activations twice instead of keeping them


def read_safetensors(path):
    with open(path, "rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        data = stream.read()
    header.pop("__metadata__", None)
    return {name: torch.from_numpy(numpy.frombuffer(data[slice(*entry["data_offsets"])], numpy.float32)
                                   .reshape(entry["shape"]).copy()) for name, entry in header.items()}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = dict(dtype="F32", shape=list(tensor.shape), data_offsets=[at, at + 4 * tensor.numel()])
        at += 4 * tensor.numel()
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            out.write(tensor.contiguous().numpy().tobytes())


class Attention(torch.nn.Module):
    """Gated attention: the mean of all cells, weighted by softmax(w (tanh(V x) sigmoid(U x)))."""

    def __init__(self, channels, hidden):
        super().__init__()
        self.v, self.u = torch.nn.Conv2d(channels, hidden, 1), torch.nn.Conv2d(channels, hidden, 1)
        self.w = torch.nn.Conv2d(hidden, 1, 1, bias=False)

    def forward(self, x):
        scores = self.w(torch.tanh(self.v(x)) * torch.sigmoid(self.u(x)))
        return (x * scores.flatten(1).softmax(1).view_as(scores)).sum((2, 3), keepdim=True)


class Largest(torch.nn.Module):
    def forward(self, x):
        return x.flatten(2).max(-1).values[:, :, None, None]


class Twice(torch.nn.Module):
    """A part of a network whose activations are computed again in the backward pass."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False) if x.requires_grad else self.inner(x)


def densenet_forward(self, x):
    return self.classifier(torch.flatten(self.avgpool(functional.relu(self.features(x))), 1))


def make(network):
    """torchvision's network, pooled at its end by the module `avgpool`."""
    if network in ("googlenet", "inception_v3"):
        return getattr(models, network)(num_classes=3, aux_logits=False, init_weights=False)
    model = getattr(models, network)(num_classes=3)
    if network.startswith("densenet"):
        model.avgpool = torch.nn.AdaptiveAvgPool2d(1)
        model.forward = densenet_forward.__get__(model)
    return model


def calibrate(model, image, kinks):
    """Statistics of batch norm from this image, and some variety, so that all layers matter. Where rounding moves a
    value across the kink of a ReLU, its gradient appears or disappears as a whole: of a network with random weights
    1e-3 to 1e-2, thousands of times the rounding itself, and no two computations agree on which. Unless `kinks`, the
    biases of batch norm keep values away from there: most channels are above 0 nearly everywhere, some below."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1
    generator = torch.Generator().manual_seed(1)
    for norm in norms:
        if kinks:
            norm.weight.data.uniform_(0.5, 1.5, generator=generator)
            norm.bias.data.normal_(0, 0.2, generator=generator)
        else:
            norm.weight.data.uniform_(0.5, 1, generator=generator)
            norm.bias.data.uniform_(3.5, 5, generator=generator)
            norm.bias.data[::8] *= -1
    with torch.no_grad():
        model.train()(image)
    model.eval()


def keep_less(module):
    """Wraps blocks in Twice."""
    for name, child in list(module.named_children()):
        if isinstance(child, torch.nn.Sequential):
            keep_less(child)
        elif list(child.children()) and name != "avgpool":
            setattr(module, name, Twice(child))


def load(network, head, state):
    """The weights of the head are called head.* in ours, avgpool.* here."""
    model = make(network)
    if head == "max":
        model.avgpool = Largest()
    elif head == "attention":
        model.avgpool = Attention(state["head.v.weight"].shape[1], state["head.v.weight"].shape[0])
    model.load_state_dict({name.replace("head.", "avgpool."): value for name, value in state.items()}, strict=False)
    return model


def gradients(network, head, state, image, dtype):
    """Outputs, and gradients by our names."""
    model = load(network, head, state)
    model = model.to(dtype).eval()
    if image.shape[2] * image.shape[3] > LARGE_PX:
        keep_less(model)
    outputs = model(image.to(dtype))
    outputs.backward(OUTPUT_GRADIENT.to(dtype))
    return outputs.detach().numpy(), {name.replace(".inner", "").replace("avgpool.", "head."): parameter.grad.numpy()
                                      for name, parameter in model.named_parameters()}


class Case:
    """One network, head and size: its files, PyTorch's gradient in double and ours, plain."""

    def __init__(self, folder, network, head, height, width, kinks=False):
        self.folder, self.network, self.head, self.size = folder, network, head, (height, width)
        self.weights = os.path.join(folder, "weights.safetensors")
        initial, pixels = os.path.join(folder, "initial.safetensors"), os.path.join(folder, "image")
        self.ours("initial.safetensors", weights=None, image=pixels)
        image = torch.from_numpy(numpy.fromfile(pixels, numpy.float32).reshape(1, 3, height, width))
        state = read_safetensors(initial)
        model = load(network, head, state)
        calibrate(model, image[:, :, :384, :384], kinks)
        known = {name.replace("avgpool.", "head."): value for name, value in model.state_dict().items()}
        state = {name: known.get(name, value) for name, value in state.items()}
        write_safetensors(self.weights, state)
        self.outputs, self.double = gradients(network, head, state, image, torch.float64)
        self.plain = self.errors(self.ours("plain", tile=0)[0])

    def ours(self, name, program=GRADIENTS, **settings):
        """The gradients of our program, as bytes, and what it printed. budget=1: the least that it names."""
        words = dict(network=self.network, head=self.head, height=self.size[0], width=self.size[1], threads=2,
                     weights=self.weights, out=os.path.join(self.folder, name))
        words.update(settings)
        run = subprocess.run([program] + [f"{key}={value}" for key, value in words.items() if value is not None],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        least = re.search(r"needs at least (\d+) MB", run.stderr)
        if run.returncode and least and words.get("budget") == 1:
            return self.ours(name, program, **{**settings, "budget": least.group(1)})
        if run.returncode:
            sys.exit(f"{self.network}: {program} failed: {run.stderr}")
        with open(words["out"], "rb") as stream:
            return stream.read(), json.loads(run.stdout) if run.stdout else {}

    def errors(self, data):
        """|ours - double| and |double| of every parameter."""
        floats, at, result = numpy.frombuffer(data, numpy.float32).astype(float), 0, {}
        with open(os.path.join(self.folder, "plain.txt")) as stream:
            for line in stream:
                name, count = line.split()
                reference = self.double[name].ravel()
                assert int(count) == reference.size, name
                result[name] = (numpy.linalg.norm(floats[at: at + reference.size] - reference),
                                numpy.linalg.norm(reference))
                at += reference.size
        assert at == floats.size and len(result) == len(self.double)
        return result


def total(errors):
    """|ours - double| / |double| over all parameters."""
    return numpy.linalg.norm([error for error, _ in errors.values()]) / \
        numpy.linalg.norm([norm for _, norm in errors.values()])


def alike(errors):
    """The same of every parameter by itself, their quadratic mean: large gradients do not hide small ones."""
    return numpy.sqrt(numpy.mean([(error / norm) ** 2 for error, norm in errors.values() if norm > 0]))


def compare(case, data, did, tile):
    """A row of the table."""
    errors = case.errors(data)
    ratio, ratio_alike = total(errors) / total(case.plain), alike(errors) / alike(case.plain)
    worst, where = 0, ""
    for name, (error, _) in errors.items():
        plain = max(case.plain[name][0], 1e-30)
        if error / plain > worst:
            worst, where = error / plain, name
    row = dict(network=case.network, head=case.head, height=case.size[0], width=case.size[1], tile_px=did["tile_px"],
               asked_px=tile, tiles=did["tiles_down"] * did["tiles_across"], skipped=did["tiles_skipped"],
               plain=total(case.plain), stream=total(errors), ratio=ratio,
               plain_alike=alike(case.plain), stream_alike=alike(errors), ratio_alike=ratio_alike,
               worst_ratio=worst, worst_layer=where)
    print(f"{case.network:12} {case.head:9} {case.size[0]:5} x {case.size[1]:<5} tile {did['tile_px']:5} "
          f"({row['tiles']:3} tiles): plain {row['plain']:.2e}, stream {row['stream']:.2e}, {ratio:.2f}x; by layer "
          f"{row['plain_alike']:.2e}, {row['stream_alike']:.2e}, {ratio_alike:.2f}x, worst {worst:.2f}x {where}",
          flush=True)
    return row


def unnoticed(case, tile):
    """How many of these layers could have one cell too few of their neighbours without anybody noticing."""
    failures = 0
    for edge in SHORT_EDGES:
        os.environ["SHORT_EDGE"] = str(edge)
        errors = case.errors(case.ours("short", GRADIENTS + "_short", tile=tile)[0])
        ratio = total(errors) / total(case.plain)
        print(f"  window {edge} one cell short: {total(errors):.1e}, {ratio:.1e}x", flush=True)
        failures += ratio <= LIMIT
    os.environ["SHORT_EDGE"] = "-1"
    right = case.ours("short", GRADIENTS + "_short", tile=tile)[0] == case.ours("stream", tile=tile)[0]
    if failures or not right:
        print("  FAILED: a mistake that was not noticed, or one where there is none")
    return failures + (not right)


def check(network, head, height, width, tiles, bits):
    """Rows, and the number of failures."""
    folder = tempfile.mkdtemp(dir=os.environ.get("SCRATCH"))
    case, rows, failures = Case(folder, network, head, height, width), [], 0
    for tile in tiles:
        data, did = case.ours("stream", tile=tile)
        rows.append(compare(case, data, did, tile))
        if not max(rows[-1]["ratio"], rows[-1]["ratio_alike"]) <= LIMIT or rows[-1]["tiles"] < 2:
            print("  FAILED: more than one tile and at most", LIMIT, "times the error of plain are expected")
            failures += 1
        if not bits:
            continue
        if case.ours("alone", tile=tile, threads=1)[0] != data:
            print("  FAILED: other bits on one thread")
            failures += 1
        spilled, did = case.ours("spilled", tile=tile, spill=folder, budget=1)
        if spilled != data or did["spilled"] == 0:
            print("  FAILED: other bits with strips in a file, or nothing was spilled")
            failures += 1
        failures += unnoticed(case, tile)
    shutil.rmtree(folder)
    return rows, failures


def main():
    study = sys.argv[2:3] == ["study"]
    rows, failures = [], 0
    for number, (network, head, height, width, tiles) in enumerate(STUDY if study else TEST):
        more, failed = check(network, head, height, width, tiles, bits=number == 0)
        rows, failures = rows + more, failures + failed
        if study:
            with open(os.path.join(sys.argv[3], "exact.json"), "w") as out:
                json.dump(rows, out, indent=2)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
