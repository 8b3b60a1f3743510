"""The peer: the sliding window as the published CPU system does it, one core's work in Python.

    windows.py torch|onnxruntime|openvino MODEL SLIDE X,Y...

MODEL is googlenet or scan_small for torch, a .onnx file for the others. For every tile of 224 x 224
px at X,Y: read it with a margin of 112 px through OpenSlide, cut the 14 x 14 windows of stride 16,
score them in batches of 14. Prints the mean seconds of a tile.
"""
import sys
import time

import numpy
import openslide

STRIDE, WINDOW, ACROSS = 16, 224, 14


def torch_model(name):
    import torch
    import torchvision
    torch.set_num_threads(1)

    class Block(torch.nn.Module):
        """A residual block of the scan family: no padding, the shortcut is cropped."""

        def __init__(self, before, after, stride):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(before, after, 3, stride, bias=False)
            self.conv2 = torch.nn.Conv2d(after, after, 3, bias=False)
            self.bn1, self.bn2 = torch.nn.BatchNorm2d(after), torch.nn.BatchNorm2d(after)
            self.cut = 3 if stride == 2 else 2
            self.down = None
            if stride != 1 or before != after:
                self.down = torch.nn.Sequential(torch.nn.Conv2d(before, after, 1, stride, bias=False),
                                                torch.nn.BatchNorm2d(after))

        def forward(self, x):
            y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            x = x[:, :, self.cut:-self.cut, self.cut:-self.cut]
            return torch.relu(y + (self.down(x) if self.down else x))

    def scan_small():
        layers = []
        for before, after, kernel in [(3, 24, 4), (24, 32, 3)]:
            layers += [torch.nn.Conv2d(before, after, kernel, 2, bias=False), torch.nn.BatchNorm2d(after),
                       torch.nn.ReLU()]
        for before, after, stride in [(32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 160, 2), (160, 160, 1)]:
            layers.append(Block(before, after, stride))
        return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(160, 2))

    if name == "googlenet":
        model = torchvision.models.googlenet(weights=None, aux_logits=False, num_classes=2, init_weights=False)
    else:
        model = scan_small()
    model.eval()

    def run(batch):
        with torch.no_grad():
            return torch.softmax(model(torch.from_numpy(batch)), 1).numpy()
    return run


def softmax(logits):
    e = numpy.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def onnxruntime_model(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name, out = session.get_inputs()[0].name, [session.get_outputs()[0].name]
    return lambda batch: softmax(session.run(out, {name: batch})[0])


def openvino_model(path):
    import openvino
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    model = core.read_model(path)
    model.reshape([ACROSS, 3, WINDOW, WINDOW])
    request = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
    return lambda batch: softmax(request.infer({0: batch})[0])


def score_tile(slide, run, x, y):
    region = slide.read_region((x - WINDOW // 2, y - WINDOW // 2), 0, (2 * WINDOW, 2 * WINDOW)).convert("RGB")
    image = (numpy.asarray(region, numpy.float32) / 255).transpose(2, 0, 1)
    scores = numpy.zeros((ACROSS, ACROSS), numpy.float32)
    for row in range(ACROSS):
        top = row * STRIDE + STRIDE // 2
        batch = numpy.stack([image[:, top:top + WINDOW, left:left + WINDOW]
                             for left in range(STRIDE // 2, STRIDE // 2 + ACROSS * STRIDE, STRIDE)])
        scores[row] = run(batch)[:, 1]
    return scores


kind, model, path = sys.argv[1:4]
tiles = [tuple(map(int, place.split(","))) for place in sys.argv[4:]]
run = {"torch": torch_model, "onnxruntime": onnxruntime_model, "openvino": openvino_model}[kind](model)
slide = openslide.OpenSlide(path)
run(numpy.zeros((ACROSS, 3, WINDOW, WINDOW), numpy.float32))
began = time.perf_counter()
for x, y in tiles:
    score_tile(slide, run, x, y)
print((time.perf_counter() - began) / len(tiles))
