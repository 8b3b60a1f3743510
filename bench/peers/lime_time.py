"""The peer: LIME by the package `lime`, with PyTorch.

    lime_time.py NETWORK WEIGHTS.safetensors IMAGE SUPERPIXELS.png SAMPLES BATCH THREADS

Prints the seconds of one explanation of class 0: SAMPLES copies of the image with superpixels (numbered from 0) set to
their mean colour, in batches of BATCH, and the regression. The network and a first batch are ready before.
"""
import sys
import time

import numpy
import torch
import torchvision
from lime import lime_image
from PIL import Image

from torch_weights import read_weights

network, weights, image, superpixels = sys.argv[1:5]
samples, batch, threads = map(int, sys.argv[5:])
torch.set_num_threads(threads)
arguments = dict(aux_logits=False, init_weights=False) if network == "googlenet" else {}
model = getattr(torchvision.models, network)(**arguments)
model.load_state_dict(read_weights(weights), strict=False)
model.eval()


def scores(images):
    x = torch.from_numpy(numpy.asarray(images, numpy.float32) / 255).permute(0, 3, 1, 2).contiguous()
    with torch.no_grad():
        return torch.softmax(model(x), 1).numpy()


rgb = numpy.array(Image.open(image).convert("RGB"))
segments = numpy.array(Image.open(superpixels)).astype(numpy.int64)
scores([rgb] * batch)
explainer = lime_image.LimeImageExplainer(random_state=1)
began, cpu_began = time.monotonic(), time.process_time()
explainer.explain_instance(rgb, scores, labels=(0,), top_labels=None, num_samples=samples, batch_size=batch,
                           segmentation_fn=lambda image: segments, progress_bar=False)
print("seconds", time.monotonic() - began)
print("cpu", time.process_time() - cpu_began)
