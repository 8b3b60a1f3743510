"""Files of tensors, as tests/unit/support/golden.c reads them.

A record is: name (NUL-terminated), int32 rank, int64 extents, float32 data.
"""
import os
import struct
import sys

import torch


def writer(name):
    """A function (name, tensor) that adds a record to the file the command line names, or `name` in this folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    out = open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, name), "wb")

    def record(name, t):
        t = torch.as_tensor(t).detach().to(torch.float32).contiguous()
        out.write(name.encode() + b"\0" + struct.pack("<i", t.dim()))
        out.write(struct.pack("<%dq" % t.dim(), *t.shape))
        out.write(t.numpy().tobytes())

    return record
