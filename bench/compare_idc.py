"""examples/idc.yaml in this program and in PyTorch: AUC over seeds, wall and CPU time.

    compare_idc.py BUILD FOLDER [SEEDS [THREADS [microtome | PyTorch]]]

FOLDER contains train.tar and val.tar. Not part of `make bench`, because it takes long and needs the data; the PyTorch
side also needs python3-sklearn. The figures in docs/training.md come from here.
"""
import json
import os
import resource
import statistics
import subprocess
import sys

build, data = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
threads = sys.argv[4] if len(sys.argv) > 4 else "2"
only = sys.argv[5] if len(sys.argv) > 5 else None
here = os.path.dirname(os.path.abspath(__file__))
out = os.path.join(build, "bench", "idc")
train, val = os.path.join(data, "train.tar"), os.path.join(data, "val.tar")


def ours(seed):
    command = [os.path.join(build, "microtome"), "train", os.path.join(here, "..", "examples", "idc.yaml"), "-q",
               "--json", "--overwrite", "--threads", threads, "-o", f"{out}-{seed}"]
    for setting in (f"data.train={train}", f"data.val={val}", f"seed={seed}"):
        command += ["--set", setting]
    return command


def torch(seed):
    return ["/usr/bin/python3", os.path.join(here, "peers", "torch_idc.py"), train, val, "--seed", str(seed),
            "--threads", threads]


print(f"{'program':10} {'seed':>4} {'AUC':>7} {'wall s':>7} {'CPU s':>7}")
for name, command in (("microtome", ours), ("PyTorch", torch)):
    aucs = []
    if only not in (None, name):
        continue
    for seed in range(1, seeds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = json.loads(subprocess.run(command(seed), check=True, stdout=subprocess.PIPE, text=True).stdout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        aucs.append(result["auc"])
        print(f"{name:10} {seed:4d} {result['auc']:7.4f} {result['seconds']:7.0f} {cpu:7.0f}", flush=True)
    if seeds > 1:
        print(f"{name:10} mean {statistics.mean(aucs):7.4f} +- {statistics.stdev(aucs):.4f}", flush=True)
