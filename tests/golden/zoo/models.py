"""The zoo's networks in PyTorch: torchvision's own where it has them; else definitions written for
this comparison after the papers, with the parameter names of timm (inception_resnet_v2), of
torch.nn.TransformerEncoder, or our own (resnet110_v2, scan, unet, segment_unet). Those of TIMM are timm's
own (PyPI): where it is not installed they are left out of MODELS."""
import torch
import torch.nn.functional as F
import torchvision.models as tv
from torch import nn


def torchvision_model(name):
    def make(case):
        kwargs = {"num_classes": case.classes}
        if name in ("googlenet", "inception_v3"):
            kwargs.update(aux_logits=bool(case.auxiliary), init_weights=False)
        return getattr(tv, name)(weights=None, **kwargs)
    return make


def timm_model(name, **settings):
    import timm

    def make(case):
        given = dict(settings)
        if name.startswith("vit_"):
            given.update(img_size=(case.height, case.width), depth=case.depth)
        if name.startswith("swin_"):
            given.update(img_size=(case.height, case.width))
        return timm.create_model(name, num_classes=case.classes, **given)
    return make


class Unit(nn.Sequential):
    """Convolution, batch norm, ReLU; parameters .conv and .bn."""

    def __init__(self, into, out, kernel, stride=1, padding=0):
        super().__init__()
        self.add_module("conv", nn.Conv2d(into, out, kernel, stride, padding, bias=False))
        self.add_module("bn", nn.BatchNorm2d(out, eps=1e-3))
        self.add_module("relu", nn.ReLU())


class Branches(nn.Module):
    """The concatenation of its branches: branch0, branch1, ..."""

    def __init__(self, *branches):
        super().__init__()
        self.n = len(branches)
        for i, branch in enumerate(branches):
            self.add_module(f"branch{i}", branch)

    def forward(self, x):
        return torch.cat([getattr(self, f"branch{i}")(x) for i in range(self.n)], 1)


class InceptionResidual(Branches):
    def __init__(self, channels, joined, scale, relu, *branches):
        super().__init__(*branches)
        self.conv2d = nn.Conv2d(joined, channels, 1)
        self.scale, self.relu = scale, relu

    def forward(self, x):
        y = x + self.scale * self.conv2d(super().forward(x))
        return F.relu(y) if self.relu else y


def block35():
    return InceptionResidual(
        320, 128, 0.17, True, Unit(320, 32, 1),
        nn.Sequential(Unit(320, 32, 1), Unit(32, 32, 3, padding=1)),
        nn.Sequential(Unit(320, 32, 1), Unit(32, 48, 3, padding=1), Unit(48, 64, 3, padding=1)))


def block17():
    return InceptionResidual(
        1088, 384, 0.10, True, Unit(1088, 192, 1),
        nn.Sequential(Unit(1088, 128, 1), Unit(128, 160, (1, 7), padding=(0, 3)),
                      Unit(160, 192, (7, 1), padding=(3, 0))))


def block8(scale=0.20, relu=True):
    return InceptionResidual(
        2080, 448, scale, relu, Unit(2080, 192, 1),
        nn.Sequential(Unit(2080, 192, 1), Unit(192, 224, (1, 3), padding=(0, 1)),
                      Unit(224, 256, (3, 1), padding=(1, 0))))


