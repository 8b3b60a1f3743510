#!/usr/bin/env python3
"""Writes audit.json: exact intervals of shares, beta functions and chances of the one-run audit by SciPy, and
a logistic regression by scikit-learn (made with SciPy 1.17, scikit-learn 1.9)."""
import json
from pathlib import Path

import numpy as np
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

shares = []
for k, n in [(0, 10), (1, 10), (10, 10), (3, 1000), (50, 5000), (777, 1000), (1, 100000), (49999, 100000)]:
    interval = stats.binomtest(k, n).proportion_ci(confidence_level=0.95, method="exact")
    shares.append({"k": k, "n": n, "low": interval.low, "high": interval.high})
betas = [{"a": a, "b": b, "x": x, "share": float(special.betainc(a, b, x))}
         for a, b, x in [(0.5, 0.5, 0.3), (2, 3, 0.9), (100, 5, 0.97), (1e4, 2e4, 0.334), (3, 1e5, 1e-5)]]


def chance(m, r, v, eps, delta):
    """The largest chance of v of r right guesses, of m coins, under (eps, delta): Steinke et al. 2023, theorem 5.2."""
    right = 1 / (1 + np.exp(-eps))
    below = np.cumsum(stats.binom.pmf(np.arange(v - 1, -1, -1), r, right))
    most = max([0, *(below / np.arange(1, v + 1))])
    return float(min(1, stats.binom.sf(v - 1, r, right) + 2 * m * delta * most))


runs = [{"m": m, "r": r, "v": v, "epsilon": e, "delta": d, "chance": chance(m, r, v, e, d)}
        for m, r, v, e, d in [(1000, 100, 70, 0.5, 0), (1000, 100, 70, 0.5, 1e-5), (1000, 1000, 560, 0.1, 1e-5),
                              (10000, 200, 190, 2, 1e-6), (500, 20, 20, 1, 1e-3)]]

n, p = 60, 3
i, j = np.meshgrid(np.arange(n), np.arange(p), indexing="ij")
x = np.sin(1.7 * i + 0.9 * j) + 0.3 * np.cos(0.37 * i * j)
y = (np.sin(1.7 * np.arange(n)) + np.cos(5.1 * np.arange(n)) > 0.2).astype(int)
fit = LogisticRegression(C=1, tol=1e-12, max_iter=10000).fit(x, y)
result = {"written_by": "tests/golden/audit.py", "shares": shares, "betas": betas, "runs": runs,
          "logistic": [*fit.coef_[0], fit.intercept_[0]]}
Path(__file__).with_name("audit.json").write_text(json.dumps(result, indent=1) + "\n")
