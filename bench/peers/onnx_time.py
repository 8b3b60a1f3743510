"""The peers that run an ONNX file: ONNX Runtime with all its optimisations, OpenVINO in float32.

    onnx_time.py onnxruntime|openvino MODEL.onnx BATCH THREADS REPEATS

Prints the best milliseconds of a forward pass of BATCH images of 224 x 224.
"""
import sys

import numpy

from timing import best_ms

kind, path, batch, threads, repeats = *sys.argv[1:3], *map(int, sys.argv[3:])
image = numpy.random.default_rng(1).standard_normal((batch, 3, 224, 224)).astype(numpy.float32)


def on_onnxruntime():
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: image}
    outputs = [session.get_outputs()[0].name]
    return lambda: session.run(outputs, feed)


def on_openvino():
    import openvino
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"})
    model = core.read_model(path)
    model.reshape([batch, 3, 224, 224])
    request = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
    return lambda: request.infer({0: image})


run = on_openvino() if kind == "openvino" else on_onnxruntime()
print(best_ms(run, repeats))
