"""The peer: the diffusion U-Nets of src/net/zoo/unet.c in PyTorch 2, eager or compiled.

    torch_unet.py NETWORK PX BATCH THREADS REPEATS WAY MODE [FILE]

WAY is eager, compiled or, with convolutions in PyTorch's own fast layout, eager-last or compiled-last; MODE is train
(forward, the gradient of a squared error, backward; no optimizer) or infer (forward without gradients). Prints one JSON
object: seconds of the fastest step, and parameters. With FILE, what `denoiser_time --write` wrote, the same weights and
inputs are used and the largest differences of the output and of any gradient, relative to the largest number of each,
are printed too.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

# width, factors of the levels, blocks, first level that attends, channels of a head, groups
SPECS = {"unet_tiny": (16, (1, 2, 4), 1, 2, 16, 4), "unet_small": (32, (1, 2, 4), 1, 2, 32, 8),
         "unet": (64, (1, 2, 3, 4), 2, 2, 32, 32)}
CONDITIONS = 2


class Residual(nn.Module):
    def __init__(self, into, out, features, groups):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, into), nn.GroupNorm(groups, out)
        self.conv1, self.conv2 = nn.Conv2d(into, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(features, out)
        self.skip = nn.Conv2d(into, out, 1) if into != out else nn.Identity()
        self.attention = None

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        y = self.skip(x) + self.conv2(F.silu(self.norm2(y)))
        return self.attention(y) if self.attention is not None else y


class Attention(nn.Module):
    def __init__(self, channels, head, groups):
        super().__init__()
        self.norm, self.head = nn.GroupNorm(groups, channels), head
        self.qkv, self.proj = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        parts = self.qkv(self.norm(x)).reshape(n, 3, c // self.head, self.head, h * w).transpose(3, 4)
        y = F.scaled_dot_product_attention(*parts.unbind(1))
        return x + self.proj(y.transpose(2, 3).reshape(n, c, h, w))


class UNet(nn.Module):
    def __init__(self, width, factors, blocks, attention, head, groups):
        super().__init__()
        self.factors, self.blocks = factors, blocks
        self.time = nn.ModuleList([nn.Linear(width, 4 * width), nn.Linear(4 * width, 4 * width)])
        self.condition = nn.Linear(CONDITIONS, 4 * width, bias=False)
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down, self.up, self.middle = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()

        def block(into, level, attends):
            out = width * factors[level]
            made = Residual(into, out, 4 * width, groups)
            if attends:
                made.attention = Attention(out, head, groups)
            return made, out

        channels, skips = width, [width]
        for level in range(len(factors)):
            part = nn.ModuleDict()
            for i in range(blocks):
                part[str(i)], channels = block(channels, level, level >= attention)
                skips.append(channels)
            if level < len(factors) - 1:
                part["downsample"] = nn.Conv2d(channels, channels, 3, 2, 1)
                skips.append(channels)
            self.down.append(part)
        self.middle.extend(block(channels, len(factors) - 1, i == 0)[0] for i in range(2))
        for level in reversed(range(len(factors))):
            part = nn.ModuleDict()
            for i in range(blocks + 1):
                part[str(i)], channels = block(channels + skips.pop(), level, level >= attention)
            if level > 0:
                part["upsample"] = nn.Conv2d(channels, width * factors[level - 1], 3, padding=1)
                channels = width * factors[level - 1]
            self.up.insert(0, part)
        self.out = nn.ModuleDict(dict(norm=nn.GroupNorm(groups, channels), conv=nn.Conv2d(channels, 3, 3, padding=1)))

    def forward(self, x, time, condition):
        time = self.time[1](F.silu(self.time[0](time))) + self.condition(condition)
        time = F.silu(time)
        x = self.stem(x)
        skips = [x]
        for part in self.down:
            for name, layer in part.items():
                x = layer(x) if name == "downsample" else layer(x, time)
                skips.append(x)
        for layer in self.middle:
            x = layer(x, time)
        for part in reversed(self.up):
            for name, layer in part.items():
                if name == "upsample":
                    x = layer(F.interpolate(x, scale_factor=2, mode="nearest"))
                else:
                    x = layer(torch.cat([x, skips.pop()], 1), time)
        return self.out["conv"](F.silu(self.out["norm"](x)))


def difference(a, b):
    return float((a - b).abs().max() / b.abs().max())


def main():
    network, (px, batch, threads, repeats), (way, mode) = sys.argv[1], map(int, sys.argv[2:6]), sys.argv[6:8]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = UNet(*SPECS[network])
    width = SPECS[network][0]
    inputs = [torch.randn(batch, 3, px, px), torch.randn(batch, width), torch.randn(batch, CONDITIONS)]
    tensors = None
    if len(sys.argv) > 8:
        from safetensors.torch import load_file
        tensors = load_file(sys.argv[8])
        model.load_state_dict({name[7:]: t for name, t in tensors.items() if name.startswith("weight:")})
        inputs = [tensors["input"], tensors["time"], tensors["condition"]]
    if way.endswith("-last"):
        model = model.to(memory_format=torch.channels_last)
        inputs[0] = inputs[0].contiguous(memory_format=torch.channels_last)
    run = torch.compile(model) if way.startswith("compiled") else model
    best, y = float("inf"), None
    for _ in range(repeats + 1):  # the first one also prepares
        began = time.perf_counter()
        if mode == "train":
            model.zero_grad(set_to_none=True)
            y = run(*inputs)
            ((y - 1) ** 2).mean().backward()
        else:
            with torch.no_grad():
                y = run(*inputs)
        best = min(best, time.perf_counter() - began)
    result = dict(seconds=best, parameters=sum(p.numel() for p in model.parameters()))
    if tensors:
        result["output_error"] = difference(y.detach(), tensors["noise"])
        result["gradient_error"] = max((difference(p.grad, tensors["gradient:" + name])
                                        for name, p in model.named_parameters()), default=0) if mode == "train" else 0
    print(json.dumps(result))


if __name__ == "__main__":
    main()
