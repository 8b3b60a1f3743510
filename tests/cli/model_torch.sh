# Files of PyTorch: converted as torch reads them, WSInfer's TorchScript with its config.json, bad ones.
python3 -c 'import torch, torchvision, PIL' 2>/dev/null || { echo "no torch" >&2; exit 77; }
python3 "$SOURCE/tests/cli/check_torch.py" make 2>/dev/null || exit 1
for name in all five nested deflated; do microtome model convert $name.pth -o $name.safetensors -q; done
microtome model run x.png --model torchscript_model.pt >scores
python3 "$SOURCE/tests/cli/check_torch.py" compare && echo as torch
for name in attack two old cut twice bomb; do microtome model convert $name.pth -o bad.safetensors 2>&1; done
ls bad.safetensors ran 2>/dev/null
true
