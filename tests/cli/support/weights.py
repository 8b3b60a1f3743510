"""What a training left in its folder, for tests."""
import json
import struct

import numpy as np


def read(path):
    """The tensors by name of a file of weights, or of the model in a folder."""
    data = open(path if path.endswith(".safetensors") else path + "/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    values = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values[name] = np.frombuffer(data, "<f4", (end - begin) // 4, 8 + size + begin).reshape(entry["shape"])
    return values
