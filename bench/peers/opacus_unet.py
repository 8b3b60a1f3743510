"""The peer: a step of private training of a diffusion U-Net with Opacus: per-sample gradients, clipped, with noise.

    opacus_unet.py NETWORK PX BATCH THREADS REPEATS MODE

MODE is hooks (gradients of all samples), ew (the same by ExpandedWeights of PyTorch) or ghost (norms first, then a
second backward pass). Prints one JSON object: seconds of the fastest step (without the update of the weights), processor
seconds of it, parameters, and the peak memory of the process in MB.
"""
import json
import resource
import sys
import time

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from torch_unet import CONDITIONS, SPECS, UNet

network, (px, batch, threads, repeats), mode = sys.argv[1], map(int, sys.argv[2:6]), sys.argv[6]
torch.set_num_threads(threads)
torch.manual_seed(0)
plain = UNet(*SPECS[network])
inputs = [torch.randn(batch, 3, px, px), torch.randn(batch, SPECS[network][0]), torch.randn(batch, CONDITIONS)]
settings = dict(noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=batch)
still = torch.optim.SGD(plain.parameters(), lr=0.0)


def square(y, _):
    return ((y - 1) ** 2).mean((1, 2, 3))


if mode == "ghost":
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    model = GradSampleModuleFastGradientClipping(plain, max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(still, **settings)

    class Mean:
        reduction = "mean"

        def __call__(self, y, target):
            return square(y, target)

    loss = DPLossFastGradientClipping(model, optimizer, Mean(), loss_reduction="mean")
else:
    if mode == "ew":
        from opacus.grad_sample import GradSampleModuleExpandedWeights
        model = GradSampleModuleExpandedWeights(plain)
    else:
        model = GradSampleModule(plain)
    optimizer = DPOptimizer(still, **settings)

    def loss(y, target):
        return square(y, target).mean()

best = cpu = float("inf")
for _ in range(repeats):
    began, used = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    loss(model(*inputs), None).backward()
    optimizer.step()
    best, cpu = min(best, time.perf_counter() - began), min(cpu, time.process_time() - used)
print(json.dumps(dict(seconds=best, cpu_s=cpu, parameters=sum(p.numel() for p in plain.parameters()),
                      peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
