# explain map by changed images (LIME, occlusion, Score-CAM): what the maps hold, the same bytes on any number of
# threads, settings that cannot be.
python3 - <<'PY' || { echo "no PIL" >&2; exit 77; }
import numpy as np
from PIL import Image
rng = np.random.default_rng(1)
y, x = np.mgrid[:224, :224]
image = rng.normal((225, 180, 210), 8, (224, 224, 3))
for cy, cx in rng.integers(10, 214, (30, 2)):
    image[(y - cy) ** 2 + (x - cx) ** 2 < 60] = rng.normal((110, 70, 150), 12)
Image.fromarray(image.clip(0, 255).astype(np.uint8)).save("x.png")
PY
run() { microtome explain map x.png --network scan_tiny --init-seed 1 --belief-steps 2 --belief-orders 1 --belief-subjects 1 -q "$@"; }

echo "== maps"
run --method lime,occlusion,scorecam --lime-samples 40 --lime-segments 20 --occlusion 56 -o one --threads 1 >/dev/null
python3 - <<'PY'
import numpy as np
for name in ("lime", "occlusion", "scorecam"):
    a, raw = np.load(f"one/x/{name}.npy"), np.load(f"one/x/{name}_raw.npy")
    assert a.shape == (224, 224) and np.isfinite(a).all() and abs(a).max() == 1
    print(name, raw.shape, "signed" if a.min() < 0 else "0 to 1")
assert 10 <= len(np.unique(np.load("one/x/lime_raw.npy"))) <= 25  # one value for each superpixel
raw = np.load("one/x/occlusion_raw.npy")  # steps of 28 px
print(all((raw[i:i + 28, j:j + 28] == raw[i, j]).all() for i in range(0, 224, 28) for j in range(0, 224, 28)))
PY
echo "== threads and seeds"
run --method lime,occlusion,scorecam --lime-samples 40 --lime-segments 20 --occlusion 56 -o three --threads 3 >/dev/null
diff -r one three && echo same
run --method lime --lime-samples 40 --lime-segments 20 -o other --seed 2 >/dev/null
cmp -s one/x/lime_raw.npy other/x/lime_raw.npy || echo "other samples"
echo "== refused"
run --method occlusion --occlusion 300 -o bad || echo "exit $?"
run --method occlusion --occlusion 20 --occlusion-stride 30 -o bad || echo "exit $?"
run --method scorecam --layer fc -o bad || echo "exit $?"
ls bad 2>/dev/null
true
