# explain map and bad input: every message names the file, the fact and the remedy.
python3 - <<'PY' || { echo "no PIL" >&2; exit 77; }
import numpy as np
from PIL import Image
rng = np.random.default_rng(1)
Image.fromarray(rng.integers(100, 200, (224, 224, 3), dtype=np.uint8)).save("x.png")
Image.fromarray(rng.integers(100, 200, (20, 20, 3), dtype=np.uint8)).save("small.png")
PY
run() { microtome explain map --network scan_tiny --init-seed 1 --belief-steps 2 --belief-orders 1 --belief-subjects 1 -q -o out "$@" || echo "exit $?"; }
echo "== nothing to do, nothing there"
microtome explain || echo "exit $?"
microtome explain map || echo "exit $?"
microtome explain mapp x.png -o out || echo "exit $?"
microtome explain map x.png -o out || echo "exit $?"
run missing.png
mkdir empty && run empty
echo "== methods, layers, classes"
run x.png --method gradcm
run x.png --layer fc
run x.png --layer layr3
run x.png --layer ,layer3
run x.png --class tumour
run x.png --method rollout
microtome explain map x.png --network vit_small_patch16_224 --method cam -q -o out || echo "exit $?"
echo "== a network that does not classify"
microtome explain map x.png --network unet_small -q -o out || echo "exit $?"
echo "== heatmaps are needed, or have no such window"
run x.png --pick lesions
run x.png --stitch all
microtome phantom -q -o c --slides 1 --size 1024 --seed 1
microtome predict c/slides.csv --network scan_tiny --init-seed 1 --stride 64 --export none -q -o heat >/dev/null
run heat --min-score 1
run heat --pick lesions --min-score 1
run heat --network scan_small
run heat --class stroma
echo "== images that are too small for the square, or for the layer, fail alone"
python3 -c 'from PIL import Image; i = Image.open("x.png"); i.crop((0, 0, 64, 64)).save("s64.png"); i.crop((0, 0, 32, 32)).save("s32.png")'
for small in "s64.png --method occlusion --occlusion 200" "s32.png"; do
    microtome explain map x.png $small --network resnet18 --init-seed 1 --belief-steps 2 --belief-orders 1 --belief-subjects 1 -q -o sizes --overwrite --occlusion-stride 20 >/dev/null || echo "exit $?"
done
echo "== an image that is too small fails alone"
run x.png small.png >/dev/null
ls out
echo "== no image can be read"
: >nothing.png
microtome explain map nothing.png --network scan_tiny --init-seed 1 -q -o nothing || echo "exit $?"
