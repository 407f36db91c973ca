#!/usr/bin/python3
"""Users a second of fedge-sim with 200,000 users of 50 samples and a small network of three layers.

many_users.py DIRECTORY [ROUNDS] writes the data to DIRECTORY (1.3 GB, drawn numbers of 32 features and two classes;
once) and trains rounds of 1,000 users: one epoch in batches of 10, plain SGD, an MLP 32-64-32-2 of 4,258 parameters, on
two threads. Loading the data and the evaluation are left out. fedge-sim must be on PATH.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

USERS, SAMPLES, FEATURES, TEST, A_ROUND = 200_000, 50, 32, 50_000, 1_000

RUN = f"""
[run]
name = "many-users"
[data]
dataset = "arrays"
name = "drawn"
shape = [{FEATURES}]
class_count = 2
split = {{kind = "share", test = {TEST / (USERS * SAMPLES + TEST)}}}
partition = {{kind = "iid", clients = {USERS}, samples_per_client = {SAMPLES}}}
[model]
kind = "mlp"
hidden = [64, 32]
[training]
optimizer = {{kind = "sgd", learning_rate = 0.1}}
batch_size = 10
[sampling]
clients_per_round = {A_ROUND}
"""


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    samples = USERS * SAMPLES + TEST
    hidden, out = rng.standard_normal((FEATURES, 8), "f4"), rng.standard_normal(8, "f4")
    inputs = np.lib.format.open_memmap(directory / "x.npy", "w+", "f4", (samples, FEATURES))
    labels = np.empty(samples, "u1")
    for first in range(0, samples, SAMPLES * 1_000):
        some = rng.standard_normal((min(SAMPLES * 1_000, samples - first), FEATURES), "f4")
        inputs[first:first + len(some)] = some
        labels[first:first + len(some)] = np.tanh(some @ hidden) @ out > 0
    inputs.flush()
    np.save(directory / "y.npy", labels)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    directory, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    if not (directory / "y.npy").exists():
        write(directory)
    with tempfile.TemporaryDirectory() as out:
        file = pathlib.Path(out) / "run.toml"
        file.write_text(RUN)
        subprocess.run(["fedge-sim", "run", str(file), "--data", f"drawn={directory}", "--set", f"run.rounds={rounds}",
                        "--set", f"run.evaluate_every={rounds}", "--threads", "2", "--out", f"{out}/results"],
                       check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (pathlib.Path(out) / "results/metrics.jsonl").read_text().splitlines()]
    before_last = lines[-2]["wall_seconds"] - lines[0]["wall_seconds"]
    print(f"{A_ROUND * (len(lines) - 2) / before_last:,.0f} users/s over {len(lines) - 2} rounds, "
          f"accuracy {100 * lines[-1]['test_accuracy']:.2f} % after {rounds} rounds")


if __name__ == "__main__":
    main()
