#!/usr/bin/python3
"""What PyTorch's modules give, for the names of layers in tests/unit/test_zoo_layers.c.

    make_layers_golden.py MICROTOME > layers.txt

A line for every layer that `MICROTOME model show --layers` lists and that is a module of the same
name in torchvision (or in models.py): case, name, shape, and Euclidean norm and dot product with
numbers("dot:" + name) of the module's output in eval mode. Weights and inputs as in
make_zoo_golden.py."""
import json
import subprocess
import sys

import numpy as np
import torch

from make_zoo_golden import make_inputs, make_model, numbers, read_cases


def layers_of(microtome, network):
    words = [microtome, "model", "show", "--network", network, "--layers", "--json"]
    shown = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    return [row["layer"] for row in json.loads(shown.stdout)] if shown.returncode == 0 else []


def main():
    torch.manual_seed(0)
    for case in read_cases():
        if case.case.endswith("_aux"):
            continue
        model, _ = make_model(case, "eval", torch.float64)
        model.eval()
        found, modules = {}, dict(model.named_modules())
        names = [name for name in layers_of(sys.argv[1], case.network) if name in modules]
        for name in names:  # a copy: layers behind it may work in place
            modules[name].register_forward_hook(
                lambda module, x, y, name=name: found.setdefault(name, []).append(y.detach().clone()))
        model(*make_inputs(case, model, torch.float64).values())
        for name in names:
            if len(found[name]) > 1:  # models.py uses some modules in several places
                continue
            values = found[name][0].numpy().ravel()
            shape = "x".join(map(str, found[name][0].shape))
            dot = np.dot(values, numbers("dot:" + name, len(values)).astype(np.float64))
            print(case.case, name, shape, "%.9g %.9g" % (np.linalg.norm(values), dot), flush=True)


if __name__ == "__main__":
    main()
