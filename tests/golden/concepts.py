#!/usr/bin/env python3
"""Writes concepts.json: concept regressions by scikit-learn on drawn activations, fold by fold.

Activations, gradients and concepts follow from formulas that tests/unit/test_concept_score.c repeats.
"""
import json
import pathlib

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score

N, FOLDS = 48, 3


def drawn(p):
    i, j = np.meshgrid(np.arange(N), np.arange(p), indexing="ij")
    x = np.sin(1.7 * i + 0.9 * j) + 0.5 * np.cos(0.37 * i * (j % 7)) + 0.2 * np.sin(2.3 * i * j + 1)
    g = np.cos(0.8 * i - 0.3 * j) + 0.4
    return x.astype(np.float32), g.astype(np.float32)


def concept(x):
    i = np.arange(N)
    return 2 * x[:, 0].astype(float) - 1.5 * x[:, 1] + 0.7 * np.sin(3.1 * i * i)


def penalty_unit(train):
    centred = train - train.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    return values[values > 1e-10 * values[0]].mean()


def gcv(train, y):
    centred, yc = train - train.mean(axis=0), y - y.mean()
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    keep = s**2 > 1e-10 * s[0] ** 2
    u, s2 = u[:, keep], s[keep] ** 2
    best = None
    for power in range(13):
        ratio = 10 ** (-4 + 0.5 * power)
        kept = s2 / (s2 + ratio * s2.mean())
        fitted = u @ (kept * (u.T @ yc))
        m = len(y)
        error = ((yc - fitted) ** 2).mean() / (1 - (1 + kept.sum()) / m) ** 2
        if best is None or error < best[0]:
            best = (error, ratio)
    return best[1]


def cross_validate(x, g, y, fit):
    """fit(train, y) -> (coefficients, predict)"""
    fold = np.arange(N) // 4 % FOLDS
    out = {"fold_quality": [], "sensitivities": [0.0] * N, "directions": []}
    correct = 0
    for k in range(FOLDS):
        test = fold == k
        train_x, test_x = x[~test].astype(float), x[test].astype(float)
        coefficients, predict, ratio = fit(train_x, y[~test])
        v = coefficients / np.linalg.norm(coefficients)
        predicted = predict(test_x)
        yes_no = set(y) <= {0.0, 1.0}
        out["fold_quality"].append(roc_auc_score(y[test], predicted) if yes_no else r2_score(y[test], predicted))
        correct += ((predicted > 0) == (y[test] > 0.5)).sum()
        for index, s in zip(np.flatnonzero(test), g[test].astype(float) @ v):
            out["sensitivities"][index] = s
        out["directions"].append(v)
        out.setdefault("ratios", []).append(ratio)
    s = np.array(out["sensitivities"])
    out["quality"] = float(np.mean(out["fold_quality"]))
    out["tcav"] = float((s > 0).mean())
    out["br"] = out["quality"] * s.mean() / s.std()
    out["accuracy"] = correct / N
    total = np.sum(out.pop("directions"), axis=0)
    out["direction"] = list(total / np.linalg.norm(total))
    return out


def ridge(ratio):
    def fit(train, y):
        chosen = ratio or gcv(train, y)
        model = Ridge(alpha=chosen * penalty_unit(train)).fit(train, y)
        return model.coef_, model.predict, chosen
    return fit


def pca(train, y):
    full = PCA().fit(train)
    count = int(np.searchsorted(np.cumsum(full.explained_variance_ratio_), 0.9) + 1)
    model = PCA(min(count, len(y) // 2)).fit(train)
    line = LinearRegression().fit(model.transform(train), y)
    return line.coef_ @ model.components_, lambda rows: line.predict(model.transform(rows)), 0


def logistic(ratio):
    def fit(train, y):
        model = LogisticRegression(C=4 / (ratio * penalty_unit(train)), solver="newton-cg", tol=1e-10, max_iter=100000).fit(train, y)
        return model.coef_[0], model.decision_function, ratio
    return fit


def main():
    out = {}
    for name, p in (("few", 6), ("many", 90)):
        x, g = drawn(p)
        y = concept(x)
        answers = (y > 0.3).astype(float)
        out[name] = {
            "ridge": cross_validate(x, g, y, ridge(0.3)),
            "chosen": cross_validate(x, g, y, ridge(None)),
            "pca": cross_validate(x, g, y, pca),
            "logistic": cross_validate(x, g, answers, logistic(0.1)),
        }
    path = pathlib.Path(__file__).with_name("concepts.json")
    path.write_text(json.dumps(out, indent=1) + "\n")


main()
