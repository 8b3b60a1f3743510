# Slides that a network takes whole: heatmaps as of any prediction, and a score for each slide.
microtome phantom -o c --slides 2 --size 2048 --seed 1 --quiet
mkdir run && microtome model convert --network scan_tiny --init-seed 1 --classes 2 -o run/model.safetensors --quiet
config() { # HOW
    cat >run/config.json <<END_OF_CONFIG
{"spec_version": "1.0", "architecture": "scan_tiny", "num_classes": 2, "patch_size_pixels": 224,
 "class_names": ["normal", "tumor"], "transform": [{"name": "ToTensor"}],
 "microtome": {"network": "scan_tiny", "whole": {$1, "tissue": "process", "margin_um": 50, "background": "white"}}}
END_OF_CONFIG
}
config '"long_side_px": 600'
run() { microtome predict --model run --threads 2 --quiet "$@"; }
columns() { awk '{ print $1, $2, $3, $4, $NF }'; } # all but scores

echo "== as the model says: whole, at its long side"
run c/slides -o h | columns
ls h/patient_000_node_0
head -n 1 h/slides.csv
grep -E '"(mode|stride|classes)"' h/patient_000_node_0/heatmap.json
grep -o 'whole map=[a-z]*' h/patient_000_node_0/heatmap.json
sed -n 's/.*"image": {"x": [0-9]*, "y": [0-9]*, "width": \([0-9]*\), "height": \([0-9]*\).*/long side \1 or \2/p' \
    h/patient_000_node_0/slide.json
echo "== kept, then exports alone"
run c/slides -o h | columns
rm h/patient_000_node_1/overlay.png
run c/slides -o h | columns
echo "== the same on one thread, and in the order of other slides"
microtome predict --model run c/slides/patient_000_node_1.tiff -o h1 --threads 1 --quiet --export none | columns
cmp h/patient_000_node_1/heatmap.npy h1/patient_000_node_1/heatmap.npy && echo "the same bytes"
cmp h/patient_000_node_1/slide.json h1/patient_000_node_1/slide.json && echo "the same score"
echo "== made again where the heatmap is gone"
rm h1/patient_000_node_1/heatmap.*
microtome predict --model run c/slides/patient_000_node_1.tiff -o h1 --threads 1 --quiet --export none | columns
cmp h/patient_000_node_1/heatmap.npy h1/patient_000_node_1/heatmap.npy && echo "the same bytes"
echo "== Grad-CAM, at a resolution"
config '"mpp": 2'
sed -i 's/"patch_size/"spacing_um_px": 2, "patch_size/' run/config.json
run c/slides -o g --map gradcam --stride 8 | columns
grep -o 'whole map=[a-z]*' g/patient_000_node_0/heatmap.json
echo "== what takes heatmaps and scores takes these"
microtome evaluate pixels g --truth c/slides.csv | awk '{ print $1, $2, $3 }'
microtome evaluate roc h/slides.csv --truth c/slides.csv --bootstrap 0 2>/dev/null | awk '{ print $1, $2, $3 }'
microtome report h -o report --quiet
echo "== a slide without tissue"
/usr/bin/python3 -c 'import struct, zlib
def chunk(name, data): return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
rows = zlib.compress(b"".join(b"\0" + b"\xf4" * 2400 for _ in range(800)))
open("glass.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 800, 800, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", rows) + chunk(b"IEND", b""))'
config '"long_side_px": 600'
run glass.png -o n | columns
echo "== a slide that is smaller than that is enlarged, which is told"
config '"long_side_px": 2600'
run c/slides/patient_000_node_0.tiff -o e --export none | columns
config '"long_side_px": 600'
echo "== wrong usage"
run c/slides -o u --tta || echo "exit $?"
run c/slides -o u --level 0 || echo "exit $?"
run c/slides -o u --model run || echo "exit $?"
microtome predict c/slides -o u --network scan_tiny --map cam || echo "exit $?"
microtome predict c/slides -o u --network vit_small_patch16_224 --mode whole || echo "exit $?"
microtome extract c/slides -o p --dense --quiet >/dev/null
run p/*.h5 -o u || echo "exit $?"
run c/slides -o h --map gradcam || echo "exit $?"
microtome model run glass.png --model run || echo "exit $?"
microtome model run glass.png --model run --memory stream || echo "exit $?"
