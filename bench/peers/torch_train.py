"""The peer: a PyTorch DataLoader and training loop on patch stores.

    torch_train.py BATCH THREADS WORKERS EPOCHS STORE...

torchvision's ResNet-18, SGD with momentum; patches are cropped to 224, flipped, turned by quarters
and normalised in WORKERS processes. Prints {"images_per_s": .., "waiting": ..} as JSON: whole
batches of all epochs over their time, and the share of it without a batch.
"""
import json
import sys
import time

import h5py
import numpy as np
import torch
import torchvision

batch, threads, workers, epochs = map(int, sys.argv[1:5])
CROP = 224
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


class Patches(torch.utils.data.Dataset):
    """Every process opens the stores for itself."""

    def __init__(self, paths):
        self.paths, self.open, self.index = paths, {}, []
        for number, path in enumerate(paths):
            with h5py.File(path) as store:
                self.index += [(number, i, int(label)) for i, label in enumerate(store["labels"][:]) if label >= 0]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        number, patch, label = self.index[i]
        if number not in self.open:
            self.open[number] = h5py.File(self.paths[number])
        image = self.open[number]["blocks"][patch]
        top, left = np.random.randint(0, image.shape[0] - CROP + 1, 2)
        image = image[top:top + CROP, left:left + CROP]
        image = np.rot90(image, np.random.randint(4))
        if np.random.randint(2):
            image = image[::-1]
        if np.random.randint(2):
            image = image[:, ::-1]
        image = (np.ascontiguousarray(image).astype(np.float32) / 255 - MEAN) / STD
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), label


torch.set_num_threads(threads)
torch.manual_seed(0)
model = torchvision.models.resnet18(num_classes=2)
model.train()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
loader = torch.utils.data.DataLoader(Patches(sys.argv[5:]), batch, shuffle=True, num_workers=workers, drop_last=True,
                                     persistent_workers=True)
images, seconds, waited = 0, 0.0, 0.0
for _ in range(epochs):
    began = time.perf_counter()
    batches = iter(loader)
    for _ in range(len(loader)):
        asked = time.perf_counter()
        x, y = next(batches)
        waited += time.perf_counter() - asked
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        images += len(y)
    seconds += time.perf_counter() - began
print(json.dumps(dict(images_per_s=images / seconds, waiting=waited / seconds)))
