#!/usr/bin/env python3
"""Writes small seeds for fuzz_onnx and fuzz_safetensors with Debian's PyTorch; one is a golden network."""
import json
import os
import shutil
import struct
import torch
from torch import nn

here = os.path.dirname(os.path.abspath(__file__))


class Views(nn.Module):
    def forward(self, x):
        y = x.reshape(x.shape[0], x.shape[1] // 2, 2, -1).transpose(1, 2)
        y = y.reshape(x.shape)
        return torch.cat([y[:, :, 1:, ::2], x.mean((2, 3), keepdim=True).expand(-1, -1, 7, 4)], 1)


class Resizes(nn.Module):
    def forward(self, x):
        y = nn.functional.interpolate(x, scale_factor=2)
        y = nn.functional.interpolate(y, size=(x.shape[2], x.shape[3]), mode="bilinear")
        return nn.functional.pad(y, (1, 2, 0, 1), mode="reflect").clamp(-1, 2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x):
        x = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return nn.functional.gelu(self.out((q @ k.transpose(1, 2) / 2).softmax(-1) @ v))


class Places(nn.Module):
    """What is taken from and put to known places, and functions of constants."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(1, 4, 3, 3))
        self.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, x):
        at = torch.ones(1, 8, 8).cumsum(1) / 8
        angles = torch.stack((at.sin(), at.cos()), 3).flatten(2)
        y = x + nn.functional.interpolate(self.embedding, size=(8, 8), mode="bicubic") + angles[:, :, :8].unsqueeze(1)
        y = nn.functional.normalize(y, dim=1).flip(3)
        mask = torch.ones(8, 8).tril().bool()
        z = torch.einsum("nchw,oc->nohw", y, self.weight).masked_fill(~mask, -2.0)
        z = torch.cat([z, z[:, [3, 0, 5]] ** 1.5, z.amax((2, 3), keepdim=True).expand(-1, -1, 8, 8)], 1)
        z[:, :2, 1:3] = z[:, 2:4, 1:3] + torch.sqrt(z[:, 4:6, 1:3].abs())
        return z.exp().sum(1)


CASES = {
    "conv": (nn.Sequential(nn.Conv2d(4, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                           nn.Linear(32, 2), nn.Softmax(1)), 9),
    "group": (nn.Sequential(nn.GroupNorm(2, 4), nn.SiLU(), nn.ConvTranspose2d(4, 2, 2, 2), nn.AdaptiveAvgPool2d(1),
                            nn.Hardswish(), nn.PReLU(), nn.LeakyReLU()), 14),
    "views": (Views(), 11),
    "resizes": (Resizes(), 13),
    "attention": (Attention(), 16),
    "attention_17": (Attention(), 17),
    "places": (Places(), 16),
}
for name, (net, opset) in CASES.items():
    torch.manual_seed(1)
    torch.onnx.export(net.eval(), torch.randn(1, 4, 8, 8), os.path.join(here, "fuzz_onnx", name + ".onnx"),
                      opset_version=opset, input_names=["x"], dynamic_axes={"x": {0: "n"}})


def text_field(tag, text):
    return bytes([tag, len(text)]) + text  # of less than 128 bytes


# The same with names of layers in its metadata.
with open(os.path.join(here, "fuzz_onnx", "conv.onnx"), "rb") as seed:
    model = seed.read()
entry = text_field(0x0a, b"microtome.layers") + text_field(0x12, json.dumps({
    "stem": "/2/Relu_output_0", "pool": "/3/MaxPool_output_0", "x": "/3/MaxPool_output_0"}).encode())
with open(os.path.join(here, "fuzz_onnx", "layers.onnx"), "wb") as seed:
    seed.write(model + bytes([0x72, len(entry) & 127 | 128, len(entry) >> 7]) + entry)

shutil.copyfile(os.path.join(here, "..", "..", "golden", "onnx_quantized.onnx"),
                os.path.join(here, "fuzz_onnx", "quantized.onnx"))

header = {"__metadata__": {"format": "pt"}, "conv1.weight": {"dtype": "F32", "shape": [2, 3, 1, 1], "data_offsets": [0, 24]},
          "conv1.bias": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]},
          "bn1.weight": {"dtype": "F16", "shape": [2], "data_offsets": [28, 32]}}
text = json.dumps(header).encode()
with open(os.path.join(here, "fuzz_safetensors", "conv.safetensors"), "wb") as out:
    out.write(struct.pack("<Q", len(text)) + text + bytes(range(32)))
