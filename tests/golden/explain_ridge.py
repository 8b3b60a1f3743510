#!/usr/bin/python3
"""Writes explain/ridge.json: weighted ridge regressions by scikit-learn, more rows than columns and
fewer, one target and two."""
import json, os
import numpy as np
from sklearn.linear_model import Ridge

def case(rng, n, p, targets, alpha, weighted):
    x = np.round(rng.normal(size=(n, p)) + 3 * rng.normal(size=p), 4)
    y = np.round(x[:, :1] * 2 - 5 + rng.normal(size=(n, targets)), 4)
    weights = np.round(rng.random(n), 4) if weighted else None
    if weighted:
        weights[0] = 0
    model = Ridge(alpha=alpha, solver="svd").fit(x, y, weights)
    out = {"n": n, "p": p, "targets": targets, "alpha": alpha, "x": x.ravel().tolist(),
           "y": y.ravel().tolist(), "coef": model.coef_.ravel().tolist(),
           "intercept": np.ravel(model.intercept_).tolist()}
    if weighted:
        out["weights"] = weights.tolist()
    return out

rng = np.random.default_rng(5)
cases = [case(rng, 30, 6, 1, 1.0, True), case(rng, 30, 6, 2, 0.25, False),
         case(rng, 8, 21, 1, 1.0, True), case(rng, 8, 21, 2, 10.0, False),
         case(rng, 12, 5, 1, 0.0, True), case(rng, 9, 9, 1, 0.5, True)]
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "explain")
with open(os.path.join(folder, "ridge.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
