# The gradient of a step with batch norm over all ranks (ranks.sync_bn) against PyTorch in double, on
# three ranks and on one. Float rounding limits how close they are to each other: the
# first layer's gradient is a small remainder of large sums. A step of rate 1 without momentum shows the
# gradient in the weights.
/usr/bin/python3 -c 'import torch, h5py' 2>/dev/null || { echo "no torch and h5py" >&2; exit 77; }
. "$(dirname "$0")/support/ranks.sh"
cat >run.yaml <<'Y'
network: { name: scan_tiny, input_px: 160 }
data:
  train: [stores/patient_000_node_0.h5, stores/patient_000_node_1.h5]
  val: [stores/patient_001_node_0.h5]
  workers: 1
augment: { flip: false, rotate: false }
train: { epochs: 1, batch: 36, monitor: last }
schedule: { name: constant, learning_rate: 1 }
optimizer: { momentum: 0, weight_decay: 0 }
ranks: { sync_bn: true, scale_rate: false }
Y
train() { microtome train run.yaml -q --threads 1 "$@" >/dev/null 2>err.txt || { cat err.txt; grep -q 'no MPI' err.txt && exit 77; exit 1; }; }
train -o ranks --set train.batch=12 --ranks 3
ASAN_OPTIONS=$leaks train -o one # with ranks: in train_ranks_equal
train -o start --set schedule.learning_rate=1e-12
/usr/bin/python3 - <<'P'
import h5py
import numpy as np
import torch
from torch.nn import functional as F
from weights import read

torch.set_num_threads(1)


def gradient(start):
    w = {name: torch.tensor(value, dtype=torch.float64).requires_grad_() for name, value in start.items()}

    def conv_norm(x, conv, norm, stride):
        x = F.conv2d(x, w[conv + ".weight"], stride=stride)
        return F.batch_norm(x, None, None, w[norm + ".weight"], w[norm + ".bias"], True)

    def block(x, at, stride):
        y = conv_norm(F.relu(conv_norm(x, at + ".conv1", at + ".bn1", stride)), at + ".conv2", at + ".bn2", 1)
        cut = 3 if stride == 2 else 2
        x = x[:, :, cut:-cut, cut:-cut]
        if at + ".downsample.0.weight" in w:
            x = conv_norm(x, at + ".downsample.0", at + ".downsample.1", stride)
        return F.relu(y + x)

    x = F.relu(conv_norm(pixels.double(), "conv1", "bn1", 4))
    x = block(block(block(x, "layer2.0", 2), "layer3.0", 2), "layer3.1", 1).mean((2, 3))
    F.cross_entropy(F.linear(x, w["fc.weight"], w["fc.bias"]), labels).backward()
    return np.concatenate([w[name].grad.double().numpy().ravel() for name in sorted(w)])


def step(start, folder):
    after = read(folder)
    return np.concatenate([(start[name].astype(float) - after[name]).ravel() for name in sorted(start)])


stores = [h5py.File("stores/patient_000_node_%d.h5" % i) for i in range(2)]
blocks = torch.tensor(np.concatenate([store["blocks"][:] for store in stores])).permute(0, 3, 1, 2)
labels = torch.tensor(np.concatenate([store["labels"][:] for store in stores]).astype(np.int64))
mean, std = (torch.tensor(v, dtype=torch.float64).view(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
pixels = ((blocks.double() / 255 - mean) / std).float()
start = {name: value for name, value in read("start").items() if "running" not in name}
truth = gradient(start)
one, ranks = step(start, "one"), step(start, "ranks")
size = np.linalg.norm(truth)


def judge(what, distance, limit):
    print(what, "is below %g" % limit if distance / size < limit else "is %.3g of %.3g" % (distance / size, size))


print(len(labels), "patches")
judge("one rank", np.linalg.norm(one - truth), 1e-4)
judge("three ranks", np.linalg.norm(ranks - truth), 1e-4)
judge("one against three", np.linalg.norm(one - ranks), 1e-4)
judge("one against three, the largest of", np.abs(one - ranks).max(), 1e-5)
P
