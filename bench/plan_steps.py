"""The steps of a forward pass as `microtome model show --plan` prints them. If the
first layers run image by image, their times are summed over all images."""
import re

LINE = re.compile(r"\s*\d+ forward\s+(\S+)\s+(.*?)\s+(\[[\d, ]*\]|-)\s+[\d.]+ KB\s+([\d.]+) ms(?:\s+([\d.]+) GFLOP/s)?")


def steps(text):
    """[(node, kernel, shape, ms, GFLOP/s)] in the order of the run."""
    found, images = [], 1
    for line in text.splitlines():
        several = re.match(r"each of (\d+) images separately", line)
        if several:
            images = int(several[1])
        elif line.startswith("then all together"):
            images = 1
        step = LINE.match(line)
        if step:
            node, kernel, shape, ms, gflops = step.groups()
            found.append((node, kernel, shape, images * float(ms), float(gflops or 0)))
    return found


def peak_gflops(text):
    return float(re.search(r"of ([\d.]+) GFLOP/s$", text.strip())[1])
