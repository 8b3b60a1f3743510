#!/usr/bin/python3
"""Writes verdict/forest.json: scikit-learn's trees on data where no two splits are equally good,
its forests on synthetic data, and, where SHARED names the folder of shared data, its forests on
the features of CAMELYON16's training slides, judged on the test slides (mean of ten seeds)."""
import csv, glob, json, os
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdict", "forest.json")
SEEDS = range(10)

def data(rng, n, features):
    x = (np.round(rng.normal(size=(n, features)) * 1024) / 1024).astype(np.float32)  # exact
    odds = 1.2 * x[:, 0] - x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3])
    y = (odds + rng.logistic(size=n) > 0.3).astype(int)
    return x, y

def tree_case(seed, n, features, depth, leaf):
    """The first data from this seed on of which every order of features gives the same tree."""
    while True:
        x, y = data(np.random.default_rng(seed), n, features)
        trees = [DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf,
                                        random_state=s).fit(x, y) for s in range(20)]
        t = trees[0].tree_
        if all(np.array_equal(t.feature, other.tree_.feature) for other in trees):
            break
        seed += 1000
    share = t.value[:, 0, 1] / t.value[:, 0].sum(1)
    leaf_node = t.feature < 0
    return {"features": features, "depth": depth or 0, "min_leaf": leaf,
            "x": [float(v) for v in x.ravel()], "y": y.tolist(),
            "feature": np.where(leaf_node, -1, t.feature).tolist(),
            "threshold": np.where(leaf_node, 0, t.threshold).tolist(),
            "left": t.children_left.tolist(), "right": t.children_right.tolist(),
            "value": share.tolist(), "importances": trees[0].feature_importances_.tolist()}

def forests(train_x, train_y, test_x, test_y, **options):
    areas, unseen, importances = [], [], 0
    for seed in SEEDS:
        forest = RandomForestClassifier(200, random_state=seed, oob_score=True, **options)
        forest.fit(train_x, train_y)
        areas.append(roc_auc_score(test_y, forest.predict_proba(test_x)[:, 1]))
        unseen.append(roc_auc_score(train_y, forest.oob_decision_function_[:, 1]))
        importances = importances + forest.feature_importances_ / len(SEEDS)
    return {"auc": float(np.mean(areas)), "sd": float(np.std(areas)), "oob_auc": float(np.mean(unseen)),
            "importances": importances.tolist()}

def synthetic():
    rng = np.random.default_rng(77)
    train_x, train_y = data(rng, 150, 6)
    test_x, test_y = data(rng, 150, 6)
    train_x, test_x = np.round(train_x, 3), np.round(test_x, 3)
    return {"x": [float(f"{v:.3f}") for v in train_x.ravel()], "y": train_y.tolist(),
            "test_x": [float(f"{v:.3f}") for v in test_x.ravel()], "test_y": test_y.tolist(),
            **forests(train_x, train_y, test_x, test_y)}

def camelyon(folder):
    def read(kind, threshold):
        path, = glob.glob(f"{folder}/features/*_{kind}_{threshold}_*.csv")
        rows = list(csv.DictReader(open(path)))
        names = [n for n in rows[0] if n not in ("", "name", "tumor")]
        return ([r["name"].replace(".tif", "") for r in rows],
                np.array([[float(r[n]) for n in names] for r in rows]))
    truth = {r["slide_name"]: int(r["truth"]) for r in csv.DictReader(open(f"{folder}/reference.csv"))}
    out = {}
    for threshold in (5, 9):
        normal, tumour = read("normal", threshold)[1], read("tumor", threshold)[1]
        slides, test = read("test", threshold)
        y = np.repeat([0, 1], [len(normal), len(tumour)])
        out[str(threshold)] = forests(np.concatenate([normal, tumour]), y, test,
                                      [truth[s] for s in slides])
    return out

old = json.load(open(PATH)) if os.path.exists(PATH) else {}
shared = os.path.join(os.environ.get("SHARED", "absent"), "data", "camelyon16")
result = {"trees": [tree_case(1, 300, 5, 3, 10), tree_case(2, 200, 4, 2, 1),
                    tree_case(4, 300, 6, 4, 25)],
          "forest": synthetic(),
          "camelyon16": camelyon(shared) if os.path.isdir(shared) else old.get("camelyon16")}
with open(PATH, "w") as f:
    json.dump(result, f, separators=(",", ":"))
    f.write("\n")
