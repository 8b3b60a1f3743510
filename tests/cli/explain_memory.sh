# explain map holds the network for one kind of map at a time, and the redrawn network alone.
[ -e "${MANY_PROCESSORS_LIBRARY:-}" ] || { echo "no memory to measure under the sanitizers" >&2; exit 77; }
python3 - <<'PY' || { echo "no PIL" >&2; exit 77; }
import numpy as np
from PIL import Image
rng = np.random.default_rng(1)
for name in "ab":
    Image.fromarray(rng.integers(100, 200, (128, 128, 3), dtype=np.uint8)).save(name + ".png")
PY
peak() { # MB...
    /usr/bin/python3 -c 'import resource, subprocess, sys
run = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL)
mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(run.returncode, "within its memory" if mb <= int(sys.argv[1]) else f"{mb} MB")' "$@"
}
# the network's 45 MB ten times over: graphs, and weights transformed for one image and for groups
peak 600 microtome explain map a.png b.png --network resnet18 --init-seed 1 --method gradcam,ig,lime --ig-steps 8 \
    --lime-samples 16 --belief-steps 2 --belief-orders 1 --belief-subjects 1 --threads 2 -q -o o
