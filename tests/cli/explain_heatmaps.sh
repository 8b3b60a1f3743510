# explain map of windows of slides: picked, scored as predict scored them, stitched over lesions.
microtome phantom -q -o c --slides 2 --size 1024 --seed 1
net="--network scan_tiny --init-seed 1"
predict() { microtome predict c/slides.csv $net --export none -q "$@" >/dev/null; }
run() { microtome explain map $net --belief-steps 2 --belief-orders 1 --belief-subjects 1 -q "$@" >/dev/null; }
predict -o plain --stride 32
predict -o other --stride 48 --stain macenko --mpp 0.4 --mode window
microtome extract c/slides.csv -o patches --dense --patch 224 --margin 64 -q >/dev/null
microtome predict patches/*.h5 $net --stride 32 -o stored --export none -q >/dev/null

cat >check.py <<'PY'
import json, sys
import numpy as np
folder, heat = sys.argv[1:]
e = json.load(open(folder + "/explain.json"))
worst, far, place = 0, True, True
for s in e["subjects"]:
    worst = max(worst, abs(s["score"] - s["picked_score"]))
    h = json.load(open(f"{heat}/{s['slide']}/heatmap.json"))
    column, row = [round((s[k] / h["downsample"] + h["window"] // 2 - o) / h["stride"])
                   for k, o in zip(("x_l0", "y_l0"), h["origin"])]
    place &= np.load(f"{heat}/{s['slide']}/heatmap.npy")[row, column, 1] == np.float32(s["picked_score"])
    side = h["window"] * h["downsample"]
    far &= all(t is s or t["slide"] != s["slide"] or t["lesion"] != s["lesion"] or
               max(abs(t["x_l0"] - s["x_l0"]), abs(t["y_l0"] - s["y_l0"])) >= side - 1 for t in e["subjects"])
print(len(e["subjects"]), "windows, as scored:", worst < 2e-6, "apart:", far, "in place:", bool(place))
PY
echo "== strongest, with stains and another um/px, of a store, random"
run plain --min-score 0.3 --top 2 -o e_plain && python3 check.py e_plain plain
run other --min-score 0.3 --top 1 -o e_other && python3 check.py e_other other
run stored --min-score 0.3 --top 1 -o e_stored && python3 check.py e_stored stored
run plain --pick random --seed 3 --top 2 -o e_random && python3 check.py e_random plain
python3 - <<'PY'
import json, numpy as np
e = json.load(open("e_plain/explain.json"))
for slide in sorted({s["slide"] for s in e["subjects"]}):
    best = np.nanmax(np.load(f"plain/{slide}/heatmap.npy")[..., 1])
    print(slide, [s["picked_score"] for s in e["subjects"] if s["slide"] == slide][0] == best)
    g = json.load(open(f"e_plain/{slide}.geojson"))["features"]
    s = [s for s in e["subjects"] if s["slide"] == slide]
    x = [p[0] for f in g for ring in f["geometry"]["coordinates"] for p in ring]
    print(len(g) > 0, min(x) >= min(t["x_l0"] for t in s), max(x) <= max(t["x_l0"] for t in s) + 224, g[0]["properties"]["classification"]["name"])
PY
echo "== lesions, stitched: a heatmap that other commands read"
run plain --pick lesions --min-score 0.5 --top 1 --method gradcam,cam -o l1 --threads 1
run plain --pick lesions --min-score 0.5 --top 1 --method gradcam,cam -o l3 --threads 3
diff -r l1 l3 && echo same
python3 check.py l1 plain
ls l1/maps
for slide in l1/maps/gradcam/*; do ls "$slide"; done | sort -u
python3 - <<'PY'
import glob, json, numpy as np
for folder in sorted(glob.glob("l1/maps/gradcam/*")):
    h, a = json.load(open(folder + "/heatmap.json")), np.load(folder + "/heatmap.npy")
    s = np.load(folder.replace("l1/maps/gradcam", "plain") + "/heatmap.npy")[..., 1]
    stride = h["stride"]
    print(h["classes"], stride, h["window"], a.dtype, a.shape == (-(-1024 // stride), -(-1024 // stride), 1), h["number"]["min"] <= np.nanmin(a) < np.nanmax(a) <= h["number"]["max"])
    # every cell of a lesion has a value, and no cell without a score has one
    at = np.minimum((np.arange(a.shape[0]) * stride + stride // 2) // 32, s.shape[0] - 1)
    scored = s[np.ix_(at, at)]
    print(bool(np.isnan(a[..., 0][np.isnan(scored)]).all()), np.isfinite(a[..., 0]).sum() > 0)
PY
echo "== report: windows beside their maps; a stitched map is not taken for the scores"
microtome report plain l1 -o page -q
grep -o 'Why <bdi>[^<]*</bdi>[^<]*' page/index.html
grep -o 'slides/1/why[^"]*' page/index.html
ls page/slides/1/why*
grep -c 'score of <bdi' page/index.html
echo "== kept"
touch -d 2001-01-01 l1/maps/gradcam/*/heatmap.npy
run plain --pick lesions --min-score 0.5 --top 1 --method gradcam,cam -o l1 && stat -c %y l1/maps/gradcam/*/heatmap.npy | cut -c1-4 | sort -u
echo "== a slide that is gone fails alone"
mv c/slides/patient_000_node_0.tiff away.tiff
run plain --min-score 0.3 --top 1 -o gone || echo "exit $?"
grep -c '"error"' gone/explain.json
mv away.tiff c/slides/patient_000_node_0.tiff
run plain --min-score 0.3 --top 1 -o gone && grep -c '"error"' gone/explain.json
