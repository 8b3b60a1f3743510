#!/usr/bin/env python3
"""Writes net_variants.bin: a small residual network with other heads and without batch norm, by
PyTorch in double: its parameters by name, logits and gradients.

Format: records.py. For a case NAME there are NAME/x (the image), NAME/y (logits), NAME/g (the
gradient by them), and for every parameter P NAME/p:P and NAME/d:P; running statistics have no d.
test_net_variants.c builds the same network and lets it become the variant.
"""
import torch
import torch.nn.functional as F

from records import writer

torch.manual_seed(19)
record = writer("net_variants.bin")

# name: outputs, inputs, kernel, stride, padding; the batch norm behind it
CONVS = {
    "conv1": (8, 3, 3, 2, 1, "bn1"),
    "a.conv1": (8, 8, 3, 1, 1, "a.bn1"),
    "a.conv2": (8, 8, 3, 1, 1, "a.bn2"),
    "b.conv1": (12, 8, 3, 2, 1, "b.bn1"),
    "b.conv2": (12, 12, 3, 1, 1, "b.bn2"),
    "b.down": (12, 8, 1, 2, 0, "b.norm"),
}
CLASSES = 3


def normal(*shape, scale=1.0):
    return (scale * torch.randn(*shape, dtype=torch.double)).float().double().requires_grad_(True)


def parameters(norm, head):
    p, buffers = {}, {}
    for name, (out, inner, k, _, _, bn) in CONVS.items():
        p[name + ".weight"] = normal(out, inner, k, k, scale=0.4)
        if norm in ("frozen", "group"):
            p[bn + ".weight"], p[bn + ".bias"] = normal(out), normal(out)
            if norm == "frozen":
                buffers[bn + ".running_mean"] = normal(out).detach()
                buffers[bn + ".running_var"] = (normal(out).detach().abs() + 0.5).float().double()
        elif norm == "ws":
            p[name + ".gain"], p[name + ".bias"] = normal(out), normal(out)
        else:
            if name not in ("conv1", "b.down"):
                p[name + ".bias_before"] = normal(1)
            if name in ("a.conv2", "b.conv2"):
                p[name + ".factor"] = normal(1)
            if name != "b.down":
                p[name + ".bias_behind"] = normal(1)
    if head == "attention":
        for name, out, inner in (("head.v", 128, 12), ("head.u", 128, 12), ("head.w", 1, 128)):
            p[name + ".weight"] = normal(out, inner, 1, 1, scale=0.5)
        p["head.v.bias"], p["head.u.bias"] = normal(128), normal(128)
    p["fc.weight"] = normal(CLASSES, 12, *([1, 1] if head == "classes" else []))
    p["fc.bias"] = normal(CLASSES)
    return p, buffers


def network(x, p, buffers, norm, head):
    def conv(x, name, shared=None):
        out, inner, k, stride, padding, bn = CONVS[name]
        weight, bias = p[name + ".weight"], None
        if norm == "ws":
            centred = weight - weight.mean((1, 2, 3), True)
            variance = weight.var((1, 2, 3), False, True)
            weight = p[name + ".gain"][:, None, None, None] * centred / (inner * k * k * (variance + 1e-6)) ** 0.5
            bias = p[name + ".bias"]
        before = shared if shared is not None else p.get(name + ".bias_before")
        y = F.conv2d(x if before is None else x + before, weight, bias, stride, padding)
        if norm == "frozen":
            return F.batch_norm(y, buffers[bn + ".running_mean"], buffers[bn + ".running_var"], p[bn + ".weight"], p[bn + ".bias"], False)
        if norm == "group":
            return F.group_norm(y, next(n for n in range(32, 0, -1) if out % n == 0 and out / n >= 4), p[bn + ".weight"], p[bn + ".bias"])
        y = y * p[name + ".factor"] if name + ".factor" in p else y
        return y + p[name + ".bias_behind"] if name + ".bias_behind" in p else y

    def relu(x):
        return F.relu(x)

    x = relu(conv(x, "conv1"))
    x = relu(conv(relu(conv(x, "a.conv1")), "a.conv2") + x)
    x = relu(conv(relu(conv(x, "b.conv1")), "b.conv2") + conv(x, "b.down", p.get("b.conv1.bias_before")))
    if head == "classes":
        m = F.conv2d(x, p["fc.weight"], p["fc.bias"])
        return ((5 * m).logsumexp((2, 3)) - torch.tensor(float(m[0, 0].numel())).double().log()) / 5
    if head == "mean":
        x = x.mean((2, 3))
    elif head == "max":
        x = x.amax((2, 3))
    elif head == "lse":
        x = ((5 * x).logsumexp((2, 3)) - torch.tensor(float(x[0, 0].numel())).double().log()) / 5
    else:
        v = torch.tanh(F.conv2d(x, p["head.v.weight"], p["head.v.bias"]))
        u = torch.sigmoid(F.conv2d(x, p["head.u.weight"], p["head.u.bias"]))
        s = F.conv2d(v * u, p["head.w.weight"])
        x = (x * s.flatten(1).softmax(1).view_as(s)).sum((2, 3))
    return F.linear(x, p["fc.weight"], p["fc.bias"])


for norm, head in [("frozen", "mean"), ("frozen", "max"), ("ws", "attention"), ("ws", "classes"), ("fixup", "lse"), ("group", "mean")]:
    name = norm + "_" + head
    p, buffers = parameters(norm, head)
    x = torch.randn(2, 3, 17, 15, dtype=torch.double).float().double()
    y = network(x, p, buffers, norm, head)
    g = torch.randn(y.shape, dtype=torch.double).float().double()
    y.backward(g)
    record(name + "/x", x)
    record(name + "/y", y)
    record(name + "/g", g)
    for key, value in p.items():
        record("%s/p:%s" % (name, key), value)
        record("%s/d:%s" % (name, key), value.grad)
    for key, value in buffers.items():
        record("%s/p:%s" % (name, key), value)
