"""The peer: PyTorch eager with torchvision's network.

    torch_time.py NETWORK BATCH THREADS REPEATS infer|train

Prints the best milliseconds of a forward pass, or of forward and backward in training mode, of
BATCH images of 224 x 224.
"""
import sys

import torch
import torchvision

from timing import best_ms

network, batch, threads, repeats, mode = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
torch.set_num_threads(threads)
arguments = dict(aux_logits=False, init_weights=False) if network == "googlenet" else {}
model = getattr(torchvision.models, network)(**arguments)
model.train(mode == "train")
image = torch.randn(batch, 3, 224, 224)
labels = torch.zeros(batch, dtype=torch.long)


def step():
    if mode == "infer":
        with torch.no_grad():
            model(image)
        return
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(image), labels).backward()


print(best_ms(step, repeats))
