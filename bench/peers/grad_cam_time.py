"""The peer: Grad-CAM by the package `grad-cam`, with PyTorch.

    grad_cam_time.py NETWORK WEIGHTS.safetensors IMAGE LAYER THREADS REPEATS MAP.npy

Prints the best seconds of one map of class 0 at the size of the image, and the seconds of processor time of that one;
writes the map. The network and a first map are ready before.
"""
import sys
import time

import numpy
import torch
import torchvision
from PIL import Image
from pytorch_grad_cam import GradCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

from torch_weights import read_weights

network, weights, image, layer = sys.argv[1:5]
threads, repeats, path = int(sys.argv[5]), int(sys.argv[6]), sys.argv[7]
torch.set_num_threads(threads)
model = getattr(torchvision.models, network)()
model.load_state_dict(read_weights(weights), strict=False)
model.eval()
rgb = numpy.array(Image.open(image).convert("RGB"), numpy.float32) / 255
x = torch.from_numpy(rgb).permute(2, 0, 1)[None].contiguous()
cam = GradCAM(model=model, target_layers=[dict(model.named_modules())[layer]])
best = (float("inf"), 0)
for i in range(repeats + 1):
    began, cpu_began = time.monotonic(), time.process_time()
    values = cam(input_tensor=x, targets=[ClassifierOutputTarget(0)])[0]
    if i:
        best = min(best, (time.monotonic() - began, time.process_time() - cpu_began))
numpy.save(path, values)
print("seconds", best[0])
print("cpu", best[1])
