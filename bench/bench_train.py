"""Training end to end, from an HDF5 patch store: reading, augmenting, forward, backward, update.

ResNet-18 at 224 px, batches of 16, on two pinned cores, against a PyTorch DataLoader and training loop on the same
stores with the same number of threads and loader workers. The target is 1.2 times PyTorch's images per second, and a
loader that never makes training wait.
"""
import glob
import json
import os
import shutil
import subprocess

from measure import output
from setting import PYTHON, cores, folder, here, microtome
from table import Table

data = os.path.join(folder, "train-data")
BATCH, WORKERS, EPOCHS, ROUNDS = 16, 2, 2, 2


def make_stores():
    """Two patients to train on, 120 patches; a third, small, to validate on."""
    shutil.rmtree(data, ignore_errors=True)
    subprocess.run([microtome, "phantom", "-q", "-o", data + "/cohort", "--slides", "6", "--size", "2048", "--seed",
                    "1"], check=True)
    subprocess.run([microtome, "extract", "-q", data + "/cohort/slides.csv", "-o", data + "/stores", "--random", "20",
                    "--patch", "256"], check=True, stdout=subprocess.DEVNULL)
    stores = sorted(glob.glob(data + "/stores/*.h5"))
    train = [store for store in stores if "patient_002" not in store]
    return train, [store for store in stores if "patient_002" in store]


def ours(train, val, threads):
    settings = dict(data__train=json.dumps(train), data__val=json.dumps(val[:1]), network__name="resnet18",
                    network__input_px=224, train__batch=BATCH, train__epochs=EPOCHS, data__workers=WORKERS,
                    schedule__learning_rate=0.01, schedule__name="constant")
    command = [microtome, "train", "-q", "--json", "--overwrite", "-o", data + "/run", "--threads", str(threads)]
    for key, value in settings.items():
        command += ["--set", f"{key.replace('__', '.')}={value}"]
    result = json.loads(output(command, threads))
    return result["patches_per_s"], result["waiting"]


def torch(train, threads):
    result = json.loads(output([PYTHON, os.path.join(here, "peers", "torch_train.py"), str(BATCH), str(threads),
                                str(WORKERS), str(EPOCHS), *train], threads))
    return result["images_per_s"], result["waiting"]


table = Table("train", folder)
stores, others = make_stores()
for threads in sorted({1, min(2, len(cores))}):
    ours_best, torch_best = (0, 0), (0, 0)
    for _ in range(ROUNDS if threads > 1 else 1):  # take turns, so that a slow moment affects both alike
        ours_best = max(ours_best, ours(stores, others, threads))
        torch_best = max(torch_best, torch(stores, threads))
    name = f"resnet18 b16 from a store, {threads} thread{'s' if threads > 1 else ''}"
    table.add(name, "images/s", ours_best[0], torch_best[0], "PyTorch DataLoader and loop")
    print(f"{name}: waiting for data {100 * ours_best[1]:.1f} % of the time, PyTorch {100 * torch_best[1]:.1f} %")
table.finish()
shutil.rmtree(data, ignore_errors=True)
