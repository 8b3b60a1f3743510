#!/usr/bin/env python3
"""networks.py BACKEND_TEST: exports networks of torchvision with PyTorch's own exporter (both from
Debian), lays them out as ONNX's test data with PyTorch's outputs, and runs BACKEND_TEST on them.
Half of them leave the batch open, and must then hold for another one. Skipped, with a word, where
PyTorch is not installed."""
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
    from torchvision import models
except ImportError:
    print("skipped: PyTorch and torchvision are not installed")
    sys.exit(77)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def tensor_message(tensor):
    """A TensorProto of floats: dims, data_type and raw_data."""
    raw = tensor.detach().contiguous().numpy().tobytes()
    dims = b"".join(b"\x08" + varint(d) for d in tensor.shape)
    return dims + b"\x10\x01" + b"\x4a" + varint(len(raw)) + raw


class Decoder(torch.nn.Module):
    """Group norm, SiLU, transposed convolution, reflected borders, resizing."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.norm = torch.nn.GroupNorm(4, 16)
        self.up = torch.nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = torch.nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect")
        torch.nn.init.normal_(self.norm.weight)
        torch.nn.init.normal_(self.norm.bias)

    def forward(self, x):
        resize = torch.nn.functional.interpolate
        y = torch.nn.functional.silu(self.norm(self.conv(x)))
        sizes = (x.shape[2] * 2, x.shape[3] * 2)
        z = resize(y, scale_factor=2, mode="nearest")
        z = z + resize(y, size=sizes, mode="bilinear", align_corners=False)
        return self.out(self.up(y)) + z[:, :8]


class Places(torch.nn.Module):
    """What is taken from and put to known places, functions, norms, and functions of constants."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Parameter(torch.randn(1, 3, 3, 3))
        self.weight = torch.nn.Parameter(torch.randn(6, 3))
        self.scores = torch.nn.Linear(8, 8)

    def forward(self, x):
        at = torch.ones(1, 8, 8).cumsum(1) / 8
        angles = torch.stack((at.sin(), at.cos()), 3).flatten(2)
        y = torch.nn.functional.interpolate(self.embedding, size=(8, 8), mode="bicubic") + x
        y = torch.nn.functional.normalize(y + angles[:, :, :8].unsqueeze(1), dim=1).flip(3)
        mask = torch.ones(8, 8).tril().bool()
        z = torch.einsum("nchw,oc->nohw", y, self.weight)
        z = self.scores(z).masked_fill(~mask, -float("inf")).softmax(3) @ z
        z = torch.cat([z, z[:, [3, 0, 5]].abs() ** 1.5, z.amax((2, 3), keepdim=True).expand(-1, -1, 8, 8)], 1)
        z[:, :2, 1:3] = z[:, 2:4, 1:3] + torch.sqrt(z[:, 4:6, 1:3].abs() + 1)
        z = torch.nn.functional.interpolate(z, size=(5, 11), mode="bicubic", align_corners=False)
        z = torch.maximum(z, torch.nn.functional.pad(z, (1, 0), value=0.25)[..., :11])
        z = torch.nn.functional.mish(z) + torch.nn.functional.elu(z) + torch.nn.functional.softplus(z)
        return torch.erf(z).exp().sum(1) + 1 / (z.norm(dim=1) + 0.1)


def vit():
    return models.VisionTransformer(64, 16, 2, 4, 64, 128)


# name, maker, input, opset, batch left open
CASES = [
    ("resnet18", models.resnet18, (1, 3, 64, 64), 7, False),
    ("googlenet", lambda: models.googlenet(aux_logits=False, init_weights=False), (1, 3, 75, 64), 12, True),
    ("densenet121", models.densenet121, (1, 3, 64, 64), 9, False),
    ("mobilenet_v2", models.mobilenet_v2, (2, 3, 64, 64), 10, False),
    ("efficientnet_b0", models.efficientnet_b0, (1, 3, 64, 64), 13, True),
    ("shufflenet", models.shufflenet_v2_x1_0, (1, 3, 64, 64), 11, True),
    ("convnext_tiny", models.convnext_tiny, (1, 3, 64, 64), 16, True),
    ("vit_13", vit, (1, 3, 64, 64), 13, True),
    ("vit_17", vit, (1, 3, 64, 64), 17, True),
    ("decoder_11", Decoder, (1, 3, 10, 14), 11, True),
    ("decoder_17", Decoder, (1, 3, 10, 14), 17, False),
    ("places_13", Places, (1, 3, 8, 8), 13, True),
    ("places_17", Places, (2, 3, 8, 8), 17, False),
    ("swin_t", models.swin_t, (1, 3, 64, 64), 17, False),
]

root = os.path.join(os.environ["SCRATCH"], "onnx-networks")
for name, make, shape, opset, open_batch in CASES:
    folder = os.path.join(root, "networks", name)
    os.makedirs(os.path.join(folder, "test_data_set_0"), exist_ok=True)
    torch.manual_seed(1)
    network = make().eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.data.normal_(0, 0.1)
            module.running_var.data.uniform_(0.5, 1.5)
    x = torch.randn(*shape)
    axes = {"input": {0: "batch"}, "output": {0: "batch"}} if open_batch else None
    torch.onnx.export(network, x, os.path.join(folder, "model.onnx"), opset_version=opset,
                      input_names=["input"], output_names=["output"], dynamic_axes=axes)
    for kind, tensor in (("input", x), ("output", network(x))):
        with open(os.path.join(folder, "test_data_set_0", kind + "_0.pb"), "wb") as out:
            out.write(tensor_message(tensor))
sys.exit(subprocess.run([sys.argv[1], "networks"], env={**os.environ, "ONNX_TESTDATA": root}).returncode)
