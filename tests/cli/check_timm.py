"""check_timm.py: networks of PyPI's timm with drawn weights, saved, run by microtome and compared with timm
itself: features of networks without a classifier, also at another size than their weights', pathology's
foundation models at full width with one block, and TorchScript as WSInfer writes it."""
import json, os, subprocess
import numpy as np, timm, torch
from PIL import Image
from timm.layers import SwiGLUPacked
from timm.models.vision_transformer import checkpoint_filter_fn

GATED = {"mlp_layer": SwiGLUPacked, "act_layer": torch.nn.SiLU}
SCALED = {"init_values": 1e-5, "img_size": 224, "depth": 1}
FEATURES = [  # name, settings, side of the image
    ("vit_tiny_patch16_224", {"img_size": 64}, 160),
    ("vit_small_patch14_reg4_dinov2", {"depth": 2}, 70),
    ("resnet18", {}, 112), ("convnext_tiny", {}, 160), ("efficientnet_b0", {}, 160), ("densenet121", {}, 112),
    ("swin_tiny_patch4_window7_224", {"img_size": 112}, 112),
    ("vit_large_patch16_224", SCALED, 224),  # UNI
    ("vit_giant_patch14_reg4_dinov2", {**SCALED, "mlp_ratio": 2.66667 * 2, "reg_tokens": 8, **GATED}, 224),  # UNI2-h
    ("vit_huge_patch14_224", {**SCALED, "mlp_ratio": 5.3375, **GATED}, 224),  # Virchow
    ("vit_huge_patch14_224", {**SCALED, "mlp_ratio": 5.3375, "reg_tokens": 4, "no_embed_class": True, **GATED},
     224),  # Virchow2
    ("vit_giant_patch14_reg4_dinov2", SCALED, 224),  # H-optimus-0
    ("vit_giant_patch14_dinov2", {**SCALED, "patch_size": 16, "mlp_ratio": 5.33334}, 224),  # Prov-GigaPath
]
MEAN, STD = [0.7238, 0.5716, 0.6779], [0.112, 0.1459, 0.1089]


def draw(model):
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
        elif name.endswith(("gamma", "pos_embed", "token", "running_mean")):
            value.normal_(0, 0.3)
        elif value.ndim == 1 and value.is_floating_point():
            value.add_(0.1 * torch.randn_like(value))
    return model.eval()


def image(side):
    pixels = np.random.RandomState(side).randint(0, 256, (side, side, 3)).astype("uint8")
    Image.fromarray(pixels).save("x.png")
    return torch.from_numpy(pixels.astype("float32") / 255).permute(2, 0, 1)[None]


def check_features(name, settings, side):
    model, x = draw(timm.create_model(name, num_classes=0, **settings)), image(side)
    torch.save(model.state_dict(), "w.pth")
    if name.startswith("vit_"):
        kept, model = model, timm.create_model(name, num_classes=0, **{**settings, "img_size": side}).eval()
        model.load_state_dict(checkpoint_filter_fn(kept.state_dict(), model))
    subprocess.run(["microtome", "model", "run", "x.png", "--network", name, "--weights", "w.pth", "--size", str(side),
                    "-o", "y.npy", "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
    wanted, found = model(x)[0].numpy(), np.load("y.npy")[0]
    print(name, len(found), "as timm" if np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max() else (found, wanted))


def check_wsinfer(name):
    model, x = draw(timm.create_model(name, num_classes=2)), image(200)
    torch.jit.trace(model, x).save("torchscript_model.pt")
    json.dump({"spec_version": "1.0", "architecture": name, "num_classes": 2, "class_names": ["Other", "Tumor"],
               "patch_size_pixels": 200, "spacing_um_px": 0.25,
               "transform": [{"name": "ToTensor"}, {"name": "Normalize", "arguments": {"mean": MEAN, "std": STD}}]},
              open("config.json", "w"))
    done = subprocess.run(["microtome", "model", "run", "x.png", "--model", "torchscript_model.pt", "-q"], check=True,
                          stdout=subprocess.PIPE)
    x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    words, wanted = done.stdout.split(), torch.softmax(model(x), 1)[0].tolist()
    same = all(abs(float(words[2 + 2 * i]) - wanted[i]) < 1e-5 for i in range(2))
    print(name, "as timm" if same else (words, wanted))
    os.remove("config.json")


torch.manual_seed(0)
with torch.no_grad():
    for case in FEATURES:
        check_features(*case)
    for name in "resnet34", "inception_v4", "vgg16":
        check_wsinfer(name)
