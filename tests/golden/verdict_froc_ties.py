#!/usr/bin/python3
"""Writes verdict/froc_ties.json: FROC of small cohorts with many equal scores, under both rules for ties. The official
rule is the challenge's arithmetic: scores of lesions are numpy.float32, those of false positives Python floats; numpy
compares an array of float32 with a float in single precision. (numpy before 2: from there on sorting a mixture of both
is no longer an order.)"""
import json, os
import numpy as np

RATES = [0.25, 0.5, 1, 2, 4, 8]

def curve(wrong, found, slides, lesions):
    thresholds = sorted(set(wrong) | set(found))[1:]
    lesion_scores = np.array(found)
    rates = [float((np.array(wrong) >= t).sum()) / slides for t in thresholds] + [0.0]
    sensitivities = [float((lesion_scores >= t).sum()) / lesions for t in thresholds] + [0.0]
    at = np.interp(RATES, rates[::-1], sensitivities[::-1])
    return {"points": [rates, sensitivities], "at": at.tolist(), "score": float(at.mean())}

def case(seed, slides, lesions, calls, digits):
    rng = np.random.default_rng(seed)
    wrong = [float(v) for v in rng.random(calls).round(digits)]
    found = [float(v) for v in rng.random(lesions).round(digits) * (rng.random(lesions) < 0.8)]
    single = [np.float32(v) for v in found]
    return {"slides": slides, "lesions": lesions, "wrong": wrong, "found": found,
            "equal": curve(wrong, found, slides, lesions), "official": curve(wrong, single, slides, lesions)}

def near(seed):
    """Scores so close that single precision cannot tell them apart."""
    out = case(seed, 3, 6, 12, 1)
    wrong = [v + d for v, d in zip(out["wrong"], np.random.default_rng(seed).choice([-1e-9, 0, 1e-9], 12))]
    return {**out, "wrong": wrong, "equal": curve(wrong, out["found"], 3, 6),
            "official": curve(wrong, [np.float32(v) for v in out["found"]], 3, 6)}

assert int(np.__version__.split(".")[0]) < 2
cases = [case(1, 4, 6, 10, 1), case(2, 5, 9, 30, 1), case(3, 2, 3, 4, 1), case(4, 12, 20, 60, 2), case(5, 3, 5, 8, 6),
         near(6), near(7)] + [case(seed, 6, 8, 25, 1) for seed in range(8, 20)]
print("largest difference:", max(abs(c["equal"]["score"] - c["official"]["score"]) for c in cases))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "froc_ties.json")
with open(path, "w") as f:
    json.dump({"cases": cases}, f, separators=(",", ":"))
    f.write("\n")
