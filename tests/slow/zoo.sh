#!/bin/sh
# Every network of the zoo against PyTorch anew, all floats of all gradients: makes the golden files
# with Debian's python3-torch and python3-torchvision, holds them against the committed ones, and
# runs test_zoo on them. Minutes; skipped where PyTorch is absent.
set -eu
golden=$SOURCE/tests/golden/zoo
fresh=$SCRATCH/zoo
python=/usr/bin/python3
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "skipped: python3-torch and python3-torchvision are not installed"
    exit 77
fi
rm -rf "$fresh"
mkdir -p "$fresh"
export PYTHONDONTWRITEBYTECODE=1
for case in $(grep -v '^#' "$golden/cases.txt" | cut -d' ' -f1); do
    "$python" "$golden/make_zoo_golden.py" --out "$fresh" --full "$fresh" "$case"
    "$python" - "$golden/$case.npy" "$fresh/$case.npy" <<'END'
import sys, numpy as np
kept, made = np.load(sys.argv[1]), np.load(sys.argv[2])
assert (kept["key"] == made["key"]).all(), "other parameters than in the committed file"
for mode in ("eval", "train"):
    scale = kept[mode][:, :1]
    off = np.abs(kept[mode] - made[mode]) - (1e-5 + kept["slack"][:, :1]) * scale
    assert (off < 1e-9 * scale.max()).all(), "other values than in the committed file"
END
    ZOO_FULL=$fresh "$BINARIES/test_zoo" "$case"
    rm "$fresh/$case".*
done
