"""Draws the inputs of aggregate_test.py from a seed: ordinary and degenerate rounds of updates.

Each kind is a function (random, n, d) -> (n, d) array. Values fit float32 and, except for "beyond", the
default bound of 256.
"""
import numpy as np


def honest(random, n, d):
    return random.normal(0.01, 0.02, d) + random.normal(0, 0.02, (n, d))


def wide(random, n, d):
    return random.uniform(-256, 256, (n, d))


def equal(random, n, d):
    return np.tile(random.normal(0, 1, d), (n, 1))


def zeros(random, n, d):
    return np.zeros((n, d))


def magnitudes(random, n, d):
    """Very large and very small values, down to denormal numbers."""
    return random.choice([-1, 1], (n, d)) * 10.0 ** random.uniform(-42, 2.4, (n, d))


def one_huge(random, n, d):
    x = random.normal(0, 1e-6, (n, d))
    x[random.integers(n)] = random.choice([-256, 256], d)
    return x


def duplicates(random, n, d):
    return random.normal(0, 1, (3, d))[random.integers(0, 3, n)]


def grid(random, n, d):
    """Small integers, so that most parameters have ties."""
    return random.integers(-2, 3, (n, d)).astype(np.float64)


def common_offset(random, n, d):
    """Updates that differ by little compared with their common part: a Gram matrix would lose the distances."""
    return 200 + random.normal(0, 0.01, (n, d))


def sign_flip(random, n, d):
    x = honest(random, n, d)
    x[random.integers(n)] *= -10
    return x


def colluders(random, n, d):
    """A fifth of the updates, at least one, are equal and slightly inside the honest spread."""
    x = honest(random, n, d)
    hostile = random.permutation(n)[:max(1, n // 5)]
    x[hostile] = x.mean(axis=0) - 1.5 * x.std(axis=0)
    return x


def line(random, n, d):
    return random.normal(0, 1, (n, 1)) * random.normal(0, 1, d)


def beyond(random, n, d):
    return random.choice([-1, 1], (n, d)) * 10.0 ** random.uniform(-2, 5.9, (n, d))


KINDS = [honest, wide, equal, zeros, magnitudes, one_huge, duplicates, grid, common_offset, sign_flip, colluders, line,
         beyond]


def shapes(random, d):
    """Returns shapes that divide d parameters into up to four tensors, one of them a matrix if possible."""
    cuts = np.sort(random.choice(np.arange(1, d), min(d - 1, int(random.integers(0, 4))), replace=False))
    sizes = np.diff([0, *cuts, d])
    return {f"layer{i}": (int(size) // 2, 2) if size % 2 == 0 else (int(size),) for i, size in enumerate(sizes)}


def weights(random, n):
    """Returns equal, ordinary or very unequal numbers of samples."""
    choice = random.integers(3)
    if choice == 0:
        return [1] * n
    return random.integers(60, 601, n).tolist() if choice == 1 else (10 ** random.uniform(0, 6, n)).astype(int).tolist()
