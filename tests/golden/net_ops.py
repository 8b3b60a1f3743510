#!/usr/bin/env python3
"""Writes net_ops.bin: small tensors in, out and their gradients for every op, by PyTorch in double.

Format: records.py. For a case NAME there are NAME/x0, x1, .. (inputs and parameters in the order of
the node's inputs), NAME/y, NAME/g (the gradient by y) and NAME/d0, d1, .. (by x0, x1, ..);
test_net_ops.c builds the same node.
"""
import math

import torch
import torch.nn.functional as F

from records import writer

torch.manual_seed(7)
record = writer("net_ops.bin")


def case(name, fn, *shapes, positive=(), given={}):
    xs = [torch.randn(s, dtype=torch.double).float().double() for s in shapes]
    for i in positive:
        xs[i] = (xs[i].abs() + 0.5).float().double()
    for i, x in given.items():
        xs[i] = x.double()
    for x in xs:
        x.requires_grad_(True)
    y = fn(*xs)
    g = torch.randn(y.shape, dtype=torch.double).float().double()
    y.backward(g)
    for i, x in enumerate(xs):
        record("%s/x%d" % (name, i), x)
        record("%s/d%d" % (name, i), x.grad if x.grad is not None else torch.zeros_like(x))
    record(name + "/y", y)
    record(name + "/g", g)


case("conv", lambda x, w, b: F.conv2d(x, w, b, 1, 1), (2, 3, 9, 8), (16, 3, 3, 3), (16,))
case("conv_block", lambda x, w, b: F.conv2d(x, w, b, 1, 1), (2, 16, 6, 7), (32, 16, 3, 3), (32,))
case("conv_odd", lambda x, w: F.conv2d(x, w, None, (2, 1), (2, 1)), (2, 5, 9, 8), (7, 5, 5, 3))
case("conv_stride", lambda x, w: F.conv2d(x, w, None, 2, 0), (1, 16, 9, 9), (16, 16, 1, 1))
case("conv_dilated", lambda x, w: F.conv2d(x, w, None, 1, 2, 2), (1, 16, 9, 9), (16, 16, 3, 3))
case("conv_groups", lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 2), (2, 8, 5, 5), (6, 4, 3, 3))
case("conv_depth", lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 16), (2, 16, 5, 5), (16, 1, 3, 3))
case("conv_sides", lambda x, w: F.conv2d(F.pad(x, (1, 2, 0, 3)), w), (1, 16, 6, 6), (16, 16, 3, 2))
case("conv_patch", lambda x, w, b: F.conv2d(x, w, b, 8), (1, 3, 24, 16), (20, 3, 8, 8), (20,))
case("deconv", lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), (2, 16, 5, 4), (16, 8, 3, 3), (8,))
case("deconv_plain", lambda x, w: F.conv_transpose2d(x, w, None, 2), (1, 5, 4, 4), (5, 3, 2, 2))
case("deconv_groups", lambda x, w: F.conv_transpose2d(x, w, None, 1, 1, 0, 2, 2), (1, 8, 6, 6), (8, 3, 3, 3))
case("linear", lambda x, w, b: F.linear(x, w, b), (4, 10), (7, 10), (7,))
case("linear_tokens", lambda x, w: F.linear(x, w), (2, 5, 8), (12, 8))
case("matmul", lambda a, b: a @ b, (2, 3, 4, 5), (2, 3, 5, 6))
case("matmul_tb", lambda a, b: 0.5 * (a @ b.transpose(-1, -2)), (2, 3, 4, 5), (2, 3, 6, 5))
case("matmul_ta", lambda a, b: a.transpose(-1, -2) @ b, (2, 5, 4), (2, 5, 6))
case("matmul_repeat", lambda a, b: a @ b, (2, 3, 4, 5), (5, 6))
case("batch_norm", lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True, 0.1, 1e-5), (4, 16, 5, 3), (16,), (16,), (16,), (16,), positive=(4,))
case("batch_norm_odd", lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True, 0.1, 1e-3), (3, 5, 4, 3), (5,), (5,), (5,), (5,), positive=(4,))
case("batch_norm_2d", lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True, 0.1, 1e-5), (6, 5), (5,), (5,), (5,), (5,), positive=(4,))
case("group_norm", lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5), (2, 16, 5, 3), (16,), (16,))
case("layer_norm", lambda x, w, b: F.layer_norm(x, (12,), w, b, 1e-6), (2, 5, 12), (12,), (12,))
for name, fn in [("relu", F.relu), ("leaky_relu", lambda x: F.leaky_relu(x, 0.1)), ("silu", F.silu), ("gelu", F.gelu), ("sigmoid", torch.sigmoid), ("tanh", torch.tanh)]:
    case(name, fn, (2, 5, 4, 3))
