"""Times the robust rules of bench_robust in NumPy, on the same shape. Prints the best of several
repetitions, in seconds.

    robust_numpy.py [updates] [parameters] [turns]

Median and trimmed mean are the usual one-line expressions. Krum computes the distance of each pair with
np.linalg.norm. "Gram" computes the distances with one matrix product; this is faster, but cancellation
makes the distances of similar updates inexact. Bulyan uses the same distances, selects in a Python loop,
and does its second phase with whole-array operations.
"""
import sys
import time

try:
    import numpy as np
except ImportError:
    print("skipped: python3-numpy not found; install it for the comparison")
    sys.exit(0)


def distances_by_pairs(x):
    n = len(x)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = d[j, i] = np.linalg.norm(x[i] - x[j]) ** 2
    return d


def distances_by_gram(x):
    g = x @ x.T
    squares = np.diag(g)
    return squares[:, None] + squares[None, :] - 2 * g


def scores(d, f):
    d = d.copy()
    np.fill_diagonal(d, np.inf)
    return np.sort(d, axis=1)[:, : max(len(d) - f - 2, 1)].sum(axis=1)


def krum(x, f, distances):
    return x[np.argmin(scores(distances(x), f))]


def bulyan(x, f, distances):
    d = distances(x)
    left = list(range(len(x)))
    selected = []
    for _ in range(len(x) - 2 * f):
        winner = left[int(np.argmin(scores(d[np.ix_(left, left)], f)))]
        selected.append(winner)
        left.remove(winner)
    chosen = x[selected]
    keep = len(selected) - 2 * f
    median = np.median(chosen, axis=0)
    closest = np.argpartition(np.abs(chosen - median), keep - 1, axis=0)[:keep]
    return np.take_along_axis(chosen, closest, axis=0).mean(axis=0)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    d = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    x = 0.01 * np.random.default_rng(1).standard_normal((n, d), dtype=np.float32)
    f = n // 5
    b = min(f, (n - 3) // 4)
    rules = {
        "median": lambda: np.median(x, axis=0),
        "trimmed_mean": lambda: np.sort(x, axis=0)[f : n - f].mean(axis=0),
        "trimmed_mean, partition": lambda: np.partition(x, (f, n - f - 1), axis=0)[f : n - f].mean(axis=0),
        "krum": lambda: krum(x, f, distances_by_pairs),
        "krum, Gram": lambda: krum(x, f, distances_by_gram),
        "bulyan": lambda: bulyan(x, b, distances_by_pairs),
        "bulyan, Gram": lambda: bulyan(x, b, distances_by_gram),
    }
    print(f"NumPy {np.__version__}, {n} x {d} float32, best of {turns}")
    for name, rule in rules.items():
        best = float("inf")
        for _ in range(turns):
            start = time.perf_counter()
            rule()
            best = min(best, time.perf_counter() - start)
        print(f"{name:26} {best:8.3f} s", flush=True)


main()