class InceptionResNetV2(nn.Sequential):
    def __init__(self, case):
        super().__init__()
        pool = nn.MaxPool2d(3, 2)
        mean = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        for name, part in {
            "conv2d_1a": Unit(3, 32, 3, 2), "conv2d_2a": Unit(32, 32, 3),
            "conv2d_2b": Unit(32, 64, 3, padding=1), "maxpool_3a": pool,
            "conv2d_3b": Unit(64, 80, 1), "conv2d_4a": Unit(80, 192, 3), "maxpool_5a": pool,
            "mixed_5b": Branches(
                Unit(192, 96, 1), nn.Sequential(Unit(192, 48, 1), Unit(48, 64, 5, padding=2)),
                nn.Sequential(Unit(192, 64, 1), Unit(64, 96, 3, padding=1),
                              Unit(96, 96, 3, padding=1)),
                nn.Sequential(mean, Unit(192, 64, 1))),
            "repeat": nn.Sequential(*[block35() for _ in range(10)]),
            "mixed_6a": Branches(
                Unit(320, 384, 3, 2),
                nn.Sequential(Unit(320, 256, 1), Unit(256, 256, 3, padding=1),
                              Unit(256, 384, 3, 2)), pool),
            "repeat_1": nn.Sequential(*[block17() for _ in range(20)]),
            "mixed_7a": Branches(
                nn.Sequential(Unit(1088, 256, 1), Unit(256, 384, 3, 2)),
                nn.Sequential(Unit(1088, 256, 1), Unit(256, 288, 3, 2)),
                nn.Sequential(Unit(1088, 256, 1), Unit(256, 288, 3, padding=1),
                              Unit(288, 320, 3, 2)), pool),
            "repeat_2": nn.Sequential(*[block8() for _ in range(9)]),
            "block8": block8(1.0, False), "conv2d_7b": Unit(2080, 1536, 1),
            "pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(),
            "classif": nn.Linear(1536, case.classes),
        }.items():
            self.add_module(name, part)


class PreActivation(nn.Module):
    """Keras' bottleneck of version 2: norm and ReLU before each convolution, shortcut from x."""

    def __init__(self, into, width, out, stride, first, activated):
        super().__init__()
        self.activated = activated
        if not activated:
            self.bn1 = keras_norm(into)
        self.conv1 = nn.Conv2d(into, width, 1, stride)
        self.bn2, self.conv2 = keras_norm(width), nn.Conv2d(width, width, 3, 1, 1)
        self.bn3, self.conv3 = keras_norm(width), nn.Conv2d(width, out, 1)
        self.shortcut = nn.Conv2d(into, out, 1, stride) if first else nn.Identity()

    def forward(self, x):
        y = self.conv1(x if self.activated else F.relu(self.bn1(x)))
        y = self.conv2(F.relu(self.bn2(y)))
        return self.conv3(F.relu(self.bn3(y))) + self.shortcut(x)


