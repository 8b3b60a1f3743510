"""How the peers are timed: the best of several runs, after one that does not count."""
import time


def best_ms(step, repeats):
    step()
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - began)
    return 1e3 * best
