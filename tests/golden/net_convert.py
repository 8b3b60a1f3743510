#!/usr/bin/env python3
"""Rounding to bfloat16, and int8 with its gradient, by PyTorch.

Writes tests/golden/net_convert.bin (records.py): for a case NAME NAME/x0, NAME/y, NAME/g (the gradient
by y) and NAME/d0 (by x0), as net_ops.py does; test_net_forms.c builds the same node.
"""
import torch

from records import writer

torch.manual_seed(11)
record = writer("net_convert.bin")


class Halved(torch.autograd.Function):
    """The gradient passes through as it is."""

    @staticmethod
    def forward(ctx, x):
        return x.bfloat16().float()

    @staticmethod
    def backward(ctx, g):
        return g


def case(name, fn, shape):
    x = (torch.randn(shape) * 3).requires_grad_(True)
    y = fn(x)
    g = torch.randn(y.shape)
    y.backward(g)
    for part, t in [("x0", x), ("y", y), ("g", g), ("d0", x.grad)]:
        record("%s/%s" % (name, part), t)


case("bfloat16", Halved.apply, (2, 5, 4, 3))
# Scales that are powers of two: PyTorch multiplies by 1 / scale where ONNX divides.
case("int8", lambda x: torch.fake_quantize_per_tensor_affine(x, 2**-5, 0, -128, 127), (2, 5, 4, 3))
case("int8_offset", lambda x: torch.fake_quantize_per_tensor_affine(x, 2**-5, -40, -128, 127), (2, 16, 3, 3))
