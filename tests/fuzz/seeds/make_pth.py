"""make_pth.py FOLDER: small files of PyTorch into FOLDER/fuzz_pth, and their pickles into
FOLDER/fuzz_pickle."""
import collections, os, sys, zipfile
import torch


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(3, 2, 1), torch.nn.BatchNorm2d(2)

    def forward(self, x):
        return self.bn1(self.conv1(x))


torch.manual_seed(0)
model = Small().eval()
base = torch.arange(24.0).reshape(4, 6)
types = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int16, torch.uint8, torch.bool)
files = {
    "state.pth": model.state_dict(),
    "types.pth": {str(t): base[:1].to(t) for t in types},
    "views.pth": {"t": base.t(), "cut": base[1:3, ::2], "all": base, "scalar": torch.tensor(2.5)},
    "checkpoint.pth": {"epoch": 3, "state_dict": {"module." + k: v for k, v in model.state_dict().items()},
                       "optimizer": torch.optim.Adam(model.parameters()).state_dict()},
}
for name, value in files.items():
    torch.save(value, os.path.join(sys.argv[1], "fuzz_pth", name))
torch.save(model.state_dict(), os.path.join(sys.argv[1], "fuzz_pth", "five.pth"), pickle_protocol=5)
torch.jit.script(model).save(os.path.join(sys.argv[1], "fuzz_pth", "script.pt"))
for name in os.listdir(os.path.join(sys.argv[1], "fuzz_pth")):
    archive = zipfile.ZipFile(os.path.join(sys.argv[1], "fuzz_pth", name))
    entry = [e for e in archive.namelist() if e.endswith("/data.pkl")][0]
    with open(os.path.join(sys.argv[1], "fuzz_pickle", name + ".pkl"), "wb") as out:
        out.write(archive.read(entry))
