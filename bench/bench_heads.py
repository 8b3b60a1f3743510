"""A step of training a Transformer on two ranks of a thread each: as two copies, with heads and columns divided
(parallel.heads), with tokens divided too (parallel.sequence); with sums that run while others compute and with sums that
are waited for (ranks.overlap: false); beside one process.

Usage: bench_heads.py BUILD [CASE...]. Writes BUILD/bench/heads.json. About six minutes on two idle cores.

The ways take turns within a run, runs on one process and on two ranks in ROUNDS rounds, and the fastest step counts, from
when all ranks begin to when the last one has ended.
"""
import json
import os
import subprocess
import sys

import measure
from setting import build, folder
from table import Table

PROGRAM = os.path.join(build, "heads_time")
# name: network, channels, height, width, samples of a step, depth; rounds, steps of a round
CASES = {
    "bert_mini, 64 tokens, 8 texts": (["bert_mini", "8000", "64", "1", "8", "0"], 5, 10),
    "bert_small, 128 tokens, 8 texts": (["bert_small", "8000", "128", "1", "8", "0"], 4, 4),
    "vit_small_patch32 at 64 px, 4 images": (["vit_small_patch32_224", "3", "64", "64", "4", "0"], 5, 10),
    "vit_base_patch16, 224 px, 4 images": (["vit_base_patch16_224", "3", "224", "224", "4", "0"], 2, 2),
}
NAMES = {"data": "data 2", "heads": "heads 2", "tokens": "heads 2, tokens divided"}


def on_one(arguments, steps):
    return json.loads(measure.output([PROGRAM, *arguments, str(steps)], 1))["data"]["seconds"]


def on_two(arguments, steps):
    start = ["mpirun", "-n", "2", "--quiet", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    start += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    text = subprocess.run(start + [PROGRAM, *arguments, str(steps)], check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(text)


def time_case(table, case):
    arguments, rounds, steps = CASES[case]
    one, two = [], []
    for _ in range(rounds):
        one.append(on_one(arguments, steps))
        two.append(on_two(arguments, steps))
    least = min(one)
    seconds = {way: [min(result[way][kind] for result in two) for kind in ("seconds", "waiting_seconds")] for way in NAMES}
    for way, name in NAMES.items():
        overlapped, waiting = seconds[way]
        table.add(f"{case}: {name}", "s/step", overlapped, least, "one process", less_is_better=True)
        table.add(f"{case}: {name}", "s/step", overlapped, waiting, "sums waited for", less_is_better=True)
        if way != "data":
            table.add(f"{case}: {name}", "s/step", overlapped, seconds["data"][0], "data 2", less_is_better=True)
            table.add(f"{case}: {name}, activations", "MB", two[0][way]["activation_bytes"] / 1e6,
                      two[0]["data"]["activation_bytes"] / 1e6, "data 2, half the samples", less_is_better=True)
    for row in table.rows[-10:]:
        print(row, flush=True)


def main():
    table = Table("heads", folder)
    for case in sys.argv[2:] or CASES:
        time_case(table, case)
    table.finish()


main()
