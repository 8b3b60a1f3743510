#!/usr/bin/env python3
"""Writes explain_belief.json: four maps with many equal values and their rank correlations by SciPy."""
import json
import os
import sys

import numpy
from scipy.stats import spearmanr

here = os.path.dirname(os.path.abspath(__file__))
rng = numpy.random.default_rng(7)
plain = numpy.round(rng.normal(0, 1, 60), 1)
maps = [plain, numpy.round(numpy.maximum(plain + rng.normal(0, 1, 60), 0), 1), -numpy.abs(plain),
        rng.integers(0, 3, 60).astype(float)]
result = {"maps": [list(m) for m in maps], "spearman": [list(row) for row in spearmanr(numpy.stack(maps), axis=1)[0]]}
with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "explain_belief.json"), "w") as out:
    json.dump(result, out)
    out.write("\n")
