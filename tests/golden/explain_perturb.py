#!/usr/bin/python3
"""Writes explain/perturb.bin: what PyPI's lime, captum's Occlusion and pytorch-grad-cam's ScoreCAM give
for ResNet-18, GoogLeNet and ViT-S (weights of zoo/make_zoo_golden.py, 3 classes; ScoreCAM: ResNet-18)
on a corner of explain/slic.png, 64 px.
lime 0.2.0.1, captum 0.6.0, grad-cam 1.4.8, scikit-image 0.20, torch 1.13. Class 1 is explained.

ScoreCAM of the package gives NaN where a channel is constant; here such channels have no weight. It
widens channels with align_corners=True; here with False, as Score-CAM's authors do;
scorecam.corners has the package's way."""
import os
import sys
from unittest import mock

import numpy as np
import torch
from captum.attr import Occlusion
from lime import lime_image
from PIL import Image
from pytorch_grad_cam import ScoreCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from skimage.segmentation import slic

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "zoo")]
from make_zoo_golden import Case, make_model  # noqa: E402
from records import writer  # noqa: E402

CLASS, SIDE, SAMPLES = 1, 64, 60
NETWORKS = {"resnet18": ("resnet18", 1.0), "googlenet": ("googlenet", 1.4), "vit_small": ("vit_small_patch16_224", 1.0)}
rgb = np.array(Image.open(os.path.join(here, "explain", "slic.png")))[:SIDE, :SIDE]
record = writer(os.path.join("explain", "perturb.bin"))


def prepared(images):
    """[n, height, width, 3] in 0..255 -> the network's input: (x / 255 - 0.5) / 0.25"""
    x = torch.as_tensor(np.asarray(images, np.float64) / 255)
    return ((x - 0.5) / 0.25).permute(0, 3, 1, 2).float()


def network(case):
    name, gain = NETWORKS[case]
    net, _ = make_model(Case(case, name, 1, 3, SIDE, SIDE, 3, 0, 0, gain), "eval", torch.float32)
    return net.eval()


def lime_case(case, scores):
    segments = slic(rgb, n_segments=12, compactness=20, sigma=1, start_label=0)
    n = segments.max() + 1
    explainer = lime_image.LimeImageExplainer(random_state=3)
    with torch.no_grad():
        found = explainer.explain_instance(
            rgb.astype(np.float64), lambda images: scores(prepared(images)).numpy(), labels=(CLASS,),
            top_labels=None, num_samples=SAMPLES, segmentation_fn=lambda image: segments, random_seed=1)
    on = np.random.RandomState(3).randint(0, 2, SAMPLES * n).reshape(SAMPLES, n)  # as it drew them
    on[0] = 1
    if case == "resnet18":
        record("lime.segments", torch.as_tensor(segments))
        record("lime.on", torch.as_tensor(on))
    record(case + ".lime.coef", torch.tensor([dict(found.local_exp[CLASS])[k] for k in range(n)]))
    record(case + ".lime.intercept", torch.tensor([found.intercept[CLASS]]))


def occlusion_case(case, scores, x, side, stride):
    mean = x.mean((2, 3), keepdim=True).expand_as(x)
    with torch.no_grad():
        found = Occlusion(scores).attribute(
            x, sliding_window_shapes=(3, side, side), strides=(3, stride, stride), baselines=mean,
            target=CLASS)
    record("%s.occlusion.%d.%d" % (case, side, stride), found[0, 0])


def scorecam_case(net, x, layer):
    found = {}

    class Raw(ScoreCAM):
        def get_cam_weights(self, x, layer, targets, activations, grads):
            varied = np.ptp(activations, (0, 2, 3)) > 0
            weights = np.zeros(activations.shape[:2], np.float32)
            weights[:, varied] = super().get_cam_weights(x, layer, targets, activations[:, varied], grads)
            return weights

        def get_cam_image(self, *args, **kwargs):
            found["raw"] = np.maximum(super().get_cam_image(*args, **kwargs), 0)
            return found["raw"]

    def raw():
        Raw(net, [getattr(net, layer)])(x, [ClassifierOutputTarget(CLASS)])
        return torch.as_tensor(found["raw"][0])

    record("scorecam.corners." + layer, raw())
    widen = lambda size: torch.nn.Upsample(size=size, mode="bilinear", align_corners=False)
    with mock.patch("torch.nn.UpsamplingBilinear2d", widen):
        record("scorecam." + layer, raw())


x = prepared(rgb[None])
for case in NETWORKS:
    net = network(case)
    scores = lambda images: torch.softmax(net(images).double(), 1)
    with torch.no_grad():
        record(case + ".score", scores(x)[0])
    lime_case(case, scores)
    occlusion_case(case, scores, x, 20, 9)
    if case == "resnet18":
        occlusion_case(case, scores, x, 16, 8)
        scorecam_case(net, x, "layer2")
