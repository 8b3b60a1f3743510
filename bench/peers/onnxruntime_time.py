"""The peer: ONNX Runtime with all its optimisations.

    onnxruntime_time.py MODEL.onnx BATCH THREADS REPEATS

Prints the best milliseconds of a forward pass of BATCH images of 224 x 224.
"""
import sys
import time

import numpy
import onnxruntime

path, batch, threads, repeats = sys.argv[1], *map(int, sys.argv[2:])
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
image = numpy.random.default_rng(1).standard_normal((batch, 3, 224, 224)).astype(numpy.float32)
feed = {session.get_inputs()[0].name: image}
outputs = [session.get_outputs()[0].name]
session.run(outputs, feed)
best = float("inf")
for _ in range(repeats):
    began = time.perf_counter()
    session.run(outputs, feed)
    best = min(best, time.perf_counter() - began)
print(1e3 * best)