case("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), (2, 16, 9, 8))
case("max_pool_ceil", lambda x: F.max_pool2d(x, 3, 2, 0, 1, True), (2, 5, 8, 9))
case("max_pool_dilated", lambda x: F.max_pool2d(x, 3, 1, 1, 2), (1, 16, 9, 9))
case("average_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 16, 9, 8))
case("average_pool_inside", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (2, 5, 8, 9))
case("average_pool_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, True, True), (1, 3, 8, 8))
case("global_max_pool", lambda x: F.adaptive_max_pool2d(x, 1), (2, 16, 4, 5))
case("global_average_pool", lambda x: F.adaptive_avg_pool2d(x, 1), (2, 16, 4, 5))
case("adaptive_average_pool", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), (2, 5, 7, 6))
case("lrn", lambda x: F.local_response_norm(x, 5, 0.1, 0.75, 1.0), (2, 7, 3, 4))
# ONNX and PyTorch differ in where an even window lies; we follow ONNX, which is the mirror image.
case("lrn_even", lambda x: F.local_response_norm(x.flip(1), 4, 0.1, 0.6, 2.0).flip(1), (1, 6, 3, 2))
case("add", torch.add, (2, 16, 4, 3), (2, 16, 4, 3))
case("sub", torch.sub, (2, 5, 4, 3), (5, 1, 1))
case("mul", torch.mul, (2, 16, 4, 3), (2, 16, 1, 1))
case("mul_map", torch.mul, (2, 16, 4, 3), (2, 1, 4, 3))
case("mul_wide", torch.mul, (5, 1), (2, 1, 4))
case("div", torch.div, (2, 5, 4, 3), (2, 5, 4, 3), positive=(1,))
case("div_number", torch.div, (2, 16, 4, 3), (1,), positive=(1,))
case("scale", lambda x: 1.5 * x - 0.25, (2, 5, 4, 3))
case("concat", lambda a, b, c: torch.cat([a, b, c], 1), (2, 16, 4, 3), (2, 32, 4, 3), (2, 16, 4, 3))
case("concat_odd", lambda a, b: torch.cat([a, b], 1), (2, 3, 4, 3), (2, 5, 4, 3))
case("concat_rows", lambda a, b: torch.cat([a, b], 2), (2, 16, 4, 3), (2, 16, 2, 3))
case("concat_one", lambda a, b: torch.cat([a, b], 1), (1, 16, 4, 3), (1, 16, 4, 3))
case("slice", lambda x: x[:, 16:32], (2, 48, 3, 3))
case("slice_odd", lambda x: x[:, 1:6:2], (2, 7, 3, 3))
case("slice_rows", lambda x: x[:, :, 1:-1], (2, 16, 5, 3))
case("pad", lambda x: F.pad(x, (1, 2, 3, 0), value=0.5), (2, 5, 4, 3))
case("pad_crop", lambda x: F.pad(x, (-1, 2, 1, -1)), (2, 16, 4, 4))
case("pad_reflect", lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"), (2, 16, 4, 5))
case("pad_replicate", lambda x: F.pad(x, (2, 1, 1, 3), mode="replicate"), (2, 5, 4, 5))
case("reshape", lambda x: x.reshape(2, 3, -1), (2, 6, 5))
case("flatten", lambda x: x.flatten(1), (2, 3, 4, 5))
case("transpose", lambda x: x.permute(0, 2, 3, 1), (2, 3, 4, 5))
case("expand_batch", lambda x, like: x.expand(3, -1, -1), (1, 4, 5), (3, 2))
case("reduce_mean", lambda x: x.mean((1, 3)), (2, 3, 4, 5))
case("reduce_mean_keep", lambda x: x.mean(2, keepdim=True), (2, 3, 4, 5))
case("softmax", lambda x: x.softmax(-1), (2, 3, 7))
case("softmax_channels", lambda x: x.softmax(1), (2, 5, 3, 2))
case("upsample_nearest", lambda x: F.interpolate(x, scale_factor=2), (2, 16, 3, 4))
case("upsample_nearest_size", lambda x: F.interpolate(x, size=(7, 5)), (1, 3, 3, 4))
case("upsample_bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), (2, 16, 3, 4))
case("upsample_corners", lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True), (2, 5, 3, 4))
case("upsample_broken", lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=False), (1, 3, 5, 7))
case("attention", lambda q, k, v: ((q @ k.transpose(-1, -2)) / 8 ** 0.5).softmax(-1) @ v, (2, 3, 5, 8), (2, 3, 5, 8), (2, 3, 5, 8))

# Losses: NAME/x0 scores, NAME/x1 targets or labels, NAME/x2 weights, NAME/y the loss, NAME/d0.
def loss(name, scores, others, fn):
    scores = scores.float().double().requires_grad_(True)
    y = fn(scores, *others)
    y.backward()
    record(name + "/x0", scores)
    for i, o in enumerate(others):
        record("%s/x%d" % (name, i + 1), o)
    record(name + "/y", y)
    record(name + "/d0", scores.grad)


labels = torch.tensor([0, 2, -100, 1])
weights = torch.tensor([1.0, 0.5, 2.0], dtype=torch.double)
loss("loss_softmax", torch.randn(4, 3).double() * 3, [labels, weights], lambda s, t, w: F.cross_entropy(s, t, w))
loss("loss_smooth", torch.randn(4, 3).double() * 3, [labels, weights], lambda s, t, w: F.cross_entropy(s, t, w, label_smoothing=0.1))
pixels = torch.randint(0, 3, (2, 4, 5))
loss("loss_pixels", torch.randn(2, 3, 4, 5).double(), [pixels, weights], lambda s, t, w: F.cross_entropy(s, t, w))
targets = torch.rand(4, 3).float().double()
loss("loss_sigmoid", torch.randn(4, 3).double() * 3, [targets, weights], lambda s, t, w: F.binary_cross_entropy_with_logits(s, t, w))
loss("loss_mse", torch.randn(4, 3).double(), [targets], lambda s, t: F.mse_loss(s, t))
loss("loss_huber", torch.randn(4, 3).double() * 2, [targets], lambda s, t: F.huber_loss(s, t, delta=0.7))

# Behind all others, whose numbers stay as they are.
case("log_softmax", lambda x: x.log_softmax(-1), (2, 3, 7))
case("log_softmax_channels", lambda x: x.log_softmax(1), (2, 5, 3, 2))
case("lse", lambda x: ((5 * x).logsumexp((2, 3), keepdim=True) - math.log(20)) / 5, (2, 16, 4, 5))
case("lse_soft", lambda x: ((0.5 * x).logsumexp((2, 3), keepdim=True) - math.log(42)) / 0.5, (2, 5, 7, 6))
case("attention_pool", lambda x, s: (x * s.flatten(1).softmax(1).view_as(s)).sum((2, 3), keepdim=True), (2, 16, 4, 5), (2, 1, 4, 5))
case("standardize", lambda w, g: g[:, None, None, None] * (w - w.mean((1, 2, 3), True)) / (45 * (w.var((1, 2, 3), False, True) + 1e-3)) ** 0.5, (6, 5, 3, 3), (6,))


def heads(n, scale=None):
    """softmax(scale q kt + bias) v of n heads for q [N, T, n d], k and v [N, S, n d]; keys with mask 0 are not seen."""
    def split(x):
        return x.unflatten(2, (n, -1)).transpose(1, 2)

    def fn(q, k, v, bias=None, mask=None):
        scores = split(q) @ split(k).transpose(-1, -2) * (scale or (q.shape[2] / n) ** -0.5)
        scores = scores if bias is None else scores + bias
        scores = scores if mask is None else scores.masked_fill(mask[:, None, None] == 0, -math.inf)
        return (scores.softmax(-1) @ split(v)).transpose(1, 2).flatten(2)
    return fn


seen = torch.tensor([[1, 1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 0, 0, 0]])
case("heads", heads(2), (2, 5, 16), (2, 7, 16), (2, 7, 16))
case("heads_masked", heads(2, 0.7), (2, 5, 18), (2, 7, 18), (2, 7, 18), (1, 2, 5, 7), (2, 7), given={4: seen})
case("heads_packed", lambda x: heads(2)(*x.chunk(3, 2)), (2, 37, 24))
case("heads_long", heads(1), (1, 3, 4), (1, 530, 4), (1, 530, 4))


def relative(distance):
    """T5's bias of attention: rows of the table by the bucket of key - query."""
    def fn(x, table):
        tokens, half = x.shape[1], table.shape[0] // 2
        exact = half // 2
        offset = torch.arange(tokens)[None, :] - torch.arange(tokens)[:, None]
        far = exact + (torch.log(offset.abs().float().clamp(min=1) / exact) / math.log(distance / exact) * (half - exact)).long()
        bucket = torch.where(offset.abs() < exact, offset.abs(), far.clamp(max=half - 1)) + half * (offset > 0)
        return table[bucket].permute(2, 0, 1)[None]
    return fn


case("rms_norm", lambda x, w: x * (x.square().mean(-1, True) + 1e-6).rsqrt() * w, (2, 5, 12), (12,))

for name, fn in [("exp", torch.exp), ("abs", torch.abs), ("erf", torch.erf), ("sin", torch.sin), ("cos", torch.cos)]:
    case("function_" + name, fn, (2, 5, 4, 3))
for name, fn in [("log", torch.log), ("sqrt", torch.sqrt), ("reciprocal", torch.reciprocal), ("power", lambda x: x ** 2.5)]:
    case("function_" + name, fn, (2, 5, 4, 3), positive=(0,))
case("reduce_max", lambda x: x.amax((1, 3)), (2, 3, 4, 5))
case("reduce_max_keep", lambda x: x.amax(2, keepdim=True), (2, 3, 4, 5))
case("take", lambda x, at: x[:, at.long()], (2, 16, 3, 2), (5,), given={1: torch.tensor([3.0, 0, 15, 3, 7])})
case("take_last", lambda x, at: x[..., at.long()], (2, 3, 7), (4,), given={1: torch.tensor([6.0, 5, 1, 1])})
ids = torch.tensor([[3, 0, 10, 3, 3], [7, 7, 10, 1, 3]])
case("embedding", lambda x, table: F.embedding(x.detach().long(), table), (2, 5), (11, 6), given={0: ids})
case("relative_bias", relative(128), (1, 40, 1), (32, 2))
case("relative_bias_near", relative(20), (2, 37), (8, 2))
