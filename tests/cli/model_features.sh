# Weights without the layer that classifies give features; WSInfer's own networks by their names.
python3 -c 'import torch, torchvision, PIL' 2>/dev/null || { echo "no torch" >&2; exit 77; }
python3 "$SOURCE/tests/cli/check_features.py" make 2>/dev/null || exit 1
microtome model run a.png b.png --network resnet18 --weights extractor/pytorch_model.bin --size 96 -o plain.npy -q
cat plain.csv
microtome model run a.png b.png --model extractor -o model.npy -q
microtome model run a.png b.png --model extractor --json -q >model.json
microtome model run a.png b.png --model wsinfer -q >scores
cut -d ' ' -f 1,3,6 scores

# converted, the card goes with it
microtome model convert --model extractor -o e.onnx -q
microtome model run a.png b.png --model e.onnx -o onnx.npy -q
mkdir copy && microtome model convert --model extractor -o copy/model.safetensors -q
grep -A 5 '"outputs"' copy/config.json
microtome model run a.png b.png --model copy -o again.npy -q
python3 "$SOURCE/tests/cli/check_features.py" compare && echo as torch
microtome model show --model extractor | tail -n 1

# and what is refused
microtome model run a.png --model extractor -o table.csv
microtome model run a.png --model extractor --scores logits
microtome model run a.png --model extractor --features
microtome predict a.png --model extractor -o heatmaps
microtome model show --network segment_unet --features
true
