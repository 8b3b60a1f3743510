"""check_features.py make | compare: a ResNet-18 without its last layer, and a network of WSInfer's own
as it saves them, for model_features.sh; what was made of them against torch."""
import json, os, sys
import numpy as np, torch, torchvision
from collections import namedtuple
from PIL import Image

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/golden/zoo"))
from models import PreactResNet34  # noqa: E402

MEAN, STD = [0.7, 0.6, 0.65], [0.15, 0.2, 0.16]


def draw(model, seed):
    torch.manual_seed(seed)
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
        elif name.endswith("running_mean"):
            value.normal_(0, 0.1)
    return model.eval()


def features():
    torch.manual_seed(1)
    model = torchvision.models.resnet18(weights=None)
    model.fc = torch.nn.Identity()
    return draw(model, 2)


def preact():
    torch.manual_seed(3)
    return draw(PreactResNet34(namedtuple("Case", "channels classes")(3, 2)), 4)


def describe(path, architecture, classes, own=None):
    config = {"architecture": architecture, "num_classes": len(classes), "class_names": classes,
              "patch_size_pixels": 96, "spacing_um_px": 0.5,
              "transform": [{"name": "ToTensor"}, {"name": "Normalize", "arguments": {"mean": MEAN, "std": STD}}]}
    if own:
        config["microtome"] = own
    json.dump(config, open(path, "w"))


def make():
    random = np.random.RandomState(0)
    for name in "ab":
        Image.fromarray(random.randint(0, 256, (96, 96, 3)).astype("uint8")).save(name + ".png")
    for folder in "extractor", "wsinfer":
        os.mkdir(folder)
    torch.save(features().state_dict(), "extractor/pytorch_model.bin")
    describe("extractor/config.json", "resnet18", [], {"licence": "MIT", "citation": "nobody"})
    with torch.no_grad():
        network = preact()
        network.linear.weight *= 1e-2
        torch.save(network.state_dict(), "preact.pth")
        torch.jit.trace(network, torch.zeros(1, 3, 96, 96)).save("wsinfer/torchscript_model.pt")
    describe("wsinfer/config.json", "preactresnet34", ["Other", "TIL"])


def images(normalized):
    pixels = [torch.from_numpy(np.asarray(Image.open(n + ".png")).astype("float32") / 255) for n in "ab"]
    x = torch.stack(pixels).permute(0, 3, 1, 2)
    return (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None] if normalized else x


def compare():
    with torch.no_grad():
        plain, wanted = features()(images(False)).numpy(), features()(images(True)).numpy()
        network = preact()
        network.load_state_dict(torch.load("preact.pth"))
        scores = torch.softmax(network(images(True)), 1).numpy()
    for name, reference in ("plain.npy", plain), ("model.npy", wanted), ("onnx.npy", wanted), ("again.npy", wanted):
        found = np.load(name)
        assert found.shape == (2, 512) and found.dtype == np.float32, found.shape
        assert np.abs(found - reference).max() < 1e-5 * np.abs(reference).max(), name
    listed = np.array([row["features"] for row in json.load(open("model.json"))])
    assert np.abs(listed - wanted).max() < 1e-5 * np.abs(wanted).max()
    found = [[float(word) for word in line.split()[2::2]] for line in open("scores")]
    assert np.abs(np.array(found) - scores).max() < 1e-5, (found, scores)


make() if sys.argv[1] == "make" else compare()
