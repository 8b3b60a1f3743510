# explain map of images and stores: what is written, kept, refused; the same bytes on any number of threads.
python3 - <<'PY' || { echo "no PIL" >&2; exit 77; }
import numpy as np
from PIL import Image
rng = np.random.default_rng(1)
y, x = np.mgrid[:224, :224]
for name in ("x", "y & <b>"):
    image = rng.normal((225, 180, 210), 8, (224, 224, 3))
    for cy, cx in rng.integers(10, 214, (30, 2)):
        image[(y - cy) ** 2 + (x - cx) ** 2 < 60] = rng.normal((110, 70, 150), 12)
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(name + ".png")
Image.new("RGB", (224, 224), (200, 150, 190)).save("flat.png")
PY
run() { microtome explain map --network scan_tiny --init-seed 1 --belief-steps 4 --belief-orders 1 --belief-subjects 1 -q "$@"; }

echo "== one image, two methods"
run x.png --method gradcam,gradcam++ --layer layer3 --class 1 -o out --threads 1 >table.txt
head -n 1 table.txt
cut -d' ' -f1 table.txt | tail -n +2
ls out out/x
python3 - <<'PY'
import json, numpy as np
e = json.load(open("out/explain.json"))
s = e["subjects"][0]
print(sorted(e), sorted(s), sep="\n")
print(s["class"], s["file"], s["width"], s["height"], s["seen"], s["model_hash"] == e["model_hash"], s["slide"])
assert s["score"] == s["scores"]["class1"] and abs(sum(s["scores"].values()) - 1) < 1e-6
for m in s["maps"]:
    a, raw = np.load(f"out/x/{m['name']}.npy"), np.load(f"out/x/{m['name']}_raw.npy")
    print(m["name"], m["layer"], a.dtype, a.shape, raw.dtype, raw.shape, a.min(), a.max())
    assert m["raw_size"] == list(raw.shape) and m["raw_min"] == raw.min() and m["raw_max"] == raw.max()
    # bilinear with half-pixel centres, then (v - min) / (max - min)
    at = lambda n, k: np.clip((np.arange(n) + .5) * k / n - .5, 0, k - 1)
    ty, tx = at(224, raw.shape[0]), at(224, raw.shape[1])
    y0, x0 = np.floor(ty).astype(int), np.floor(tx).astype(int)
    y1, x1 = np.minimum(y0 + 1, raw.shape[0] - 1), np.minimum(x0 + 1, raw.shape[1] - 1)
    fy, fx = (ty - y0)[:, None], (tx - x0)[None]
    big = (raw[np.ix_(y0, x0)] * (1 - fy) * (1 - fx) + raw[np.ix_(y0, x1)] * (1 - fy) * fx +
           raw[np.ix_(y1, x0)] * fy * (1 - fx) + raw[np.ix_(y1, x1)] * fy * fx)
    assert abs((big - big.min()) / (big.max() - big.min()) - a).max() < 1e-5
    assert set(m["belief"]) == {"deletion", "random_deletion", "insertion", "random_insertion", "better_by",
                                "deletion_curve", "insertion_curve"}
print(e["summary"]["redrawn"]["subjects"], [len(m["correlation"]) for m in e["summary"]["redrawn"]["maps"]])
print([round(float(v), 6) for v in np.diag(e["summary"]["agreement"])])
PY
echo "== the score is that of model run"
microtome model run x.png --network scan_tiny --init-seed 1 --classes 2 --json |
    python3 -c 'import json, sys; a = json.load(sys.stdin)[0]["scores"]["class1"]; b = json.load(open("out/explain.json"))["subjects"][0]["score"]; print(abs(a - b) < 1e-6)'
echo "== again: kept; with other options: refused, replaced"
touch -d 2001-01-01 out/x/gradcam.npy
run x.png --method gradcam,gradcam++ --layer layer3 --class 1 -o out >/dev/null && stat -c %y out/x/gradcam.npy | cut -c1-4
run x.png --method gradcam --class 0 -o out || echo "exit $?"
run x.png --method gradcam --class 0 -o out --overwrite >/dev/null && grep -c '"class": "class0"' out/explain.json
echo "== threads: the same bytes; names are escaped; a constant image fails alone"
for threads in 1 3; do
    run x.png "y & <b>.png" flat.png --method gradcam,ig,smoothgrad --ig-steps 4 --smooth-samples 3 -o "t$threads" --threads "$threads" >/dev/null || echo "exit $?"
done
diff -r t1 t3 && echo same
ls t1
grep -o '<h3>.*</h3>' t1/index.html
grep -c 'src="y%20%26%20%3Cb%3E/gradcam.png"' t1/index.html
touch -d 2001-01-01 t1/y*/gradcam.npy
run y*.png --method gradcam,ig,smoothgrad --ig-steps 4 --smooth-samples 3 -o t1 >/dev/null && stat -c %y t1/y*/gradcam.npy | cut -c1-4 # alone: kept too
grep -c 'class="good">cannot be told' t1/index.html
echo "== layers side by side; an image called as a file of the results"
cp x.png redrawn.json.png
run redrawn.json.png --layer layer2,layer3.0 -o layers | tail -n 1
ls layers layers/redrawn.json~1/*.npy
echo "== a model that resizes and crops: NaN where it does not look; from a tar"
mkdir run7 && echo '{"spec_version": "1.0", "architecture": "scan_tiny", "num_classes": 2, "patch_size_pixels": 128,
"spacing_um_px": 0.25, "class_names": ["normal", "tumor"], "transform": [{"name": "Resize", "arguments": {"size": 256}},
{"name": "CenterCrop", "arguments": {"size": 224}}, {"name": "ToTensor"}], "microtome": {"network": "scan_tiny"}}' >run7/config.json
microtome model convert --network scan_tiny --init-seed 1 --classes 2 -o run7/model.safetensors -q
python3 -c 'from PIL import Image; Image.open("x.png").crop((0, 0, 128, 128)).save("small.png")'
tar cf images.tar small.png
microtome explain map images.tar --model run7 --belief-steps 4 --belief-orders 1 --belief-subjects 1 --class tumor -o crop -q >/dev/null
microtome model run small.png --model run7 --json >scores.json
python3 - <<'PY'
import json, numpy as np
s = json.load(open("crop/explain.json"))["subjects"][0]
a = np.load("crop/small/gradcam.npy")
print(s["name"], s["file"], s["seen"], s["input_size"], a.shape, np.isnan(a).sum() == 128 ** 2 - 112 ** 2, np.isfinite(a[8:120, 8:120]).all())
print(abs(json.load(open("scores.json"))[0]["scores"]["tumor"] - s["score"]) < 1e-6)
PY
