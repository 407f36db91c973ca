"""Tests the exact accumulator: it gives the same bits in 20 random arrival orders, and differs from NumPy's
float64 mean by at most half a unit of the fixed-point format (2^-28 by default).

    mean_test.py FOLD_FILES
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy not found (package python3-numpy)")
    sys.exit(77)  # CTest counts this exit code as skipped

PARAMETERS = 200_003
CLIENTS = 12
HALF_UNIT = 2.0**-29


def fold(program, directory, weights, order):
    out = os.path.join(directory, "mean.f64")
    command = [program, out, str(PARAMETERS)]
    for client in order:
        command += [str(weights[client]), os.path.join(directory, f"{client}.f32")]
    subprocess.run(command, check=True)
    return np.fromfile(out, dtype="<f8")


def compare(program, name, weights, updates, random):
    with tempfile.TemporaryDirectory() as directory:
        for client, update in enumerate(updates):
            update.astype("<f4").tofile(os.path.join(directory, f"{client}.f32"))
        first = fold(program, directory, weights, range(CLIENTS))
        for _ in range(20):
            again = fold(program, directory, weights, random.permutation(CLIENTS))
            assert np.array_equal(first.view(np.uint64), again.view(np.uint64)), f"{name}: order changed the bits"
    exact = np.average(np.stack(updates).astype(np.float64), axis=0, weights=np.array(weights, dtype=np.float64))
    error = np.max(np.abs(first - exact))
    assert error <= HALF_UNIT, f"{name}: differs from NumPy by {error:g}, more than {HALF_UNIT:g}"
    assert np.max(np.abs(exact)) > 0.001, f"{name}: the mean should not vanish"
    print(f"{name}: 20 orders alike, largest difference to NumPy {error / HALF_UNIT:.3f} of half a unit")


def main():
    program = sys.argv[1]
    random = np.random.default_rng(11)
    small = [random.normal(0.01, 0.02, PARAMETERS).astype(np.float32) for _ in range(CLIENTS)]
    large = [random.uniform(-256, 256, PARAMETERS).astype(np.float32) for _ in range(CLIENTS)]
    compare(program, "equal weights", [1] * CLIENTS, small, random)
    compare(program, "60 to 600 samples", random.integers(60, 601, CLIENTS).tolist(), small, random)
    compare(program, "up to a million samples", random.integers(1, 1_000_001, CLIENTS).tolist(), small, random)
    compare(program, "values up to 256", random.integers(1, 1_000_001, CLIENTS).tolist(), large, random)


main()
