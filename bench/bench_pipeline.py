"""A network in stages: ResNet-110 v2 on large tiles by the schedules of GEMS and by 1F1B, on two ranks with a core each,
measured beside simulated; the memory of four ranks; and what is simulated for 4 and 128 ranks beside the published hours.

Usage: bench_pipeline.py BUILD [PX [LARGE_PX]]. Writes BUILD/bench/pipeline.json.

A step has MICROS tiles, one a micro-batch, batch norm over each; MAST has two in a step. Seconds are for MICROS tiles.
LARGE_PX (0: leave out): one more row, by 1F1B with recomputation, on tiles as large as the memory of this machine takes. If
it does not, these processes are the first to be ended, not others.
"""
import json
import os
import subprocess
import sys

from setting import build, folder
from table import Table

NETWORK, MICROS, REPEATS = "resnet110_v2", 4, 2
PX, LARGE_PX = (int(word) for word in (sys.argv[2:] + ["512", "0"][len(sys.argv[2:]):])[:2])
# name, schedule, micro-batches of a step, recomputation
SCHEDULES = [("Basic", "basic", MICROS, 0), ("MAST", "mast", 2, 0), ("MASTER", "master", MICROS, 0),
             ("1F1B with recomputation", "1f1b", MICROS, 1), ("1F1B", "1f1b", MICROS, 0), ("ZB-H1", "zb-h1", MICROS, 0)]
PUBLISHED = {"Basic": 7.25, "MAST": 6.28, "MASTER": 4.21, "MASTER, 32 replicas": 0.46}  # hours, on GPUs
WIRE = ["2", "12"]  # us, GB/s: InfiniBand EDR, assumed


def on_ranks(ranks, px, schedule, micros, recompute, repeats):
    start = ["mpirun", "-n", str(ranks), "--quiet", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    start += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = [os.path.join(build, "pipeline_time"), NETWORK, str(px), schedule, str(micros), str(recompute), str(repeats)]
    text = subprocess.run(start + ["choom", "-n", "1000", "--"] + command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(text)


def simulated(px, schedule, micros, recompute, stages, replicas):
    """Seconds of a step whose ranks have a core each."""
    command = [os.path.join(build, "pipeline_time"), NETWORK, str(px), schedule, str(micros), str(recompute), "0", str(stages),
               str(replicas), *WIRE]
    return json.loads(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)["simulated_s"]


def most_mb(result):
    return max(rank["activations"] + rank["inputs"] for rank in result["ranks"]) / 1e6


def time_two(table):
    seconds = {}
    for name, schedule, micros, recompute in SCHEDULES:
        result = on_ranks(2, PX, schedule, micros, recompute, REPEATS)
        scale = MICROS / micros
        seconds[name] = scale * result["measured_s"]
        table.add(f"{PX} px, 2 ranks, {MICROS} tiles: {name}", "s", seconds[name], scale * result["simulated_s"],
                  "simulated", less_is_better=True)
        print(table.rows[-1], flush=True)
    ours = seconds["1F1B with recomputation"]
    for name in ("Basic", "MAST", "MASTER"):
        table.add(f"{PX} px, 2 ranks, {MICROS} tiles: 1F1B with recomputation", "s", ours, seconds[name], f"GEMS-{name}",
                  less_is_better=True)


def memory_of_four(table):
    basic = None
    for name, schedule, micros, recompute in SCHEDULES:
        mb = most_mb(on_ranks(4, PX // 2, schedule, micros, recompute, 1))
        basic = basic or mb
        table.add(f"{PX // 2} px, 4 ranks, activations and inputs of the largest: {name}", "MB", mb, basic, "GEMS-Basic",
                  less_is_better=True)
        print(table.rows[-1], flush=True)


def simulate_many(table):
    """Relative to Basic on four ranks, for the same tiles."""
    cases = [(name, schedule, micros, recompute, 1) for name, schedule, micros, recompute in SCHEDULES]
    cases += [("MASTER, 32 replicas", "master", MICROS, 0, 32), ("1F1B with recomputation, 32 replicas", "1f1b", MICROS, 1, 32)]
    basic = None
    for name, schedule, micros, recompute, replicas in cases:
        a_tile = simulated(PX, schedule, micros, recompute, 4, replicas) / micros / replicas
        basic = basic or a_tile
        published = PUBLISHED.get(name, None)
        table.add(f"simulated, {4 * replicas} ranks: {name}", "times Basic", basic / a_tile,
                  PUBLISHED["Basic"] / published if published else 1,
                  "published, GPUs" if published else "GEMS-Basic")
        print(table.rows[-1], flush=True)


def main():
    table = Table("pipeline", folder)
    simulate_many(table)
    memory_of_four(table)
    time_two(table)
    if LARGE_PX:
        result = on_ranks(2, LARGE_PX, "1f1b", 2, 1, 1)
        table.add(f"{LARGE_PX} px, 2 ranks, 2 tiles: 1F1B with recomputation", "s", result["measured_s"],
                  result["simulated_s"], "simulated", less_is_better=True)
        table.add(f"{LARGE_PX} px, 2 ranks: activations and inputs of the largest", "MB", most_mb(result),
                  max(result["simulated_bytes"]) / 1e6, "simulated, with messages", less_is_better=True)
    table.finish()


main()
