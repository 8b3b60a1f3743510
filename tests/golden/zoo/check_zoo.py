#!/usr/bin/python3
"""Every float of the zoo's networks against PyTorch anew, case by case (cases.txt).

    check_zoo.py SCRATCH TEST_ZOO PART PARTS

PyTorch's values are held against the committed checksums, then TEST_ZOO compares ours with all of
them. The slack near kinks is the committed one. Only every PARTS-th case, from PART (1..) on."""
import os
import shutil
import subprocess
import sys

import numpy as np

from make_zoo_golden import MODELS, make_records, read_cases, run_both


def as_committed(kept, made):
    assert (kept["key"] == made["key"]).all(), "other parameters than in the committed file"
    for mode in ("eval", "train"):
        scale = kept[mode][:, :1]
        off = np.abs(kept[mode] - made[mode]) - (1e-5 + kept["slack"][:, :1]) * scale
        assert (off < 1e-9 * scale.max()).all(), "other values than in the committed file"


def check(case, golden, scratch, test_zoo):
    record_path, full_path = (os.path.join(scratch, case.case + end) for end in (".npy", ".bin"))
    kept = np.load(os.path.join(golden, case.case + ".npy"))
    with open(full_path, "wb") as stream:
        made = make_records(run_both(case), stream)
    as_committed(kept, made)
    made["slack"] = kept["slack"]
    np.save(record_path, made)
    shutil.copy(os.path.join(golden, case.case + ".txt"), scratch)
    subprocess.run([test_zoo, case.case], env={**os.environ, "ZOO_FULL": scratch}, check=True)
    os.remove(full_path)


def main():
    scratch, test_zoo, part, parts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    golden = os.path.dirname(os.path.abspath(__file__))
    for case in read_cases()[part - 1::parts]:
        if case.network not in MODELS:
            print(case.case, "not compared: timm or transformers is not installed")
            continue
        check(case, golden, scratch, test_zoo)


main()
