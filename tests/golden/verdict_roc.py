#!/usr/bin/python3
"""Writes verdict/roc.json: areas, DeLong's variances and tests, straight from their definitions
(every pair of a positive and a negative is looked at), and bootstrap intervals by numpy."""
import json, math, os
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

def structural(scores, labels):
    x, y = scores[labels == 1], scores[labels == 0]
    psi = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
    return psi.mean(1), psi.mean(0)

def covariance(a, b, labels):
    (a10, a01), (b10, b01) = structural(a, labels), structural(b, labels)
    return np.cov(a10, b10)[0, 1] / len(a10) + np.cov(a01, b01)[0, 1] / len(a01)

def bootstrap(scores, labels, rng, replicates=4000):
    x, y = scores[labels == 1], scores[labels == 0]
    areas = []
    for _ in range(replicates):
        u, v = rng.choice(x, len(x)), rng.choice(y, len(y))
        areas.append(((u[:, None] > v) + 0.5 * (u[:, None] == v)).mean())
    return [float(q) for q in np.quantile(areas, [0.025, 0.975])]

def case(rng, n, share, digits):
    labels = (rng.random(n) < share).astype(int)
    labels[:2] = 0, 1
    common = rng.normal(size=n) + 1.2 * labels
    a = np.round(common + 0.6 * rng.normal(size=n), digits)
    b = np.round(common * 0.7 + 0.9 * rng.normal(size=n), digits)
    area = [roc_auc_score(labels, s) for s in (a, b)]
    var = [covariance(s, s, labels) for s in (a, b)]
    se = math.sqrt(var[0] + var[1] - 2 * covariance(a, b, labels))
    z = (area[0] - area[1]) / se
    fpr, tpr, threshold = roc_curve(labels, a)
    best = np.argmax(tpr - fpr)
    return {"labels": labels.tolist(), "a": a.tolist(), "b": b.tolist(), "auc": area,
            "se": [math.sqrt(v) for v in var], "difference_se": se, "z": z,
            "p": math.erfc(abs(z) / math.sqrt(2)), "bootstrap_a": bootstrap(a, labels, rng),
            "points": len(fpr), "best": [fpr[best], tpr[best], threshold[best]]}

rng = np.random.default_rng(5)
cases = [case(rng, 40, 0.5, 6), case(rng, 90, 0.3, 1), case(rng, 25, 0.2, 0)]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "roc.json")
with open(path, "w") as f:
    json.dump({"cases": cases}, f)
    f.write("\n")
