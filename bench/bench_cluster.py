"""predict on SLURM: two one-core nodes against one, the scheduler's overhead per task, and a simulation of 4,000 cores
with the 27,280 groups of the published run, based on the task times measured here.

Starts a private SLURM (tests/cluster/slurm), which needs root and the packages of the tests; without them it prints a
message and measures nothing.
"""
import heapq
import json
import os
import random
import shutil
import subprocess
import sys

from measure import run
from setting import cores, folder, here, microtome
from table import Table

SIZE_PX, SLIDES, NETWORK, GROUP_MPX = 8192, 2, "scan_base", 4
DEFAULT_GROUP_MPX = 64  # default of predict --group: a task of a real run
CORES, GROUPS = 4000, 27280
PUBLISHED = 0.97  # 95 to 99 %
data, cluster = os.path.join(folder, "cluster_data"), os.path.join(folder, "slurm")
log = os.path.join(folder, "cluster.log")
model = os.path.join(folder, f"cluster_{NETWORK}.onnx")  # initialised once: a task reads weights, as in a real run
fixture = os.path.join(here, "..", "tests", "cluster", "slurm")


def slurm(*words):
    return subprocess.run([fixture, *words], env=dict(os.environ, DIR=cluster, PORT="22000", CPUS="1"),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def predict(out, *options):
    shutil.rmtree(out, ignore_errors=True)
    seconds, _ = run([microtome, "predict", "-q", os.path.join(data, "slides.csv"), "-o", out, "--model", model,
                      "--memory", "600", "--group", str(GROUP_MPX), "--export", "none", *options], set(cores), log)
    return seconds


def on_nodes(nodes):
    """Seconds from the start of the first task to the end of the last one, and the time of each task."""
    out = os.path.join(folder, f"cluster_{nodes}")
    if not slurm("up", str(nodes)):
        return None, None
    try:
        predict(out, "--on", "slurm", "--wait")
    finally:
        slurm("down")
    with open(os.path.join(out, "tasks", "finished.json")) as file:
        account = json.load(file)
    records = os.path.join(out, "tasks", "record")
    times = []
    for name in sorted(os.listdir(records)):
        with open(os.path.join(records, name)) as file:
            record = json.load(file)
        times.append(record["ended"] - record["began"])
    return account["parallel_s"], times


def simulate(tasks, overhead):
    """Efficiency of greedy dispatch to CORES cores: each free core takes the next job."""
    free = [0.0] * CORES
    end = 0.0
    for seconds in tasks:
        at = heapq.heappop(free) + overhead + seconds
        end = max(end, at)
        heapq.heappush(free, at)
    return sum(tasks) / (CORES * end)


def packed(tasks):
    """--jobs CORES: most expensive first, each to the job with the least work."""
    loads = [(0.0, job) for job in range(CORES)]
    for seconds in sorted(tasks, reverse=True):
        load, job = heapq.heappop(loads)
        heapq.heappush(loads, (load + seconds, job))
    return [load for load, _ in loads]


if os.geteuid() != 0 or not all(shutil.which(name, path="/usr/sbin:/usr/bin:/bin") for name in ("slurmctld", "munged")):
    print("cluster: needs root, slurm-wlm and munge; nothing measured")
    sys.exit(0)
os.environ["SLURM_CONF"] = os.path.join(cluster, "slurm.conf")
os.environ["PATH"] += ":/usr/sbin"
run([microtome, "phantom", "-q", "-o", data, "--slides", str(SLIDES), "--size", str(SIZE_PX), "--seed", "7"],
    set(cores), log)
run([microtome, "model", "convert", "-q", "--network", NETWORK, "--classes", "2", "-o", model], set(cores), log)
alone_s = predict(os.path.join(folder, "cluster_0"), "--threads", "1")
one_s, one_times = on_nodes(1)
two_s, two_times = on_nodes(2)
if one_s is None or two_s is None:
    print("cluster: SLURM does not start here; nothing measured")
    sys.exit(0)
n = len(one_times)
overhead_s = (one_s - sum(one_times)) / n
mean_s = sum(one_times) / n
table = Table("cluster", folder)
table.add("predict: two one-core nodes against one", "speed-up", one_s / two_s, 2.0, "twice as fast")
table.add("predict: two nodes against one process, one thread", "speed-up", alone_s / two_s, 2.0, "twice as fast")
table.add(f"scheduler overhead per task ({n} tasks)", "s", max(overhead_s, 1e-3), mean_s, "the task itself",
          less_is_better=True)
rng = random.Random(1)
scale = DEFAULT_GROUP_MPX / GROUP_MPX
tasks = [rng.choice(one_times) * scale for _ in range(GROUPS)]
tasks.sort(reverse=True)  # in order of submission
table.add(f"simulated: {GROUPS} tasks of {mean_s * scale:.0f} s, {CORES} cores", "efficiency",
          simulate(tasks, overhead_s), PUBLISHED, "published, 0.95-0.99")
table.add(f"simulated: the same in {CORES} jobs (--jobs)", "efficiency",
          simulate(packed(tasks), overhead_s), PUBLISHED, "published, 0.95-0.99")
table.finish()
