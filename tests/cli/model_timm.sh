# Networks of timm against timm itself, where it is installed (TIMM_PYTHON: a Python that has it).
python=${TIMM_PYTHON:-python3}
"$python" -c 'import torch, timm, PIL' 2>/dev/null || { echo "no timm" >&2; exit 77; }
"$python" "$SOURCE/tests/cli/check_timm.py" 2>log || { cat log; exit 1; }
