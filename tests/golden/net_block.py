#!/usr/bin/env python3
"""Writes net_block.bin: a small residual network (stem, two residual blocks, one of them with a
stride and a projection, a joined branch, mean, linear) with PyTorch 1.13: parameters, input, output
in training and in evaluation, running statistics after one step, gradients. Format: records.py."""
import torch
from torch import nn

from records import writer

torch.manual_seed(3)
record = writer("net_block.bin")


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 5, 2, 2, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = Block(16, 16, 1)
        self.layer2 = Block(16, 24, 2)
        self.branch = nn.Conv2d(24, 8, 1)
        self.fc = nn.Linear(32, 5)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        x = self.layer2(self.layer1(x))
        x = torch.cat([x, self.branch(x)], 1)
        return self.fc(x.mean((2, 3)))


net = Net().double()
for name, p in net.named_parameters():
    p.data.copy_((torch.randn(p.shape) * (0.2 if p.dim() > 1 else 0.3) + (1 if p.dim() == 1 and "weight" in name else 0)).float().double())
for name, b in net.named_buffers():
    if "running_mean" in name:
        b.copy_((torch.randn(b.shape) * 0.2).float().double())
    if "running_var" in name:
        b.copy_((torch.rand(b.shape) + 0.5).float().double())
for name, t in net.state_dict().items():
    if "num_batches" not in name:
        record("w/" + name, t)
x = torch.randn(3, 3, 37, 29).float().double()
g = torch.randn(3, 5).float().double()
record("x", x)
record("g", g)
net.eval()
record("eval", net(x))
net.train()
x.requires_grad_(True)
y = net(x)
y.backward(g)
record("train", y)
record("d/x", x.grad)
for name, p in net.named_parameters():
    record("d/" + name, p.grad)
for name, b in net.named_buffers():
    if "num_batches" not in name:
        record("after/" + name, b)
