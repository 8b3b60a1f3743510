#!/usr/bin/python3
"""Writes verdict/measures.json: average precision, precision-recall curves, Brier scores and calibration curves by
scikit-learn, and intervals of the area by drawing patients with numpy."""
import json, os
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score, brier_score_loss, precision_recall_curve, roc_auc_score

def by_patient(scores, labels, patients, rng, replicates=4000):
    """Patients with a positive slide and those without one are drawn again, each kind by itself."""
    slides = {p: np.flatnonzero(patients == p) for p in np.unique(patients)}
    kinds = [[s for s in slides.values() if labels[s].any() == kind] for kind in (False, True)]
    areas = []
    while len(areas) < replicates:
        drawn = np.concatenate([kind[i] for kind in kinds if kind for i in rng.integers(len(kind), size=len(kind))])
        if 0 < labels[drawn].sum() < len(drawn):
            areas.append(roc_auc_score(labels[drawn], scores[drawn]))
    return [float(q) for q in np.quantile(areas, [0.025, 0.975])]

def patients_of(scores, labels, patients, how):
    """Label and score of every patient, by number."""
    rows = [np.flatnonzero(patients == p) for p in np.unique(patients)]
    return [int(labels[r].max()) for r in rows], [float(how(scores[r])) for r in rows]

def case(rng, n, n_patients, digits, bins, mixed):
    patients = rng.integers(n_patients, size=n)
    of_patient = rng.normal(size=n_patients)
    ill = rng.random(n_patients) < 0.5
    labels = (ill[patients] & (rng.random(n) < 0.6 if mixed else True)).astype(int)
    labels[:2] = 0, 1
    logits = 1.5 * labels - 0.7 + of_patient[patients] + 0.5 * rng.normal(size=n)
    scores = np.round(1 / (1 + np.exp(-logits)), digits)
    precision, recall, _ = precision_recall_curve(labels, scores)
    share, mean = calibration_curve(labels, scores, n_bins=bins)
    patient_labels, highest = patients_of(scores, labels, patients, np.max)
    _, means = patients_of(scores, labels, patients, np.mean)
    return {"labels": labels.tolist(), "scores": scores.tolist(), "patients": patients.tolist(), "bins": bins,
            "average_precision": average_precision_score(labels, scores), "precision": precision[::-1].tolist(),
            "recall": recall[::-1].tolist(), "brier": brier_score_loss(labels, scores), "share": share.tolist(),
            "mean": mean.tolist(), "bootstrap": by_patient(scores, labels, patients, rng),
            "patient_auc_max": roc_auc_score(patient_labels, highest),
            "patient_auc_mean": roc_auc_score(patient_labels, means)}

rng = np.random.default_rng(9)
cases = [case(rng, 120, 30, 6, 10, True), case(rng, 80, 20, 1, 10, False), case(rng, 200, 25, 2, 7, True),
         case(rng, 40, 12, 1, 20, False)]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "measures.json")
with open(path, "w") as f:
    json.dump({"cases": cases}, f, separators=(",", ":"))
    f.write("\n")
