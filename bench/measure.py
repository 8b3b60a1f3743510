"""Runs a command on pinned cores and measures its wall time and peak memory; installs a peer from PyPI."""
import os
import subprocess
import time

from setting import cores as all_cores


def run(command, cores, log):
    """Seconds and peak resident MB of one run; its output goes to the file `log`. Ends the bench if it fails."""
    os.sync()  # do not wait for what earlier runs left in the page cache
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, cores)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.monotonic() - began
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: failed, see {log}")
    return seconds, usage.ru_maxrss / 1024


def output(command, threads, **environment):
    """The output of a command, on as many cores as it has threads."""
    pinned = set(all_cores[-threads:])
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          preexec_fn=lambda: os.sched_setaffinity(0, pinned),
                          env={**os.environ, "OMP_NUM_THREADS": str(threads), **environment}).stdout


def best(command, cores, log, repeats, before=lambda: None):
    """The fastest of `repeats` runs; `before` cleans up ahead of each. Memory is the largest seen."""
    runs = []
    for _ in range(repeats):
        before()
        runs.append(run(command, cores, log))
    return min(seconds for seconds, _ in runs), max(megabytes for _, megabytes in runs)


ONNX_PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def onnx_peers(python, site):
    """Those of ONNX_PEERS that are in the folder `site`; they are installed from PyPI if needed and possible."""
    return [peer for peer, title in ONNX_PEERS.items() if have_package(python, site, peer, title, [])]


def have_package(python, site, package, title=None, options=("--no-deps",), module=None):
    """The same for any package; by default without what it requires, which the system's Python has."""
    there = os.path.join(site, module or package)
    if not os.path.isdir(there):
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-warn-conflicts", "--root-user-action=ignore",
                        *options, "--target", site, package])
    if not os.path.isdir(there):
        print(f"{title or package} cannot be installed here: its rows are omitted")
    return os.path.isdir(there)
