#!/usr/bin/env python3
"""QuantizeLinear and DequantizeLinear of int8, as ONNX Runtime computes them.

Writes tests/golden/net_stored.bin (records as in records.py): x, and for case K K/scale, K/zero_point,
K/stored (x quantised) and K/back (those numbers as floats). Needs onnx, onnxruntime and numpy.
"""
import os
import struct
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CASES = [(0.1, 0), (0.037, 5), (2.0, 0), (0.001, -128), (1 / 3, 127), (0.25, -77), (1e-20, 3), (1e20, 0)]
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    random = np.random.default_rng(3)
    x = random.normal(0, 8, 211).astype(np.float32)
    x[:8] = [0, -0.0, np.inf, -np.inf, 1e-39, -3e38, 3e38, 1e30]
    x[8:40] = np.arange(-16, 16) / 2  # halves: ties of the scales that are powers of two
    x[40:72] = (np.arange(-16, 16) + 0.5) * np.float32(0.1)
    x[72:76] = [255, -256, 254.99998, 31.75]
    x[76:92] = random.normal(0, 40, 16) * 1e20
    x[92:108] = random.normal(0, 40, 16) * 1e-20
    out = open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "net_stored.bin"), "wb")

    def record(name, values):
        values = np.ascontiguousarray(values, np.float32)
        out.write(name.encode() + b"\0" + struct.pack("<iq", 1, values.size) + values.tobytes())

    record("x", x)
    for k, (scale, zero_point) in enumerate(CASES):
        tensors = [numpy_helper.from_array(np.array(scale, np.float32), "s"),
                   numpy_helper.from_array(np.array(zero_point, np.int8), "z")]
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                 helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
        graph = helper.make_graph(nodes, "stored",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [x.size])],
                                  [helper.make_tensor_value_info("q", TensorProto.INT8, [x.size]),
                                   helper.make_tensor_value_info("y", TensorProto.FLOAT, [x.size])], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        q, y = session.run(None, {"x": x})
        record("%d/scale" % k, [scale])
        record("%d/zero_point" % k, [zero_point])
        record("%d/stored" % k, q)
        record("%d/back" % k, y)


main()
