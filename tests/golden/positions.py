#!/usr/bin/env python3
"""What timm's resample_abs_pos_embed makes of position embeddings, for tests/unit/test_model_card.c.

    positions.py > positions.txt      # PyPI's torch and timm

For every case a line "from features height width", a line with the positions [from * from, features],
and a line with timm's [height * width, features]."""
import torch
from timm.layers import resample_abs_pos_embed

torch.manual_seed(0)
for side, features, height, width in ((4, 2, 7, 5), (5, 1, 2, 3), (6, 2, 6, 4), (3, 1, 1, 8), (14, 1, 5, 5)):
    positions = torch.randn(1, side * side, features)
    made = resample_abs_pos_embed(positions, [height, width], num_prefix_tokens=0)
    print(side, features, height, width)
    for tensor in positions, made:
        print(" ".join("%.9g" % value for value in tensor.flatten().tolist()))
