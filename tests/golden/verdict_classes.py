#!/usr/bin/python3
"""Writes verdict/classes.json: areas of one class against the others, their means and intervals, confusion matrices
and their measures by scikit-learn."""
import json, os, warnings
import numpy as np
from sklearn import metrics

warnings.simplefilter("ignore")  # scikit-learn warns of classes that do not occur

def areas(labels, scores, average):
    return metrics.roc_auc_score(labels, scores, multi_class="ovr", average=average)

def interval(labels, scores, patients, rng, replicates=2000):
    """The rows of every class, or the patients that share their rarest class, are drawn again."""
    classes, counts = np.unique(labels, return_counts=True)
    rarest = {p: min(np.unique(labels[patients == p]), key=lambda k: (counts[k], k)) for p in np.unique(patients)}
    strata = [[np.flatnonzero(patients == p) for p in rarest if rarest[p] == k] for k in classes]
    found = {"macro": [], "weighted": []}
    while len(found["macro"]) < replicates:
        drawn = np.concatenate([rows[i] for rows in strata if rows for i in rng.integers(len(rows), size=len(rows))])
        if len(np.unique(labels[drawn])) == len(classes):
            for average in found:
                found[average].append(areas(labels[drawn], scores[drawn], average))
    return {average: [float(q) for q in np.quantile(found[average], [0.025, 0.975])] for average in found}

def roc_case(rng, n, n_classes, n_patients, digits):
    labels = rng.integers(n_classes, size=n)
    labels[:n_classes] = np.arange(n_classes)
    patients = rng.integers(n_patients, size=n) if n_patients else np.arange(n)
    logits = rng.normal(size=(n, n_classes)) + 0.7 * rng.normal(size=(max(patients) + 1, n_classes))[patients]
    logits[np.arange(n), labels] += 1.3
    scores = np.exp(logits)
    scores = np.round(scores / scores.sum(1, keepdims=True), digits)
    scores[:, 0] += 1 - scores.sum(1)  # rounding must not change the sum
    return {"labels": labels.tolist(), "scores": scores.T.tolist(), "patients": patients.tolist() if n_patients else None,
            "areas": [metrics.roc_auc_score(labels == k, scores[:, k]) for k in range(n_classes)],
            "macro": areas(labels, scores, "macro"), "weighted": areas(labels, scores, "weighted"),
            "interval": interval(labels, scores, patients, rng)}

def finite(values):
    return [None if np.isnan(v) else float(v) for v in np.atleast_1d(values)]

def confusion_case(truth, called, n):
    names = np.arange(n)
    counts = metrics.confusion_matrix(truth, called, labels=names)
    nan = {"labels": names, "zero_division": np.nan}
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(truth, called, **nan)
    precision = np.where(counts.sum(0) > 0, precision, np.nan)
    recall = np.where(counts.sum(1) > 0, recall, np.nan)
    f1 = np.where(counts.sum(0) + counts.sum(1) > 0, np.nan_to_num(f1), np.nan)
    specificity = [metrics.recall_score(truth != k, called != k, zero_division=np.nan) if (truth != k).any() else np.nan
                   for k in names]
    kappas = [metrics.cohen_kappa_score(truth, called, labels=names, weights=w) for w in (None, "linear", "quadratic")]
    lone = len(np.unique(truth)) == 1 or len(np.unique(called)) == 1
    return {"counts": counts.tolist(), "precision": finite(precision), "recall": finite(recall), "f1": finite(f1),
            "specificity": finite(specificity), "accuracy": metrics.accuracy_score(truth, called),
            "balanced_accuracy": metrics.balanced_accuracy_score(truth, called),
            "macro_f1": metrics.f1_score(truth, called, average="macro"),
            "weighted_f1": metrics.f1_score(truth, called, average="weighted"), "kappa": finite(kappas),
            "matthews": None if lone else metrics.matthews_corrcoef(truth, called)}

def random_case(rng, n, classes, right, present=None):
    truth = rng.choice(present if present is not None else classes, size=n)
    called = np.where(rng.random(n) < right, truth, rng.integers(classes, size=n))
    return confusion_case(truth, called, classes)

rng = np.random.default_rng(17)
roc = [roc_case(rng, 90, 3, 0, 6), roc_case(rng, 150, 4, 40, 3), roc_case(rng, 60, 3, 0, 1)]
confusion = [random_case(rng, 80, 2, 0.6), random_case(rng, 200, 3, 0.5), random_case(rng, 150, 5, 0.3),
             random_case(rng, 40, 4, 0.7, [0, 2]),                            # two classes do not occur
             confusion_case(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]), 3),  # all is called one class
             confusion_case(np.array([1, 1, 1]), np.array([1, 1, 1]), 2)]        # all is one class
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "classes.json")
with open(path, "w") as f:
    json.dump({"roc": roc, "confusion": confusion}, f, separators=(",", ":"), allow_nan=False)
    f.write("\n")
