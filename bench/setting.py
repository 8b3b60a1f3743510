"""The setting of a benchmark: the build named on the command line, its files, and the cores that may be used."""
import os
import sys

PYTHON = "/usr/bin/python3"
build = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
folder = os.path.join(build, "bench")
site = os.path.join(folder, "python")  # what peers need from PyPI
microtome = os.path.join(build, "microtome")
cores = sorted(os.sched_getaffinity(0))
os.makedirs(folder, exist_ok=True)
