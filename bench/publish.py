"""Inserts the tables of the last `make bench` into docs/benchmarks.md: every NAME.json in BUILD/bench that has a place
there, between <!-- bench NAME --> and <!-- end -->.

    bench/publish.py BUILD
"""
import json
import os
import re
import sys

build = sys.argv[1]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "benchmarks.md")


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(name):
    with open(os.path.join(build, "bench", name + ".json")) as stream:
        rows = json.load(stream)
    lines = ["| case | unit | microtome | peer | ratio | peer |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['case']} | {row['unit']} | {number(row['ours'])} | {number(row['peer'])} | "
                     f"{row['ratio']:.2f}× | {row['peer_name']} |")
    return "\n".join(lines)


def place(match):
    name = match.group(1)
    if not os.path.exists(os.path.join(build, "bench", name + ".json")):
        return match.group(0)
    return f"<!-- bench {name} -->\n{table(name)}\n<!-- end -->"


with open(path) as stream:
    text = stream.read()
text = re.sub(r"<!-- bench (\w+) -->\n.*?<!-- end -->", place, text, flags=re.S)
with open(path, "w") as stream:
    stream.write(text)
