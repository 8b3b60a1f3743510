#!/usr/bin/env python3
"""Writes the patches that test_augment.c holds its own against: source.png (tissue, and every kind
of colour) after each change, by torchvision on byte tensors and by numpy with skimage's matrices.
The name of a file says what was done; the numbers stand in test_augment.c too.
"""
import os
import numpy
import torch
from PIL import Image
from skimage import color
import torchvision.transforms.functional as F

here = os.path.dirname(os.path.abspath(__file__))
rng = numpy.random.default_rng(3)


def write(name, array):
    Image.fromarray(numpy.asarray(array, numpy.uint8)).save(os.path.join(here, name + ".png"))


tissue = numpy.asarray(Image.open(os.path.join(here, "../stain/source.png")).convert("RGB"))[40:72, 40:88]
colours = rng.integers(0, 256, (8, 48, 3))
colours[0, :24] = (numpy.arange(24) * 11)[:, None]  # greys
colours[0, 24:] = 255
colours[0, 28:32] = 0
source = numpy.concatenate([tissue, colours]).astype(numpy.uint8)  # [40, 48, 3]
write("source", source)


def opencv_hsv(rgb):
    """COLOR_RGB2HSV of bytes, from its documented formula in 12-bit fixed point."""
    r, g, b = (rgb[..., i].astype(int) for i in range(3))
    high, low = rgb.max(2).astype(int), rgb.min(2).astype(int)
    span = high - low
    safe = numpy.maximum(span, 1)
    sixths = numpy.where(high == r, g - b, numpy.where(high == g, b - r + 2 * span, r - g + 4 * span))
    hue = (sixths * numpy.rint((180 << 12) / (6.0 * safe)).astype(int) + 2048) >> 12
    saturation = (span * numpy.rint((255 << 12) / numpy.maximum(high, 1)).astype(int) + 2048) >> 12
    return numpy.stack([hue + 180 * (hue < 0), saturation, high], 2) * (span > 0)[..., None] + \
        numpy.stack([0 * high, 0 * high, high], 2) * (span == 0)[..., None]


for name, offset in (("hsv", (7.9, 12.4, 18.2)), ("hsv_none", (0, 0, 0)), ("hsv_most", (20, 20, 20))):
    hsv = numpy.minimum((opencv_hsv(source) + numpy.array(offset)).astype(int), [179, 255, 255])
    write(name, numpy.rint(255 * color.hsv2rgb(hsv / numpy.array([180.0, 255, 255]))))

# skimage's separate_stains clips negative stains to 0, so that even doing nothing changes colours; its
# matrices are used without that.
for name, scale, shift in (("hed", (1.1, 0.85, 1.2), (0.03, -0.05, 0.02)),
                           ("hed_strong", (0.8, 1.2, 0.8), (-0.2, 0.2, 0.2))):
    density = -numpy.log(numpy.maximum(source, 0.25) / 255.0)
    stains = density @ color.hed_from_rgb * scale + shift
    write(name, numpy.rint(255 * numpy.clip(numpy.exp(-stains @ color.rgb_from_hed), 0, 1)))
# skimage itself, to be compared where it does not clip (the mask).
stains = color.rgb2hed(source)
write("hed_skimage", numpy.rint(255 * color.hed2rgb(stains * (1.1, 0.85, 1.2))))
write("hed_skimage_mask", 255 * ((stains > 0).all(2) & (source > 0).all(2)))

bytes_ = torch.from_numpy(source).permute(2, 0, 1)


def tensor(name, t):
    write(name, t.permute(1, 2, 0).numpy())


for name, factor in (("low", 0.6), ("high", 1.35)):
    tensor("brightness_" + name, F.adjust_brightness(bytes_, factor))
    tensor("contrast_" + name, F.adjust_contrast(bytes_, factor))
    tensor("saturation_" + name, F.adjust_saturation(bytes_, factor))
tensor("hue_low", F.adjust_hue(bytes_, -0.31))
tensor("hue_high", F.adjust_hue(bytes_, 0.07))
for name, sigma, radius in (("small", 0.4, 2), ("large", 2.3, 7)):
    tensor("blur_" + name, F.gaussian_blur(bytes_, 2 * radius + 1, sigma))
tensor("turn_1", torch.rot90(bytes_[:, :40, :40], 1, (1, 2)))
tensor("turn_3", torch.rot90(bytes_[:, :40, :40], 3, (1, 2)))
