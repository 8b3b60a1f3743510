#!/usr/bin/env python3
"""Resize by broken factors and to sizes, as ONNX Runtime computes it.

Writes tests/golden/onnx_resize.onnx, which has an input for each height and an output for each
case, and onnx_resize.bin (records as in records.py): for each output its name and its numbers.
Needs onnx, onnxruntime and numpy. Element i of an input of n rows and 2 columns is
((i * 29 + n) % 31) / 8.
"""
import os
import struct

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HEIGHTS = [5, 7, 10, 16, 23, 30]
SCALES = [0.3, 0.6, 0.7, 0.9, 1.05, 1.1, 1.2, 1.3, 1.4, 1.7, 2.3, 2.7, 3.3]
SIZES = [3, 9, 12, 16, 25]
KINDS = {
    "nearest": dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "linear": dict(mode="linear", coordinate_transformation_mode="half_pixel"),
    "corners": dict(mode="linear", coordinate_transformation_mode="align_corners"),
}
HERE = os.path.dirname(os.path.abspath(__file__))


def value_info(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def main():
    nodes, outputs, tensors = [], [], []
    for s in SCALES:
        tensors.append(numpy_helper.from_array(np.array([1, 1, s, 1], np.float32), f"by{s}"))
    for s in SIZES:
        tensors.append(numpy_helper.from_array(np.array([1, 1, s, 2], np.int64), f"to{s}"))
    for kind, attributes in KINDS.items():
        for h in HEIGHTS:
            for last in [["", f"by{s}"] for s in SCALES] + [["", "", f"to{s}"] for s in SIZES]:
                name = f"{kind}_{h}_{last[-1]}"
                nodes.append(helper.make_node("Resize", [f"x{h}", *last], [name], name=name, **attributes))
                outputs.append(value_info(name, None))
    graph = helper.make_graph(nodes, "resize", [value_info(f"x{h}", [1, 1, h, 2]) for h in HEIGHTS],
                              outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, os.path.join(HERE, "onnx_resize.onnx"))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {f"x{h}": (((np.arange(2 * h) * 29 + h) % 31) / np.float32(8)).astype(np.float32).reshape(1, 1, h, 2)
             for h in HEIGHTS}
    with open(os.path.join(HERE, "onnx_resize.bin"), "wb") as out:
        for node, y in zip(nodes, session.run(None, feeds)):
            out.write(node.output[0].encode() + b"\0" + struct.pack("<i", y.ndim))
            out.write(struct.pack("<%dq" % y.ndim, *y.shape))
            out.write(y.astype(np.float32).tobytes())


main()
