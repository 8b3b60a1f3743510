#!/bin/sh
# Every network of the zoo against PyTorch anew, all floats of all gradients (check_zoo.py), with
# Debian's python3-torch and python3-torchvision; skipped where they are absent.
# Arguments: PART PARTS, to share the networks among tests that run side by side.
set -eu
part=${1:-1} parts=${2:-1}
golden=$SOURCE/tests/golden/zoo
fresh=$SCRATCH/zoo_$part
python=/usr/bin/python3
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "skipped: python3-torch and python3-torchvision are not installed"
    exit 77
fi
rm -rf "$fresh"
mkdir -p "$fresh"
export PYTHONDONTWRITEBYTECODE=1
export OMP_NUM_THREADS=1 # the parts share the machine
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8000000000 # what a case has touched serves the next
"$python" "$golden/check_zoo.py" "$fresh" "$BINARIES/test_zoo" "$part" "$parts"
