#!/usr/bin/env python3
"""A small quantised network, as ONNX Runtime computes it.

Writes tests/golden/onnx_quantized.onnx (QuantizeLinear and DequantizeLinear around a convolution and a
linear layer with integer weights, as quantisers export them: activations uint8 and int8, weights int8
with a scale for each channel or one for all, bias int32) and onnx_quantized.bin (records as in
records.py): x and y. Needs onnx, onnxruntime and numpy.
"""
import os
import struct

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    random = np.random.default_rng(5)
    tensors = {
        "sx": np.array(0.021, np.float32), "zx": np.array(117, np.uint8),
        "sa": np.array(0.043, np.float32), "za": np.array(-128, np.int8),
        "sp": np.array(0.05, np.float32),
        "w": random.integers(-127, 128, (20, 3, 3, 3)).astype(np.int8),
        "sw": (0.001 + 0.004 * random.random(20)).astype(np.float32), "zw": np.zeros(20, np.int8),
        "b": random.integers(-4000, 4000, 20).astype(np.int32),
        "sb": (1e-4 * random.random(20)).astype(np.float32),
        "v": random.integers(-128, 128, (5, 320)).astype(np.int8),
        "sv": np.array(0.003, np.float32), "zv": np.array(4, np.int8),
    }
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "sx", "zx"], ["xq"], name="image"),
        node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
        node("DequantizeLinear", ["b", "sb"], ["bd"], axis=0),
        node("Conv", ["xd", "wd", "bd"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "sa", "za"], ["aq"], name="map"),
        node("DequantizeLinear", ["aq", "sa", "za"], ["ad"]),
        node("MaxPool", ["ad"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", ["p", "sp"], ["pq"], name="pooled"),  # uint8, zero point 0
        node("DequantizeLinear", ["pq", "sp"], ["pd"]),
        node("Flatten", ["pd"], ["f"]),
        node("DequantizeLinear", ["v", "sv", "zv"], ["vd"]),
        node("Gemm", ["f", "vd"], ["y"], name="fc", transB=1),
    ]
    graph = helper.make_graph(nodes, "quantized",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5])],
                              [numpy_helper.from_array(t, name) for name, t in tensors.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, "onnx_quantized.onnx"))
    x = random.normal(0, 1, (2, 3, 8, 8)).astype(np.float32)
    options = onnxruntime.SessionOptions()  # in floats: its integer convolutions round elsewhere
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})
    with open(os.path.join(HERE, "onnx_quantized.bin"), "wb") as out:
        for name, t in [("x", x), ("y", y)]:
            out.write(name.encode() + b"\0" + struct.pack("<i%dq" % t.ndim, t.ndim, *t.shape) + t.tobytes())


main()
