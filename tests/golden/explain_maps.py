#!/usr/bin/env python3
"""Writes explain_maps.bin: maps of pytorch-grad-cam 1.5.4 and captum 0.9.0 with PyTorch 1.13 in double precision, for
tests/unit/test_explain_golden.c. Needs both packages (pip install grad-cam==1.5.4 captum==0.9.0). Networks, weights and
inputs are those of zoo/make_zoo_golden.py. Format: records.py; names are CASE/METHOD[/LAYER], maps [images, h, w] as
they are before pytorch-grad-cam scales them.

Where the packages differ from the definitions (docs/explain.md), the definition is recorded, and the script checks that
nothing else differs: pytorch-grad-cam adds 1e-6 to the denominator of Grad-CAM++."""
import os
import sys

import numpy as np
import torch
from captum.attr import IntegratedGradients, LayerGradCam, Saliency
from pytorch_grad_cam import GradCAM, GradCAMPlusPlus, HiResCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo"))
from make_zoo_golden import make_inputs, make_model, read_cases  # noqa: E402
from records import writer  # noqa: E402

LAYERS = {
    "resnet18": {"layer4": "layer4", "layer2": "layer2", "layer1.0.conv1": "layer1.0.conv1"},
    "googlenet": {"inception5b": "inception5b", "inception4b.branch1.conv": "inception4b.branch1.conv"},
    "vit_small": {"blocks.11.norm1": "encoder.layers.encoder_layer_11.ln_1",
                  "blocks.5": "encoder.layers.encoder_layer_5"},
}
IG_STEPS = 8


def grid(tokens):
    """[N, 1 + T, C] -> [N, C, h, w]"""
    if tokens.dim() != 3:
        return tokens
    side = int(round((tokens.shape[1] - 1) ** 0.5))
    return tokens[:, 1:].transpose(1, 2).reshape(tokens.shape[0], tokens.shape[2], side, side)


def close(a, b, tolerance=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert np.abs(a - b).max() <= tolerance * np.abs(b).max(), (np.abs(a - b).max(), np.abs(b).max())


class Raw:
    """A method of pytorch-grad-cam that keeps what it knows before scaling."""

    def __init__(self, method, model, layer):
        class Keeper(method):
            def get_cam_image(self, x, layer, targets, activations, grads, eigen_smooth=False):
                self.kept = activations.astype(np.float64), grads.astype(np.float64)
                self.raw = super().get_cam_image(x, layer, targets, activations, grads, eigen_smooth)
                return self.raw
        self.cam = Keeper(model=model, target_layers=[layer], reshape_transform=grid)

    def __call__(self, x, classes):
        self.cam(input_tensor=x, targets=[ClassifierOutputTarget(c) for c in classes])
        self.cam.activations_and_grads.release()
        return self.cam.raw, *self.cam.kept


def plus_plus(a, g, epsilon):
    square, total = g * g, a.sum(axis=(2, 3), keepdims=True)
    below = 2 * square + total * square * g + epsilon
    alpha = np.where(below != 0, square / np.where(below != 0, below, 1), 0)
    weights = (alpha * np.maximum(g, 0)).sum(axis=(2, 3), keepdims=True)
    return (weights * a).sum(axis=1)


def layer_maps(record, case, model, x, classes):
    modules = dict(model.named_modules())
    for name, module in LAYERS[case].items():
        raw, a, g = Raw(GradCAM, model, modules[module])(x, classes)
        close(raw, (g.mean(axis=(2, 3), keepdims=True) * a).sum(axis=1))
        if case != "vit_small":
            theirs = LayerGradCam(model, modules[module]).attribute(x, classes, relu_attributions=True)
            close(theirs.detach().numpy()[:, 0], np.maximum(raw, 0))
        assert (raw.max(axis=(1, 2)) > 0).any(), "nothing to compare: choose another layer"
        record(f"{case}/gradcam/{name}", np.maximum(raw, 0))
        hires, a, g = Raw(HiResCAM, model, modules[module])(x, classes)
        record(f"{case}/hirescam/{name}", hires)
        raw, a, g = Raw(GradCAMPlusPlus, model, modules[module])(x, classes)
        close(raw, plus_plus(a, g, 1e-6))
        exact = plus_plus(a, g, 0)
        record(f"{case}/gradcam++/{name}", np.maximum(exact, 0))
        print(case, name, raw.shape, "Grad-CAM++ of the package differs by %.1e of the maximum, as maps by %.1e" % (
            np.abs(raw - exact).max() / np.abs(exact).max(),
            np.abs(raw / raw.max() - exact / exact.max()).max()))


def input_maps(record, case, model, x, classes):
    image, target = x[:1].detach().requires_grad_(), classes[0].item()
    whole = IntegratedGradients(model).attribute(image, 0, target, n_steps=IG_STEPS, method="gausslegendre")
    record(f"{case}/ig", whole.sum(dim=1))
    # SmoothGrad without noise
    record(f"{case}/smoothgrad", Saliency(model).attribute(image, target, abs=False).abs().sum(dim=1))


def rollout(record, case, model, x):
    blocks, found = list(model.encoder.layers), []

    def keep(module, inputs, output):
        block = blocks[len(found)]
        found.append(block.self_attention(output, output, output, need_weights=True)[1].detach().numpy())
    handles = [block.ln_1.register_forward_hook(keep) for block in blocks]
    model(x)
    for handle in handles:
        handle.remove()
    product = np.eye(found[0].shape[1])[None]
    for attention in found:
        mixed = attention + np.eye(attention.shape[1])[None]
        product = (mixed / mixed.sum(axis=2, keepdims=True)) @ product
    side = int(round((product.shape[1] - 1) ** 0.5))
    record(f"{case}/rollout", product[:, 0, 1:].reshape(-1, side, side))


def main():
    record = writer("explain_maps.bin")
    for case in read_cases():
        if case.case not in LAYERS:
            continue
        model, _ = make_model(case, "eval", torch.float64)
        model.eval()
        x = next(iter(make_inputs(case, model, torch.float64).values()))
        logits = model(x)
        classes = torch.arange(case.batch) * 3 % case.classes
        record(f"{case.case}/classes", classes)
        record(f"{case.case}/logits", logits)
        layer_maps(record, case.case, model, x, classes)
        input_maps(record, case.case, model, x, classes)
        if case.case == "vit_small":
            rollout(record, case.case, model, x)


main()