def keras_norm(channels):
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class ResNet110V2(nn.Module):
    def __init__(self, case):
        super().__init__()
        depth = 110
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1), keras_norm(16)
        into, width = 16, 16
        for stage in range(3):
            out = width * (4 if stage == 0 else 2)
            blocks = []
            for i in range((depth - 2) // 9):
                blocks.append(PreActivation(into, width, out, 2 if stage and not i else 1, i == 0,
                                            stage == 0 and i == 0))
                into = out
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
            width = out
        self.bn, self.fc = keras_norm(into), nn.Linear(into, case.classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(F.relu(self.bn(x)).mean((2, 3)))


class ScanBlock(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(into, out, 3, stride, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, bias=False), nn.BatchNorm2d(out)
        self.downsample = nn.Identity()
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out))
        self.cut = 3 if stride == 2 else 2

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        c = self.cut
        return F.relu(y + self.downsample(x[:, :, c:-c, c:-c]))


class Scan(nn.Module):
    def __init__(self, case, stem, widths, blocks):
        super().__init__()
        into, self.stem = 3, []
        for i, (channels, kernel, stride) in enumerate(stem):
            self.add_module(f"conv{i + 1}", nn.Conv2d(into, channels, kernel, stride, bias=False))
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(channels))
            into = channels
        self.stems = len(stem)
        for stage in range(3):
            parts = []
            for i in range(blocks[stage]):
                parts.append(ScanBlock(into, widths[stage], 2 if stage and not i else 1))
                into = widths[stage]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*parts))
        self.fc = nn.Linear(into, case.classes)

    def forward(self, x):
        for i in range(1, self.stems + 1):
            x = F.relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class UNetResidual(nn.Module):
    def __init__(self, into, out, features, groups):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(groups, into), nn.Conv2d(into, out, 3, padding=1)
        self.time = nn.Linear(features, out)
        self.norm2, self.conv2 = nn.GroupNorm(groups, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(into, out, 1) if into != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        y = self.conv2(F.silu(self.norm2(y))) + self.skip(x)
        return self.attention(y) if hasattr(self, "attention") else y


class UNetAttention(nn.Module):
    def __init__(self, channels, head, groups):
        super().__init__()
        self.norm, self.head = nn.GroupNorm(groups, channels), head
        self.qkv, self.proj = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, c // self.head, self.head, h * w).unbind(1)
        weights = torch.einsum("nadi,nadj->naij", q, k) / self.head ** 0.5
        y = torch.einsum("naij,nadj->nadi", weights.softmax(-1), v)
        return x + self.proj(y.reshape(n, c, h, w))


class UNet(nn.Module):
    def __init__(self, case, width, factors, blocks, attention, head, groups):
        super().__init__()
        self.width, levels = width, len(factors)
        self.stem = nn.Conv2d(case.channels, width, 3, padding=1)
        self.time = nn.ModuleList([nn.Linear(width, 4 * width), nn.Linear(4 * width, 4 * width)])
        if case.conditions:
            self.condition = nn.Linear(case.conditions, 4 * width, bias=False)
        channels, skips = width, [width]

        def residual(into, out, attend):
            block = UNetResidual(into, out, 4 * width, groups)
            if attend:
                block.attention = UNetAttention(out, head, groups)
            return block

        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for level, factor in enumerate(factors):
            part = nn.ModuleDict()
            for i in range(blocks):
                part[str(i)] = residual(channels, factor * width, level >= attention)
                channels = factor * width
                skips.append(channels)
            if level < levels - 1:
                part["downsample"] = nn.Conv2d(channels, channels, 3, 2, 1)
                skips.append(channels)
            self.down.append(part)
        self.middle = nn.ModuleList([residual(channels, channels, True),
                                     residual(channels, channels, False)])
        ups = []
        for level in reversed(range(levels)):
            part = nn.ModuleDict()
            for i in range(blocks + 1):
                part[str(i)] = residual(channels + skips.pop(), factors[level] * width,
                                        level >= attention)
                channels = factors[level] * width
            if level > 0:
                part["upsample"] = nn.Conv2d(channels, factors[level - 1] * width, 3, padding=1)
                channels = factors[level - 1] * width
            ups.append(part)
        self.up.extend(reversed(ups))
        self.out = nn.ModuleDict({"norm": nn.GroupNorm(groups, channels),
                                  "conv": nn.Conv2d(channels, case.classes, 3, padding=1)})

    def forward(self, x, time, condition=None):
        time = self.time[1](F.silu(self.time[0](time)))
        time = F.silu(time if condition is None else time + self.condition(condition))
        x = self.stem(x)
        skips = [x]
        for part in self.down:
            for name, layer in part.items():
                x = layer(x) if name == "downsample" else layer(x, time)
                skips.append(x)
        for block in self.middle:
            x = block(x, time)
        for part in reversed(self.up):
            for name, layer in part.items():
                if name == "upsample":
                    x = layer(F.interpolate(x, scale_factor=2, mode="nearest"))
                else:
                    x = layer(torch.cat([x, skips.pop()], 1), time)
        return self.out["conv"](F.silu(self.out["norm"](x)))


class AutoencoderBlock(nn.Module):
    def __init__(self, into, out, groups):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(groups, into), nn.Conv2d(into, out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(groups, out), nn.Conv2d(out, out, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))


class Autoencoder(nn.Module):
    def __init__(self, case, widths, latent, groups):
        super().__init__()
        self.widths = widths
        self.encoder, self.decoder = nn.ModuleDict(), nn.ModuleDict()
        self.encoder["stem"] = nn.Conv2d(case.channels, widths[0], 3, padding=1)
        self.decoder["stem"] = nn.Conv2d(latent, widths[-1], 3, padding=1)
        for i, width in enumerate(widths):
            self.encoder[str(i)] = AutoencoderBlock(width, width, groups)
            self.decoder[str(i)] = AutoencoderBlock(width, width, groups)
            if i > 0:
                self.encoder[str(i)].downsample = nn.Conv2d(widths[i - 1], width, 3, 2, 1)
                self.decoder[str(i)].upsample = nn.Conv2d(width, widths[i - 1], 3, padding=1)
        for part, out, last in ((self.encoder, latent, -1), (self.decoder, case.channels, 0)):
            part["out"] = nn.ModuleDict({"norm": nn.GroupNorm(groups, widths[last]),
                                         "conv": nn.Conv2d(widths[last], out, 3, padding=1)})

    @staticmethod
    def finish(part, x):
        return part["out"]["conv"](F.silu(part["out"]["norm"](x)))

    def forward(self, x):
        x = self.encoder["stem"](x)
        for i in range(len(self.widths)):
            block = self.encoder[str(i)]
            x = block(block.downsample(x) if i else x)
        latent = torch.tanh(self.finish(self.encoder, x))
        x = self.decoder["stem"](latent)
        for i in reversed(range(len(self.widths))):
            block = self.decoder[str(i)]
            x = block(x)
            if i:
                x = block.upsample(F.interpolate(x, scale_factor=2, mode="nearest"))
        return {"image": self.finish(self.decoder, x), "latent": latent}


class SegmentBlock(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class SegmentUNet(nn.Module):
    """A block a level, max pooling on the way down, bilinear upsampling on the way up."""

    def __init__(self, case, widths):
        super().__init__()
        self.down = nn.ModuleList(SegmentBlock(into, out) for into, out
                                  in zip((case.channels,) + widths, widths))
        self.up = nn.ModuleList(SegmentBlock(low + high, high)
                                for high, low in zip(widths, widths[1:]))
        self.out = nn.Conv2d(widths[0], case.classes, 1)

    def forward(self, x):
        skips = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            skips.append(x)
        for block, skip in zip(reversed(self.up), reversed(skips[:-1])):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = block(torch.cat([x, skip], 1))
        return self.out(x)


class Transformer(nn.TransformerEncoder):
    def __init__(self, case):
        width = case.channels
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, 0.1, "gelu", batch_first=True,
                                           norm_first=True)
        super().__init__(layer, 6, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, case.classes)

    def forward(self, x):
        return self.head(super().forward(x).mean(1))


class VisionTransformer(tv.VisionTransformer):
    """torchvision's, under timm's names."""

    NAMES = [("encoder.layers.encoder_layer_", "blocks."), ("encoder.pos_embedding", "pos_embed"),
             ("class_token", "cls_token"), ("conv_proj", "patch_embed.proj"),
             ("self_attention.in_proj_", "attn.qkv."), ("self_attention.out_proj", "attn.proj"),
             (".ln_1", ".norm1"), (".ln_2", ".norm2"), ("mlp.0", "mlp.fc1"), ("mlp.3", "mlp.fc2"),
             ("encoder.ln", "norm"), ("heads.head", "head")]

    def __init__(self, case):
        assert case.height == case.width
        super().__init__(case.height, 16, 12, 6, 384, 1536, num_classes=case.classes)

    @classmethod
    def public_name(cls, name):
        for ours, timms in cls.NAMES:
            name = name.replace(ours, timms)
        return name


class PreactBlock(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(into), nn.BatchNorm2d(out)
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        changes = stride != 1 or into != out
        self.shortcut = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False)) if changes else None

    def forward(self, x):
        y = F.relu(self.bn1(x))
        kept = self.shortcut(y) if self.shortcut else x
        return self.conv2(F.relu(self.bn2(self.conv1(y)))) + kept


