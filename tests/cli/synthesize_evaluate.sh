# How alike patches are: two sets of phantoms of one kind and one with another stain, baselines, classes,
# a network's features, the page, threads; and what is refused.
make() { # NAME SEED SLIDES
    microtome phantom -q -o "$1" --slides "$3" --size 1024 --seed "$2" || exit
    microtome extract "$1/slides.csv" -q -o "$1/stores" --random 30 --patch 64 --mpp 0.5 >/dev/null 2>&1 || exit
}
make one 1 8
make two 2 6
echo "--- two sets of one kind, with baselines, by class"
microtome synthesize evaluate one/stores --against two/stores -q -o out --json >out.json || exit
cmp out.json out/evaluate.json
ls out
/usr/bin/python3 - <<'PY' || exit
import json
found = json.load(open("out.json"))
rows = {(row["what"], row["class"]): row for row in found["comparisons"]}
for what, of in rows:
    print(what, of or "all")
same, halves = rows["synthetic against real", None], rows["real: two random halves", None]
print(found["n_features"], "features;", sum(same["patches"]), "patches;", len(found["shifts"]), "shifts")
print("far" if same["frechet_infinity"] > 10 or same["two_sample_auc"] > 0.95 else "near")
print("covered" if same["coverage"] > 0.5 else "not covered", "halves alike" if halves["two_sample_p"] > 0.001 else "")
print(sorted(found["nuclei"]["real"])[0], found["nuclei"]["real"]["patches"], found["nuclei"]["real"]["nuclei"] > 50)
PY
echo "--- images: blurred copies are far, whatever their colours"
/usr/bin/python3 - <<'PY' || exit
import glob, os
import h5py, numpy as np
from PIL import Image, ImageFilter
os.makedirs("plain/0"), os.makedirs("blurred/0")
n = 0
for name in sorted(glob.glob("one/stores/*.h5")):
    with h5py.File(name) as store:
        found = []
        store.visititems(lambda key, item: found.append(key) if getattr(item, "ndim", 0) == 4 else None)
        for patch in store[found[0]][:10]:
            image = Image.fromarray(np.asarray(patch))
            image.save(f"plain/0/p_{n}_0.png")
            image.filter(ImageFilter.GaussianBlur(1.5)).save(f"blurred/0/p_{n}_0.png")
            n += 1
PY
microtome synthesize evaluate blurred --against plain -q --json >blurred.json || exit
microtome synthesize evaluate plain --against two/stores --train one/stores -q --json --mpp 0.5 >plain.json || exit
/usr/bin/python3 - <<'PY'
import json
blurred, plain = json.load(open("blurred.json")), json.load(open("plain.json"))
print("blurred:", "told apart" if blurred["comparisons"][0]["two_sample_auc"] > 0.99 else "not told apart")
print("further" if blurred["frechet"] > 5 * plain["frechet"] else "not further")
print("sharpness differs most" if any(word in blurred["shifts"][0]["feature"] for word in ("power", "chroma", "gradient", "glcm1")) else blurred["shifts"][0])
print(blurred["nuclei"]["real"]["not_measured"])
print([row["what"] for row in plain["comparisons"] if row["class"] is None])
PY
echo "--- any number of threads; resized; a network"
microtome synthesize evaluate one/stores --against two/stores -q --json --threads 1 | cmp - out.json
microtome synthesize evaluate one/stores --against two/stores -q --resize-px 32 | sed -n 1p
cat >small.yaml <<'YAML'
network: {name: scan_tiny, input_px: 144}
data: {train: [one/stores], resize_px: 144}
train: {epochs: 1, batch: 16}
YAML
microtome train small.yaml -q -o net >/dev/null 2>&1 || exit
microtome synthesize evaluate one/stores --against two/stores -q --model net --layer layer2 | sed -n 1p | sed 's/^.*: //'
echo "--- refused"
microtome synthesize evaluate one/stores -q
microtome synthesize evaluate one/stores --against nowhere.tar -q
microtome synthesize evaluate one/stores --against two/stores -q --layer layer2
microtome synthesize evaluate one/stores --against two/stores -q --model net --layer layer9 2>&1 | cut -c1-60
mkdir few && cp plain/0/p_1_0.png plain/0/p_2_0.png few
microtome synthesize evaluate few --against two/stores -q
microtome extract one/slides.csv -q -o small --random 5 --patch 48 --mpp 0.5 >/dev/null 2>&1
microtome synthesize evaluate one/stores --against small -q
echo "--- larger real ones are shrunk"
microtome synthesize evaluate small --against two/stores 2>&1 >/dev/null | grep shrunk
