#!/usr/bin/env python3
"""Writes tests/golden/weights.safetensors with the Python package of the format's authors
(PyPI: safetensors) from PyTorch tensors of every type we convert. test_weights.c knows the rule:
element i of every tensor is (i - 3) / 4, truncated for integers, != 0 for bool."""
import os
import torch
from safetensors.torch import save_file

here = os.path.dirname(os.path.abspath(__file__))
ramp = (torch.arange(12, dtype=torch.float64) - 3) / 4
tensors = {
    "a.f32": ramp.reshape(3, 4).float(),
    "b.f16": ramp.half(),
    "c.bf16": ramp.reshape(2, 3, 2).bfloat16(),
    "d.f64": ramp.reshape(1, 12),
    "e.i64": ramp.long(),
    "f.i32": ramp.int(),
    "g.i16": ramp.short(),
    "h.i8": ramp.to(torch.int8),
    "i.u8": ramp.abs().to(torch.uint8),
    "j.bool": ramp != 0,
    "k.scalar": ramp[0].float(),
    "l.empty": torch.zeros(0, 3),
    "m.name with \"quotes\" and ü": ramp[:2].float(),
    "bn.num_batches_tracked": torch.tensor(7),
}
save_file(tensors, os.path.join(here, "weights.safetensors"), {"format": "pt", "made by": "PyTorch"})