class PreactResNet34(nn.Module):
    """As WSInfer has it: the stem and the last map have no norm."""

    def __init__(self, case):
        super().__init__()
        self.conv1 = nn.Conv2d(case.channels, 64, 7, 2, 3, bias=False)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        into = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            out, layers = 64 << stage, []
            for i in range(blocks):
                layers.append(PreactBlock(into, out, 2 if stage and i == 0 else 1))
                into = out
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(into, case.classes)

    def forward(self, x):
        x = self.maxpool(self.conv1(x))
        for stage in range(4):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.linear(self.avgpool(x).flatten(1))


def vgg16mod(case):
    """As WSInfer has it: 1024 hidden features, one hidden layer."""
    model = tv.vgg16(weights=None)
    model.classifier = nn.Sequential(nn.Linear(25088, 1024), nn.ReLU(), nn.Dropout(),
                                     nn.Linear(1024, case.classes))
    return model


def inception_v4nobn(case):
    """As WSInfer has it: timm's, with a bias in place of every batch norm."""
    import timm
    model = timm.create_model("inception_v4", num_classes=case.classes)
    for part in list(model.modules()):
        if hasattr(part, "conv") and hasattr(part, "bn"):
            old = part.conv
            part.conv = nn.Conv2d(old.in_channels, old.out_channels, old.kernel_size, old.stride,
                                  old.padding)
            part.bn = nn.ReLU()
    return model


