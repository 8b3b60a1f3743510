"""How far two trainings are apart, for tests.

apart.py FOLDER REFERENCE OTHER [STEP]   weights and scores of FOLDER against REFERENCE: no further than ten times
                                         OTHER, which differs from REFERENCE by rounding alone; with STEP, the
                                         weights and statistics of the checkpoints after that step
apart.py FOLDER REFERENCE LIMIT          whether any weight differs by more than LIMIT, a number
"""
import csv
import os
import sys

import numpy as np
from weights import read


def weights(folder, step):
    if not step:
        return read(folder)
    tensors = read("%s/checkpoints/step-%010d.safetensors" % (folder, int(step)))
    return {name: values for name, values in tensors.items() if name.startswith("weights/")}


def distance(a, b, step):
    a, b = weights(a, step), weights(b, step)
    return np.sqrt(sum(float(np.square(a[name].astype(float) - b[name]).sum()) for name in a))


def scores(folder):
    rows = csv.DictReader(open(folder + "/scores.csv"))
    return np.array([float(row.get("prob_tumor", row.get("dice_nuclei"))) for row in rows])


def main():
    folder, reference, other = sys.argv[1:4]
    if os.path.isdir(other):
        step = sys.argv[4] if len(sys.argv) > 4 else None
        found, rounding = distance(folder, reference, step), distance(other, reference, step)
        near = 0 < found <= 10 * rounding
        if not step:
            near = near and np.abs(scores(folder) - scores(reference)).max() < 1e-3
        words = "apart by no more than ten times rounding" if near else "%g, rounding %g" % (found, rounding)
    else:
        a, b = read(folder), read(reference)
        most = max(float(np.abs(a[name] - b[name]).max()) for name in a)
        words = "%s by %s" % ("apart" if most > float(other) else "not apart", other)
    print("%s and %s: %s" % (folder, reference, words))


main()
