#!/usr/bin/env python3
"""Writes train_ops.bin: optimisers, schedules and metrics by PyTorch and scikit-learn.

Format: records.py. Optimisers run ten steps in double on the gradients grad/STEP/w and
grad/STEP/b from start/w and start/b; w decays, b (a bias) does not. A number that needs more than
a float is a record of two: the float and what is missing.
"""
import numpy
import torch
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score, roc_auc_score

from records import writer

torch.manual_seed(11)
record = writer("train_ops.bin")
STEPS = 10


def precise(name, x):
    high = float(numpy.float32(x))
    record(name, [high, x - high])


def rounded(*shape):
    return torch.randn(shape).double()


start = {"w": rounded(6, 7), "b": rounded(7)}
grads = [{"w": rounded(6, 7) * 0.3, "b": rounded(7) * 0.3} for _ in range(STEPS)]
grads = [{k: g.float().double() for k, g in step.items()} for step in grads]
for k, p in start.items():
    record("start/" + k, p)
for i, step in enumerate(grads):
    for k, g in step.items():
        record("grad/%d/%s" % (i, k), g)


def optimizer(name, make, decay, clip=None, ema=None, lr_of=None):
    p = {k: v.clone().requires_grad_(True) for k, v in start.items()}
    groups = [{"params": [p["w"]], "weight_decay": decay}, {"params": [p["b"]], "weight_decay": 0}]
    o = make(groups)
    mean = {k: v.clone() for k, v in start.items()}
    for i, step in enumerate(grads):
        for k, g in step.items():
            p[k].grad = g.clone()
        if clip:
            norm = torch.nn.utils.clip_grad_norm_(list(p.values()), clip)
            precise("%s/norm/%d" % (name, i), norm.item())
        if lr_of:
            for group in o.param_groups:
                group["lr"] = lr_of(i)
        o.step()
        for k in p:
            if ema:
                d = min(ema, (1 + i) / (10 + i))
                mean[k] = d * mean[k] + (1 - d) * p[k].detach()
    for k in p:
        record("%s/%s" % (name, k), p[k])
        if ema:
            record("%s/ema/%s" % (name, k), mean[k])


class Lars(torch.optim.Optimizer):
    """You, Gitman, Ginsburg 2017, algorithm 1: the rate is part of the velocity. Parameters of one
    axis (biases, norms) are plain SGD with momentum."""

    def __init__(self, groups, lr, momentum, trust):
        super().__init__(groups, dict(lr=lr, momentum=momentum, trust=trust))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                g, local = p.grad, 1.0
                if p.dim() > 1:
                    w, n = p.norm(), p.grad.norm()
                    local = group["trust"] * w / (n + group["weight_decay"] * w)
                    g = g + group["weight_decay"] * p
                v.mul_(group["momentum"]).add_(group["lr"] * local * g)
                p.sub_(v)


SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
optimizer("sgd", lambda g: SGD(g, lr=0.1), 0)
optimizer("momentum", lambda g: SGD(g, lr=0.05, momentum=0.9), 5e-4)
optimizer("nesterov", lambda g: SGD(g, lr=0.05, momentum=0.9, nesterov=True), 1e-2)
optimizer("rates", lambda g: SGD(g, lr=1, momentum=0.9), 1e-2, lr_of=lambda i: 0.1 / (1 + i))
optimizer("adam", lambda g: Adam(g, lr=0.5, betas=(0.9, 0.999), eps=1e-8), 1e-2)
optimizer("adamw", lambda g: AdamW(g, lr=0.5, betas=(0.8, 0.99), eps=1e-6), 5e-2)
optimizer("lars", lambda g: Lars(g, lr=2.0, momentum=0.9, trust=1e-2), 1e-2)
optimizer("lars_bare", lambda g: Lars(g, lr=2.0, momentum=0, trust=1e-2), 0)
optimizer("clip", lambda g: SGD(g, lr=0.1, momentum=0.9), 0, clip=1.5)
optimizer("ema", lambda g: SGD(g, lr=0.1, momentum=0.9), 0, ema=0.4)

# Schedules: the rate of every step (or epoch), base rate 0.4.
LR = torch.optim.lr_scheduler


def schedule(name, make, n):
    o = SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    s = make(o)
    rates = []
    for _ in range(n):
        rates.append(o.param_groups[0]["lr"])
        o.step()
        s.step()
    record("schedule/" + name, torch.tensor(rates, dtype=torch.double))


schedule("step", lambda o: LR.StepLR(o, 7, 0.1), 30)
schedule("cosine", lambda o: LR.CosineAnnealingLR(o, 30, eta_min=0.004), 31)
schedule("warm", lambda o: LR.LinearLR(o, 0.01, 1.0, total_iters=10), 30)
# The warm-up of ten, then the cosine over the twenty that are left.
schedule("warm_cosine", lambda o: LR.SequentialLR(o, [
    LR.LinearLR(o, 0.01, 1.0, total_iters=10), LR.CosineAnnealingLR(o, 20)], [10]), 30)

values = [1.0, 0.9, 0.85, 0.86, 0.85, 0.8499, 0.9, 0.7, 0.71, 0.72, 0.73, 0.74, 0.75, 0.6, 0.6, 0.6,
          0.6, 0.6, 0.5, 0.55, 0.55, 0.55, 0.55, 0.55]
o = SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
s = LR.ReduceLROnPlateau(o, "max", factor=0.5, patience=2, threshold=1e-3, threshold_mode="abs")
rates = []
for v in values:
    s.step(-v)
    rates.append(o.param_groups[0]["lr"])
record("plateau/values", -torch.tensor(values, dtype=torch.double))
record("plateau/rates", torch.tensor(rates, dtype=torch.double))

# Metrics: scores with many ties, without, and of three classes.
generator = numpy.random.default_rng(5)
for name, n, decimals in (("ties", 500, 1), ("plain", 300, 7), ("few", 7, 1)):
    labels = generator.integers(0, 2, n)
    scores = (numpy.round(generator.normal(labels * 0.8, 1), decimals)).astype(numpy.float32)
    record("auc/%s/labels" % name, labels)
    record("auc/%s/scores" % name, scores)
    precise("auc/%s/area" % name, roc_auc_score(labels, scores))

for classes in (2, 3):
    p = (torch.randn(60, classes) * 2).softmax(1)
    truth = generator.integers(0, classes, 60)
    said = p.argmax(1).numpy()
    area = numpy.mean([roc_auc_score(truth == c, p[:, c]) for c in range(1 if classes == 2 else 0, classes)])
    name = "classes_%d/" % classes
    record(name + "scores", p)
    record(name + "labels", truth)
    record(name + "confusion", confusion_matrix(truth, said))
    precise(name + "accuracy", (said == truth).mean())
    precise(name + "balanced", balanced_accuracy_score(truth, said))
    precise(name + "f1", f1_score(truth, said, average="binary" if classes == 2 else "macro"))
    precise(name + "area", area)
