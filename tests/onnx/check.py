#!/usr/bin/env python3
"""Other programs read the ONNX files that unit/test_onnx left in SCRATCH/onnx: ONNX's own checker
(Debian: python3-onnx) and ONNX Runtime (PyPI), whose outputs must be ours. Skipped, with a word,
where neither is installed."""
import glob
import json
import os
import sys

try:
    import onnx
except ImportError:
    onnx = None
try:
    import numpy as np
    import onnxruntime
except ImportError:
    onnxruntime = None

if not onnx and not onnxruntime:
    print("skipped: neither onnx nor onnxruntime is installed")
    sys.exit(77)

files = sorted(glob.glob(os.path.join(os.environ["SCRATCH"], "onnx", "*.onnx")))
if not files:
    sys.exit("no files: unit/test_onnx did not run")
failed = 0
for path in files:
    name = os.path.basename(path)
    if onnx:
        onnx.checker.check_model(path, full_check=True)
        print(f"{name}: onnx {onnx.__version__} finds no fault")
        model = onnx.load(path)
        layers = json.loads({p.key: p.value for p in model.metadata_props}.get("microtome.layers", "{}"))
        tensors = {output for node in model.graph.node for output in node.output}
        lost = [alias for alias, tensor in layers.items() if tensor not in tensors]
        print(f"{name}: {len(layers)} names of layers, not in the file: {lost}")
        failed += bool(lost) or (name == "images.onnx" and layers.get("stem.act") != "stem")
    if not onnxruntime:
        continue
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    shape = [d if isinstance(d, int) else 2 for d in session.get_inputs()[0].shape]
    x = np.fromfile(path[:-5] + ".input", np.float32).reshape(shape)
    want = np.fromfile(path[:-5] + ".output", np.float32)
    outputs = session.run(None, {session.get_inputs()[0].name: x})
    got = np.concatenate([y.ravel() for y in outputs])
    error = np.abs(got - want).max() / np.abs(want).max()
    print(f"{name}: onnxruntime {onnxruntime.__version__}: relative error {error:.1e}")
    failed += not error < 1e-5
sys.exit(1 if failed else 0)