class ConvStem(nn.Module):
    """CTransPath's patch embedding."""

    def __init__(self, img_size, patch_size, in_chans, embed_dim, norm_layer, **others):
        super().__init__()
        narrow = embed_dim // 8
        self.proj = nn.Sequential(
            nn.Conv2d(in_chans, narrow, 3, 2, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(),
            nn.Conv2d(narrow, 2 * narrow, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * narrow),
            nn.ReLU(), nn.Conv2d(2 * narrow, embed_dim, 1))
        self.norm = norm_layer(embed_dim)
        self.grid_size = img_size[0] // 4, img_size[1] // 4
        self.num_patches = self.grid_size[0] * self.grid_size[1]

    def forward(self, x):
        return self.norm(self.proj(x).permute(0, 2, 3, 1))


def ctranspath(case):
    from timm.models.swin_transformer import SwinTransformer
    return SwinTransformer((case.height, case.width), num_classes=case.classes,
                           embed_layer=ConvStem, drop_path_rate=0.0)


MODELS = {
    **{name: torchvision_model(name) for name in (
        "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "googlenet", "inception_v3",
        "densenet121", "densenet161", "vgg16", "vgg16_bn")},
    "scan_tiny": lambda c: Scan(c, [(16, 8, 4)], (16, 24, 48), (0, 1, 2)),
    "scan_small": lambda c: Scan(c, [(24, 4, 2), (32, 3, 2)], (32, 64, 160), (1, 2, 2)),
    "scan_base": lambda c: Scan(c, [(32, 4, 2), (96, 3, 2)], (96, 192, 384), (2, 2, 2)),
    "scan_wide": lambda c: Scan(c, [(16, 8, 4), (16, 4, 4)], (16, 24, 48), (0, 1, 2)),
    "resnet110_v2": ResNet110V2,
    "inception_resnet_v2": InceptionResNetV2,
    "preactresnet34": PreactResNet34,
    "vgg16mod": vgg16mod,
    "vit_small_patch16_224": VisionTransformer,
    "transformer_encoder": Transformer,
    "unet": lambda c: UNet(c, 64, (1, 2, 3, 4), 2, 2, 32, 32),
    "unet_small": lambda c: UNet(c, 32, (1, 2, 4), 1, 2, 32, 8),
    "unet_tiny": lambda c: UNet(c, 16, (1, 2, 4), 1, 2, 16, 4),
    "autoencoder_4": lambda c: Autoencoder(c, (32, 64, 96), 4, 8),
    "autoencoder_8": lambda c: Autoencoder(c, (32, 64, 96, 128), 8, 8),
    "segment_unet": lambda c: SegmentUNet(c, (16, 32, 64)),
}

TIMM = {
    "inception_v4": ("inception_v4", {}),
    "vit_small_patch32_224": ("vit_small_patch32_224", {}),
    "vit_small_patch14_dinov2": ("vit_small_patch14_dinov2", {}),
    "vit_giant_patch14_reg4_dinov2": ("vit_giant_patch14_reg4_dinov2", {}),
    "convnext_tiny": ("convnext_tiny", {}),
    "efficientnet_b0": ("efficientnet_b0", {}),
    "efficientnet_b3": ("efficientnet_b3", {}),
    "swin_tiny_patch4_window7_224": ("swin_tiny_patch4_window7_224", {"drop_path_rate": 0.0}),
}
try:
    MODELS.update({name: timm_model(theirs, **settings)
                   for name, (theirs, settings) in TIMM.items()})
    MODELS.update(inception_v4nobn=inception_v4nobn, ctranspath=ctranspath)
except ImportError:
    pass


def length(case, text):
    """Tokens of a text that are not padding: the same in test_zoo.c."""
    tokens = case.height // 4 if case.network in AUDIOS else case.height
    return tokens - text * tokens // (2 * case.batch)


class Text(nn.Module):
    """A model of transformers on ids and a mask; as in use, without a second segment."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @staticmethod
    def public_name(name):
        return name.replace("model.", "", 1)

    def forward(self, ids, mask):
        return self.model(input_ids=ids.detach().long(), attention_mask=mask.detach().long()).logits


class T5(nn.Module):
    """T5's encoder and a linear layer on the mean of the tokens that are not padding."""

    def __init__(self, case, **settings):
        super().__init__()
        import transformers
        config = transformers.T5Config(
            vocab_size=case.channels, d_kv=64, dropout_rate=0.0, feed_forward_proj="gated-gelu",
            **settings)
        self.model = transformers.T5EncoderModel(config)
        self.classifier = nn.Linear(config.d_model, case.classes)

    def state_dict(self, **kwargs):
        names = super().state_dict(**kwargs)
        return {key: value for key, value in names.items() if "embed_tokens" not in key}

    @staticmethod
    def public_name(name):
        return name.replace("model.", "", 1)

    def forward(self, ids, mask):
        mask = mask.detach()
        x = self.model(input_ids=ids.detach().long(), attention_mask=mask.long()).last_hidden_state
        return self.classifier((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


def bert(case, width, depth, before):
    import transformers
    kind = "RobertaPreLayerNorm" if before else "Bert"
    config = getattr(transformers, kind + "Config")(
        vocab_size=case.channels, hidden_size=width, num_hidden_layers=case.depth or depth,
        num_attention_heads=width // 64, intermediate_size=4 * width, type_vocab_size=2,
        max_position_embeddings=514 if before else 512, num_labels=case.classes,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-12,
        # RoBERTa's ids of padding would move positions: here the mask alone says what is padding
        pad_token_id=1 if before else 0, attn_implementation="eager")
    return Text(getattr(transformers, kind + "ForSequenceClassification")(config))


class Audio(nn.Module):
    """Two convolutions, a linear layer and positions; RoBERTa-PreLayerNorm's layers; a linear layer on the mean of the
    tokens that are not padding."""

    def __init__(self, case, width, depth):
        super().__init__()
        import transformers
        config = transformers.RobertaPreLayerNormConfig(
            vocab_size=3, hidden_size=width, num_hidden_layers=case.depth or depth, num_attention_heads=width // 64,
            intermediate_size=4 * width, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            layer_norm_eps=1e-12, attn_implementation="eager")
        self.stem = nn.ModuleDict({
            "conv1": nn.Conv2d(1, width // 4, 3, 2, 1), "conv2": nn.Conv2d(width // 4, width // 4, 3, 2, 1),
            "out": nn.Linear(width // 4 * (case.channels // 4), width)})
        self.positions = nn.Embedding(512, width)
        self.roberta_prelayernorm = transformers.RobertaPreLayerNormModel(config, add_pooling_layer=False)
        del self.roberta_prelayernorm.embeddings
        self.classifier = nn.Linear(width, case.classes)

    def forward(self, frames, mask):
        mask = mask.detach()
        x = F.gelu(self.stem["conv1"](frames[:, None]))
        x = F.gelu(self.stem["conv2"](x)).permute(0, 2, 1, 3).flatten(2)
        x = self.stem["out"](x) + self.positions.weight[:mask.shape[1]]
        unseen = (1 - mask[:, None, None]) * -1e30
        x = self.roberta_prelayernorm.encoder(x, attention_mask=unseen).last_hidden_state
        x = self.roberta_prelayernorm.LayerNorm(x)
        return self.classifier((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


AUDIOS = {
    "audio_encoder_tiny": lambda c: Audio(c, 128, 2),
    "audio_encoder_small": lambda c: Audio(c, 256, 4),
}
TEXTS = {
    "bert_tiny": lambda c: bert(c, 128, 2, False),
    "bert_mini": lambda c: bert(c, 256, 4, False),
    "prenorm_tiny": lambda c: bert(c, 128, 2, True),
    "t5_mini": lambda c: T5(c, d_model=256, num_heads=4, d_ff=512, num_layers=c.depth or 4),
    "t5_small": lambda c: T5(c, d_model=512, num_heads=6, d_ff=1024, num_layers=c.depth or 8),
}
try:
    import transformers  # noqa: F401
    MODELS.update(TEXTS)
    MODELS.update(AUDIOS)
except ImportError:
    pass
