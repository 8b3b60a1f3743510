"""Weights of a safetensors file for PyTorch."""
import json

import numpy
import torch


def read_weights(path):
    """A safetensors file of float32 -> the names and tensors that PyTorch loads."""
    with open(path, "rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        data = stream.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, past = entry["data_offsets"]
        values = numpy.frombuffer(data[first:past], numpy.float32).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors
