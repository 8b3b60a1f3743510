#!/usr/bin/env python3
"""exact_ranks.py GRADIENTS [study FOLDER [NETWORK...]]: how far gradients of networks that are divided among ranks are
from those that PyTorch computes in double precision from the same weights and pixels, beside the gradients of one
process: at most 1.5 times as far, for every schedule, number of stages, replicas and micro-batches, and for images in
parts. With a mistake (a micro-batch that is dropped or counted twice, a gradient that is not sent back, halos without
gradients) they must be further. GRADIENTS is the program of gradients.c.

Without more, the cases of a test; `study` runs all of them and writes FOLDER/exact_ranks.json.
"""
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(SOURCE, "stream"), os.path.join(SOURCE, "golden", "zoo")]
from exact import calibrate, write_safetensors  # noqa: E402: ends here where PyTorch is absent

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from make_zoo_golden import Case, make_model, numbers  # noqa: E402

GRADIENTS = sys.argv[1]
LIMIT = 1.5
TIE = 1e-6  # of the root mean square: maxima of a window that are nearer may change places in float32
# images [batch, 3, height, width] of pipelines and of images in parts; gain: as in golden/zoo/cases.txt
NETWORKS = {
    "resnet110_v2": ((2, 24, 20), (2, 33, 45), 1.0),
    "resnet50": ((2, 64, 64), (2, 77, 101), 1.0),
    "googlenet": ((2, 64, 64), (2, 67, 71), 1.4),
    "vit_small_patch16_224": ((2, 48, 48), None, 1.0),
}
SCHEDULES = ["basic", "mast", "master", "gpipe", "1f1b", "zb-h1"]
FAULTS = ["dropped", "twice", "lost"]


def micros_of(schedule, study):
    if schedule == "mast":
        return [2]
    return [4, 6] if schedule == "master" else [3, 6] if study else [3]


def pipelines(network, study):
    """Cases of a network, by norm."""
    norms = ["frozen", "batch"] if network != "vit_small_patch16_224" else ["frozen"]
    for norm in norms:
        for schedule in SCHEDULES:
            for micros in micros_of(schedule, study):
                for stages in 2, 3, 4:
                    for replicas in 1, 2:
                        for again in (0, 1) if schedule in ("gpipe", "1f1b", "zb-h1") else (0,):
                            yield f"pipeline {norm} {schedule} {stages} {replicas} {micros} {again}"


def spaces():
    for norm in "frozen", "batch":
        for rows, columns in (1, 2), (2, 1), (2, 2):
            yield f"space {norm} {rows} {columns}"


# every schedule once, each number of stages, both numbers of replicas
TEST = {
    "resnet110_v2": ["pipeline batch basic 2 1 3 0", "pipeline batch mast 3 2 2 0", "pipeline batch master 4 1 4 0",
                     "pipeline frozen 1f1b 4 2 3 1", "pipeline frozen zb-h1 3 1 3 0", "space frozen 2 2",
                     "space batch 1 2"],
    "resnet50": ["pipeline frozen master 3 1 4 0"],
    "googlenet": ["pipeline frozen gpipe 3 1 3 1", "pipeline frozen zb-h1 2 1 3 1", "space frozen 2 2"],
    "vit_small_patch16_224": ["pipeline frozen 1f1b 3 1 3 0", "pipeline frozen mast 2 1 2 0"],
}
CONTROLS = {"resnet110_v2": ["pipeline frozen 1f1b 3 1 3 0", "pipeline batch master 2 1 4 0"]}
SPACE_CONTROLS = {"resnet110_v2": ["space frozen 2 2", "space batch 2 1"], "googlenet": ["space frozen 1 2"]}


def micros_in(case):
    """Micro-batches of all replicas."""
    words = case.split()
    return int(words[4]) * int(words[5]) if words[0] == "pipeline" else 1


class Network:
    """Weights and gradients of one network at one size, in a folder."""

    def __init__(self, name, size, gain):
        batch, height, width = size
        self.case = Case(name, name, batch, 3, height, width, 7, 0, 0, gain)
        self.folder = tempfile.mkdtemp(dir=os.environ.get("SCRATCH"))
        self.model, names = make_model(self.case, "eval", torch.float32)
        calibrate(self.model, torch.cat([self.numbers("input", m, (batch, 3, height, width)) for m in range(4)]), False)
        write_safetensors(os.path.join(self.folder, "weights.safetensors"),
                          {key: value.detach() for key, value in names.items()})
        self.model = self.model.double()
        self.statistics = {key: value.clone() for key, value in self.model.named_buffers()}
        public = getattr(self.model, "public_name", lambda key: key)
        self.parameters = {public(key): value for key, value in self.model.named_parameters()}
        with open(os.path.join(self.folder, "index.txt"), "w") as out:
            out.writelines(f"{key} {value.numel()}\n" for key, value in self.parameters.items())

    @staticmethod
    def numbers(name, draw, shape):
        count = torch.Size(shape).numel()
        return torch.from_numpy(numbers(f"{name}:{draw}" if draw else name, count)).view(shape)

    def images(self, draw):
        shape = (self.case.batch, self.case.channels, self.case.height, self.case.width)
        return self.numbers("input", draw, shape).double()

    def start(self, norm):
        self.model.load_state_dict(self.statistics, strict=False)
        self.model.train(norm == "batch")

    def has_ties(self, norm, draw):
        """Whether rounding may decide which value of a window is its maximum: then gradients would differ by what
        this one carries, thousands of times the rounding. Copies of one value, by pools that overlap, do not count."""
        near = []

        def look(pool, inputs, outputs):
            kernel, stride, pad = pool.kernel_size, pool.stride, pool.padding
            x = functional.pad(inputs[0], (pad, pad + kernel) * 2, value=-1e30)
            rows, columns = outputs.shape[2:]
            windows = x.unfold(2, kernel, stride).unfold(3, kernel, stride)[:, :, :rows, :columns].flatten(4)
            first, second = windows.topk(2, -1).values.unbind(-1)
            gap = (first - second)[first > 0] / outputs.square().mean().sqrt()
            near.append(bool(((gap > 0) & (gap < TIE)).any()))

        hooks = [part.register_forward_hook(look) for part in self.model.modules() if isinstance(part, nn.MaxPool2d)]
        self.start(norm)
        with torch.no_grad():
            if hooks:
                self.model(self.images(draw))
        for hook in hooks:
            hook.remove()
        return any(near)

    def reference(self, norm, counts):
        """Gradients of the first so many micro-batches together, one file for each of the counts; and which numbers
        the micro-batches are drawn from."""
        draws, draw = [], 0
        while len(draws) < max(counts):
            if max(counts) == 1 or not self.has_ties(norm, draw):
                draws.append(draw)
            draw += 1
        with open(os.path.join(self.folder, norm + ".txt"), "w") as out:
            out.writelines(f"{draw}\n" for draw in draws)
        self.start(norm)
        self.model.zero_grad()
        for micro, draw in enumerate(draws):
            outputs = self.model(self.images(draw))
            outputs.backward(self.numbers("loss:logits", draw, outputs.shape).double())
            if micro + 1 in counts:
                with open(os.path.join(self.folder, f"{norm}_{micro + 1}.f64"), "wb") as out:
                    for value in self.parameters.values():
                        out.write(value.grad.numpy().tobytes())

    def ours(self, norm, cases):
        """Errors of the cases, which have this norm: a list of dictionaries."""
        self.reference(norm, set(map(micros_in, cases)))
        words = [GRADIENTS, self.case.network, self.case.batch, self.case.height, self.case.width, self.case.classes,
                 self.folder]
        cases = sorted(cases, key=micros_in)  # those of one plain run together
        run = subprocess.run(list(map(str, words)), input="\n".join(cases), stdout=subprocess.PIPE, text=True)
        lines = run.stdout.splitlines()
        if run.returncode or len(lines) != len(cases):
            sys.exit(f"{self.case.network}: {GRADIENTS} failed at {cases[len(lines)]}")
        rows = []
        for case, line in zip(cases, lines):
            total, alike, plain, plain_alike, same = map(float, line.split())
            rows.append(dict(network=self.case.network, case=case, total=total, alike=alike, plain=plain,
                             plain_alike=plain_alike, same_bits=bool(same), ratio=total / plain,
                             ratio_alike=alike / plain_alike))
        return rows

    def close(self):
        shutil.rmtree(self.folder)


def network_of(name, kind, norm):
    """At its size; of images in parts, which are always the first draw, at the next size without ties."""
    (batch, height, width), gain = NETWORKS[name][kind == "space"], NETWORKS[name][2]
    for i in range(100):
        network = Network(name, (batch, height + 2 * (i % 4), width + 2 * (i // 4)), gain)
        if kind == "pipeline" or not network.has_ties(norm, 0):
            return network
        network.close()
    sys.exit(f"{name}: no size without ties")


def judge(row):
    """Whether it is as it must be."""
    fault = row["case"].split()[-1] != "none"
    exact = max(row["ratio"], row["ratio_alike"]) <= LIMIT
    print(f"{row['network']:22} {row['case']:45} {row['total']:.2e} (plain {row['plain']:.2e}) {row['ratio']:.2f}x, "
          f"by layer {row['ratio_alike']:.2f}x{', same bits' if row['same_bits'] else ''}"
          f"{'' if exact != fault else '  FAILED: a mistake that is not seen' if fault else '  FAILED'}", flush=True)
    return exact != fault


def main():
    study, rows, failures = sys.argv[2:3] == ["study"], [], 0
    torch.set_num_threads(1)
    for name in (sys.argv[4:] if study else []) or NETWORKS:
        cases = list(pipelines(name, study)) + (list(spaces()) if NETWORKS[name][1] else []) if study else TEST[name]
        cases = [case + " none" for case in cases]
        cases += [f"{case} {fault}" for case in CONTROLS.get(name, []) for fault in FAULTS]
        cases += [case + " detached" for case in SPACE_CONTROLS.get(name, [])]
        for kind, norm in itertools.product(("pipeline", "space"), ("frozen", "batch")):
            chosen = [case for case in cases if case.startswith(f"{kind} {norm} ")]
            if not chosen:
                continue
            network = network_of(name, kind, norm)
            found = network.ours(norm, chosen)
            network.close()
            failures += sum(not judge(row) for row in found)
            rows += found
        if study:
            with open(os.path.join(sys.argv[3], "exact_ranks.json"), "w") as out:
                json.dump(rows, out, indent=2)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
