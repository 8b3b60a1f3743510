"""check_torch.py make | compare: files of PyTorch for model_torch.sh; what was made of them against
torch itself."""
import json, os, struct, sys, zipfile
import numpy as np, torch, torchvision
from PIL import Image
from torchvision import transforms

MEAN, STD = [0.7238, 0.5716, 0.6779], [0.112, 0.1459, 0.1089]
NAMES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64,
         "I64": torch.int64, "I16": torch.int16, "U8": torch.uint8, "BOOL": torch.bool}


class Attack:
    def __reduce__(self):
        return os.system, ("touch ran",)


def network():
    torch.manual_seed(1)
    model = torchvision.models.resnet34(weights=None, num_classes=2).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    model.fc.weight.data *= 1e-4
    return model


def make():
    base = torch.arange(24.0).reshape(4, 6) / 7
    tensors = {str(t): base.to(t) for t in NAMES.values()}
    tensors.update(t=base.t(), cut=base[1:3, ::2], all=base, wide=base[:1].expand(5, 6),
                   scalar=torch.tensor(2.5), empty=torch.zeros(0, 3), part=torch.nn.Parameter(base[2]))
    torch.save(tensors, "all.pth")
    torch.save(tensors, "five.pth", pickle_protocol=5)
    torch.save({"epoch": 1, "best": 0.5, "optimizer": {"state": {0: {"m": base}}, "lr": [0.1]},
                "state_dict": {"module." + k: v for k, v in tensors.items()}}, "nested.pth")
    with zipfile.ZipFile("all.pth") as a, zipfile.ZipFile("deflated.pth", "w", zipfile.ZIP_DEFLATED) as b:
        for name in a.namelist():
            b.writestr(name, a.read(name))
    torch.save({"teacher": {"w": base}, "student": {"w": base}}, "two.pth")
    torch.save(tensors, "old.pth", _use_new_zipfile_serialization=False)
    torch.save({"w": base, "x": Attack()}, "attack.pth")
    whole = open("all.pth", "rb").read()
    open("cut.pth", "wb").write(whole[:-40])
    with zipfile.ZipFile("all.pth") as a, zipfile.ZipFile("twice.pth", "w") as b:
        for name in a.namelist() + a.namelist()[:1]:
            b.writestr(name, a.read(name))
    bomb = bytearray(open("deflated.pth", "rb").read())
    at = bomb.index(b"PK\1\2")
    struct.pack_into("<I", bomb, at + 24, 4000000000)
    open("bomb.pth", "wb").write(bomb)
    model = network()
    torch.jit.script(model).save("torchscript_model.pt")
    json.dump({"spec_version": "1.0", "architecture": "resnet34", "num_classes": 2, "class_names": ["Other", "Tumor"],
               "patch_size_pixels": 350, "spacing_um_px": 0.25,
               "transform": [{"name": "Resize", "arguments": {"size": 224}}, {"name": "ToTensor"},
                             {"name": "Normalize", "arguments": {"mean": MEAN, "std": STD}}]}, open("config.json", "w"))
    pixels = np.random.RandomState(0).randint(0, 256, (350, 350, 3)).astype("uint8")
    Image.fromarray(pixels).save("x.png")


def read(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    out = {}
    for name, t in header.items():
        a, b = t["data_offsets"]
        raw = bytearray(data[8 + length + a:8 + length + b])
        out[name] = (torch.frombuffer(raw, dtype=NAMES[t["dtype"]]) if raw else torch.zeros(0)).reshape(t["shape"])
    return out


def compare():
    want = torch.load("all.pth")
    for name in ("all", "five", "nested", "deflated"):
        got = read(name + ".safetensors")
        assert got.keys() == want.keys(), name
        for key in want:
            assert got[key].dtype == want[key].dtype and torch.equal(got[key], want[key]), (name, key)
    prepare = transforms.Compose([transforms.Resize(224), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    with torch.no_grad():
        scores = torch.softmax(network()(prepare(Image.open("x.png"))[None]), 1)[0].tolist()
    words = open("scores").read().split()
    assert words[1] == "Other" and words[3] == "Tumor", words
    assert abs(float(words[2]) - scores[0]) < 1e-5 and abs(float(words[4]) - scores[1]) < 1e-5, (words, scores)


make() if sys.argv[1] == "make" else compare()
