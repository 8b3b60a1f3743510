"""The peer of examples/idc.yaml: the same network, data, batch, epochs and schedule in PyTorch.

    torch_idc.py TRAIN.tar VAL.tar [--seed 1] [--epochs N] [--threads 2] ...

Defaults are those of examples/idc.yaml. Prints the AUC on VAL.tar of the averaged weights after the
last epoch, by the mean score of the eight ways to lay a patch, and the seconds that training took.
"""
import argparse
import io
import json
import math
import tarfile
import time

import numpy as np
import torch
import torchvision
from PIL import Image
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("train")
parser.add_argument("val")
parser.add_argument("--network", default="resnet18")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--resize", type=int, default=50)
parser.add_argument("--input", type=int, default=48)
parser.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
parser.add_argument("--rate", type=float, default=0.001)
parser.add_argument("--decay", type=float, default=0.05)
parser.add_argument("--ema", type=float, default=0.99)
parser.add_argument("--warmup", type=float, default=1)
parser.add_argument("--mixup", type=float, default=0)
parser.add_argument("--smoothing", type=float, default=0)
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def read(path):
    """Images, resized, as bytes [n, side, side, 3]; labels from the names."""
    images, labels = [], []
    with tarfile.open(path) as tar:
        for entry in tar:
            if entry.name.endswith(".png"):
                image = Image.open(io.BytesIO(tar.extractfile(entry).read())).convert("RGB")
                images.append(np.asarray(image.resize((options.resize, options.resize), Image.BILINEAR)))
                labels.append(int("_class1" in entry.name))
    return np.stack(images), torch.tensor(labels)


class Block(nn.Module):
    """Residual, without padding; see src/net/zoo/scan.c."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.cut = 3 if stride == 2 else 2
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        x = x[:, :, self.cut:-self.cut, self.cut:-self.cut]
        return F.relu(y + (self.downsample(x) if self.downsample else x))


def scan(stem, widths, counts):
    """stem: (channels, kernel, stride) of each; widths and counts of the blocks of three stages."""
    layers, channels = [], 3
    for out, kernel, stride in stem:
        layers += [nn.Conv2d(channels, out, kernel, stride, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        channels = out
    for stage, (width, count) in enumerate(zip(widths, counts)):
        for i in range(count):
            layers.append(Block(channels, width, 2 if stage > 0 and i == 0 else 1))
            channels = width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 2))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net


NETWORKS = {
    "scan_tiny": lambda: scan([(16, 8, 4)], (16, 24, 48), (0, 1, 2)),
    "scan_small": lambda: scan([(24, 4, 2), (32, 3, 2)], (32, 64, 160), (1, 2, 2)),
    "resnet18": lambda: torchvision.models.resnet18(num_classes=2),
}


def vary(image, rng):
    top, left = rng.integers(0, options.resize - options.input + 1, 2)
    image = image[top:top + options.input, left:left + options.input]
    if rng.integers(2):
        image = image[:, ::-1]
    if rng.integers(2):
        image = image[::-1]
    return np.rot90(image, rng.integers(4))


def prepare(images):
    x = torch.from_numpy(np.stack([np.ascontiguousarray(image) for image in images])).permute(0, 3, 1, 2)
    return (x.float() / 255 - MEAN) / STD


def loss_of(x, labels):
    """With mixup every patch is blended with its neighbour, and their labels alike; see src/train/mix.h."""
    if options.mixup == 0:
        return F.cross_entropy(model(x), labels, label_smoothing=options.smoothing)
    own = torch.from_numpy(rng.beta(options.mixup, options.mixup, len(x))).float()
    own = torch.maximum(own, 1 - own)
    with_ = torch.arange(len(x)) ^ 1
    y = model(own.view(-1, 1, 1, 1) * x + (1 - own).view(-1, 1, 1, 1) * x[with_])
    each = [F.cross_entropy(y, target, reduction="none", label_smoothing=options.smoothing)
            for target in (labels, labels[with_])]
    return (own * each[0] + (1 - own) * each[1]).mean()


def scores_of(x):
    """The mean over the eight ways to lay a patch."""
    ways = [way.flip(axes) for way in (x, x.transpose(2, 3)) for axes in ((), (2,), (3,), (2, 3))]
    return torch.stack([model(way).softmax(1)[:, 1] for way in ways]).mean(0)


def rate_at(epoch):
    done = (epoch - options.warmup) / max(options.epochs - options.warmup, 1e-9)
    rate = options.rate * (1 + math.cos(math.pi * min(max(done, 0), 1))) / 2
    return rate * (0.01 + 0.99 * epoch / options.warmup if epoch < options.warmup else 1)


torch.set_num_threads(options.threads)
torch.manual_seed(options.seed)
rng = np.random.default_rng(options.seed)
began = time.perf_counter()
images, labels = read(options.train)
model = NETWORKS[options.network]()
decayed = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() <= 1]
groups = [dict(params=decayed, weight_decay=options.decay), dict(params=others, weight_decay=0)]
optimizer = (torch.optim.AdamW(groups, options.rate) if options.optimizer == "adamw"
             else torch.optim.SGD(groups, options.rate, momentum=0.9, nesterov=True))
average = {name: value.clone() for name, value in model.state_dict().items()}
steps, updates = len(images) // options.batch, 0
for epoch in range(options.epochs):
    model.train()
    order = rng.permutation(len(images))
    for step in range(steps):
        chosen = order[step * options.batch:(step + 1) * options.batch]
        for group in optimizer.param_groups:
            group["lr"] = rate_at(epoch + step / steps)
        optimizer.zero_grad()
        loss_of(prepare([vary(images[i], rng) for i in chosen]), labels[chosen]).backward()
        optimizer.step()
        keep = min(options.ema, (1 + updates) / (10 + updates))
        updates += 1
        with torch.no_grad():
            for name, value in model.state_dict().items():
                if value.is_floating_point():
                    average[name].mul_(keep).add_(value, alpha=1 - keep)
seconds = time.perf_counter() - began
model.load_state_dict(average)
model.eval()
images, labels = read(options.val)
cut = (options.resize - options.input) // 2
middle = images[:, cut:cut + options.input, cut:cut + options.input]
with torch.no_grad():
    scores = torch.cat([scores_of(prepare(middle[i:i + 64])) for i in range(0, len(middle), 64)])
print(json.dumps(dict(seed=options.seed, auc=roc_auc_score(labels, scores), seconds=seconds)))
