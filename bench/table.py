"""Rows of a benchmark: printed as a table, written as build/bench/<name>.json.

A row is case, unit, ours, peer, peer_name, ratio; a ratio above 1 means that microtome is better, whether more is better
(rates) or less is (memory).
"""
import json
import os


class Table:
    def __init__(self, name, folder):
        self.name, self.folder, self.rows = name, folder, []

    def add(self, case, unit, ours, peer, peer_name, less_is_better=False):
        ratio = peer / ours if less_is_better else ours / peer
        self.rows.append(dict(case=case, unit=unit, ours=ours, peer=peer, peer_name=peer_name, ratio=ratio))

    def finish(self):
        os.makedirs(self.folder, exist_ok=True)
        part = os.path.join(self.folder, self.name + ".json.part")
        with open(part, "w") as out:
            json.dump(self.rows, out, indent=2)
            out.write("\n")
        os.rename(part, part[: -len(".part")])
        width = max(len(row["case"]) for row in self.rows)
        print(f"\n{self.name}\n{'case':{width}}  {'unit':12} {'ours':>10} {'peer':>10}  ratio  peer")
        for row in self.rows:
            print(f"{row['case']:{width}}  {row['unit']:12} {row['ours']:10.4g} {row['peer']:10.4g} "
                  f"{row['ratio']:5.2f}x  {row['peer_name']}")
