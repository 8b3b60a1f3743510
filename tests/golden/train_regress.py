#!/usr/bin/env python3
"""Writes train_regress.bin: measures of regression by scikit-learn and SciPy.

Format: records.py, written here without PyTorch. A number that needs more than a float is a record of two: the float
and what is missing.
"""
import os
import struct
import sys

import numpy
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

here = os.path.dirname(os.path.abspath(__file__))
out = open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "train_regress.bin"), "wb")


def record(name, values):
    values = numpy.asarray(values, numpy.float32)
    out.write(name.encode() + b"\0" + struct.pack("<iq", 1, len(values)) + values.tobytes())


def precise(name, x):
    high = float(numpy.float32(x))
    record(name, [high, x - high])


rng = numpy.random.default_rng(5)
truth = rng.gamma(2, 30, 400)
cases = {
    "plain": (truth, truth + rng.normal(0, 20, 400)),
    "ties": (numpy.round(rng.random(300), 1), numpy.round(rng.random(300) ** 2, 1)),
    "bad": (truth, 100 - truth * 0.3 + rng.normal(0, 5, 400)),
    "two": (numpy.array([1.0, 2.0]), numpy.array([1.5, 1.75])),
}
for name, (target, predicted) in cases.items():
    target, predicted = numpy.float32(target), numpy.float32(predicted)
    record(name + "/target", target)
    record(name + "/predicted", predicted)
    t, p = numpy.float64(target), numpy.float64(predicted)
    precise(name + "/mae", mean_absolute_error(t, p))
    precise(name + "/rmse", mean_squared_error(t, p) ** 0.5)
    precise(name + "/r2", r2_score(t, p))
    precise(name + "/pearson", pearsonr(t, p)[0])
    precise(name + "/spearman", spearmanr(t, p)[0])
