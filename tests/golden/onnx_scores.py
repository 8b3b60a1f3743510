#!/usr/bin/env python3
"""Small classifiers that end in different ways, and what ONNX Runtime gives for one image.

Writes tests/golden/onnx_scores/NAME.onnx and expected.txt: a line for each network with its name
and, class by class, the probability that ONNX Runtime's output stands for. Needs onnx, onnxruntime
and numpy. The image is 16 x 16 RGB; byte i (row-major, channels last) is (i * 37 + i // 7) % 256.
"""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SIDE, MAPS = 16, 4
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx_scores")


def weights(shape, seed, scale):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs, [output], name=output, **attributes)


def network(name, classes, ending, shape, opset=17, more=()):
    """conv, relu, mean, linear -> 'z' [N, classes], then the nodes of `ending`, which give 'y'."""
    tensors = [
        numpy_helper.from_array(weights((MAPS, 3, 5, 5), 1, 0.3), "conv.weight"),
        numpy_helper.from_array(weights((MAPS,), 2, 0.3), "conv.bias"),
        numpy_helper.from_array(weights((classes, MAPS), 3, 2), "fc.weight"),
        numpy_helper.from_array(weights((classes,), 4, 1), "fc.bias"),
        *more,
    ]
    nodes = [
        node("Conv", ["x", "conv.weight", "conv.bias"], "c", strides=[2, 2]),
        node("Relu", ["c"], "r"),
        node("GlobalAveragePool", ["r"], "p"),
        node("Flatten", ["p"], "f"),
        node("Gemm", ["f", "fc.weight", "fc.bias"], "z", transB=1),
        *ending,
    ]
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    path = os.path.join(HERE, name + ".onnx")
    onnx.save(model, path)
    return path


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def as_is(p):
    return p


NC, N1 = ["batch", 3], ["batch", 1]
NETWORKS = [
    # name, classes, what makes probabilities of the outputs, ending, shape of y, opset, constants
    ("logits", 3, softmax, [node("Identity", ["z"], "y")], NC, 17, ()),
    ("logits_one", 1, sigmoid, [node("Identity", ["z"], "y")], N1, 17, ()),
    ("logits_rank_1", 1, sigmoid, [node("Squeeze", ["z", "one"], "y")], ["batch"], 17,
     [ints("one", [1])]),
    ("softmax", 3, as_is, [node("Softmax", ["z"], "y", axis=-1)], NC, 17, ()),
    ("softmax_opset_11", 3, as_is, [node("Softmax", ["z"], "y", axis=1)], NC, 11, ()),
    ("softmax_map", 3, as_is,
     [node("Reshape", ["z", "image"], "m"), node("Softmax", ["m"], "s", axis=1),
      node("Squeeze", ["s", "hw"], "y")], NC, 17, [ints("image", [0, 0, 1, 1]), ints("hw", [2, 3])]),
    ("softmax_cast", 3, as_is,
     [node("Softmax", ["z"], "s"), node("Identity", ["s"], "i"),
      node("Cast", ["i"], "y", to=TensorProto.FLOAT)], NC, 17, ()),
    ("log_softmax", 3, np.exp, [node("LogSoftmax", ["z"], "y", axis=1)], NC, 17, ()),
    ("sigmoid_one", 1, as_is, [node("Sigmoid", ["z"], "y")], N1, 17, ()),
    ("sigmoid_labels", 3, as_is, [node("Sigmoid", ["z"], "y")], NC, 17, ()),
    # a softmax that is not at the end
    ("softmax_swapped", 3, as_is,
     [node("Softmax", ["z"], "s"),
      helper.make_node("Split", ["s", "parts"], ["a", "b"], name="split", axis=1),
      node("Concat", ["b", "a"], "y", axis=1)], NC, 17, [ints("parts", [1, 2])]),
]


def image():
    i = np.arange(SIDE * SIDE * 3)
    rgb = ((i * 37 + i // 7) % 256).astype(np.uint8).reshape(SIDE, SIDE, 3)
    return (rgb.astype(np.float32) / np.float32(255)).transpose(2, 0, 1)[None]


def main():
    with open(os.path.join(HERE, "expected.txt"), "w") as out:
        for name, classes, probabilities, ending, shape, opset, more in NETWORKS:
            path = network(name, classes, ending, shape, opset, more)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            y = session.run(None, {"x": image()})[0].astype(np.float64).reshape(-1)
            print(name, *("%.9f" % p for p in probabilities(y)), file=out)


main()
