"""The peer: lightstream, the streaming of convolutional networks for PyTorch, on the processor.

    lightstream_time.py NETWORK SIZE TILE THREADS REPEATS [check]

One gradient of a torchvision ResNet, batch norm frozen as lightstream does it (its weights are not learnt), cross
entropy of two classes behind the mean of the last map, of a noise image of SIZE x SIZE that is in memory. Prints JSON:
the best seconds and the peak memory; with `check` also the gradient's distance from that of the network run whole. A
TILE below some 1100 px leaves no part of a gradient that is valid.
"""
import contextlib
import io
import json
import resource
import sys
import time
import warnings

import torch
import torchvision
from lightstream.core.constructor import StreamingConstructor
from lightstream.core.utils import freeze_normalization_layers
from lightstream.models.resnet.resnet import split_resnet

warnings.filterwarnings("ignore")
network, (size, tile, threads, repeats) = sys.argv[1], map(int, sys.argv[2:6])
torch.set_num_threads(threads)
torch.manual_seed(1)
whole = getattr(torchvision.models, network)(num_classes=2).eval()
image = torch.rand(1, 3, size, size) * 2 - 1
label = torch.zeros(1, dtype=torch.long)


def streaming(model):
    """The convolutional part, as lightstream's StreamingResNet makes it, but without a GPU, which that asks for."""
    body = split_resnet(model)
    constructor = StreamingConstructor(body, tile, verbose=False, deterministic=False, copy_to_gpu=False,
                                       normalize_on_gpu=False, add_keep_modules=[torch.nn.BatchNorm2d])
    constructor.statistics_on_cpu = False  # else the network is moved to the GPU afterwards
    with contextlib.redirect_stdout(io.StringIO()):
        return constructor.prepare_streaming_model()


def gradients(parameters):
    return torch.cat([parameter.grad.flatten() for parameter in parameters if parameter.requires_grad])


freeze_normalization_layers(whole)
fc = whole.fc
expected = None
if sys.argv[6:] == ["check"]:
    torch.nn.functional.cross_entropy(whole(image), label).backward()
    expected = gradients(whole.parameters())
    whole.zero_grad()
stream = streaming(whole)
freeze_normalization_layers(stream)
stream.eval()


def step():
    stream.zero_grad()
    fc.zero_grad()
    with torch.no_grad():
        features = stream(image)
    features.requires_grad = True
    torch.nn.functional.cross_entropy(fc(features.mean((2, 3))), label).backward()
    stream.backward(image, features.grad)


best = float("inf")
for _ in range(repeats):
    began = time.perf_counter()
    step()
    best = min(best, time.perf_counter() - began)
result = dict(seconds=best, peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
if expected is not None:
    got = torch.cat([gradients(stream.stream_module.parameters()), gradients(fc.parameters())])
    result["error"] = float((got - expected).norm() / expected.norm())
print(json.dumps(result))
