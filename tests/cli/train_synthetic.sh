# Synthetic patches in training: beside real ones, in the share asked for, never in validation or
# testing; the same on any number of threads.
microtome phantom -q -o cohort --slides 12 --size 1024 --seed 1 || exit
microtome extract cohort/slides.csv -q -o stores --random 10 --patch 160 --mpp 0.5 >/dev/null 2>&1 || exit
# A store that a model might have made: one of these, marked as synthetic; and images of it.
/usr/bin/python3 - <<'PY' || exit
import glob, os, shutil
import h5py, numpy as np
from PIL import Image, PngImagePlugin
os.makedirs("made"), os.makedirs("png"), os.makedirs("plain")
name = sorted(glob.glob("stores/*.h5"))[0]
shutil.copy(name, "made/samples.h5")
with h5py.File("made/samples.h5", "r+") as store:
    store.attrs["synthetic"] = '{"model": "0123"}'
    found = []
    store.visititems(lambda key, item: found.append(key) if getattr(item, "ndim", 0) == 4 else None)
    patches = np.asarray(store[found[0]])
note = PngImagePlugin.PngInfo()
note.add_text("Comment", "synthetic patch: {}")
for i, patch in enumerate(patches):
    Image.fromarray(patch).save(f"png/synthetic_seed0_{i:06d}_class{i % 2}.png", pnginfo=note)
    Image.fromarray(patch).save(f"plain/p{i % 4}_{i}_{i}_class{i % 2}.png")
Image.fromarray(patches[0]).save("png/grid.png", pnginfo=note)
open("png/samples.json", "w").write("{}")
Image.fromarray(patches[0]).save("plain/p1_77_77_class1.png", pnginfo=note)
PY
cat >run.yaml <<'YAML'
network: { name: scan_tiny, input_px: 144 }
data: { train: [stores], synthetic: [made, png] }
train: { epochs: 1, batch: 8 }
YAML
say() { # what training says of its data
    microtome train run.yaml -o "$1" "${@:2}" 2>&1 | grep -o '^[0-9]* patches for training.*\|^microtome.*'
}
echo "--- all once; a share of every epoch"
say once
say half --set data.synthetic_share=0.5
/usr/bin/python3 -c 'import json; print(json.load(open("once/run.json"))["data"])' 2>/dev/null || grep -A6 '"data"' once/run.json
echo "--- threads"
same() { sha256sum <"$1/model.safetensors"; }
microtome train run.yaml -q -o one --threads 1 --set data.synthetic_share=0.3 --set data.workers=1 --set train.batch=8 >/dev/null
microtome train run.yaml -q -o two --threads 2 --set data.synthetic_share=0.3 --set data.workers=2 --set train.batch=8 >/dev/null
[ "$(same one)" = "$(same two)" ] && echo "same weights"
[ "$(same one)" != "$(same once)" ] && echo "other than without a share"
echo "--- refused"
for key in train val test; do
    say bad --set "data.$key=[made]"
done
say bad --set data.train=[png]
say bad --set 'data.val=[plain]' --set data.patient='^(p[0-9])_'
say bad --set data.synthetic=[stores]
say bad --set data.synthetic=[] --set data.synthetic_share=0.5
