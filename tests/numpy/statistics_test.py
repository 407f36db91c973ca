"""Federated statistics against NumPy's of all values in one place, for random and adversarial columns, with
missing values. Then the same under secure aggregation, which must not change a digit.

    statistics_test.py FEDGE_SIM
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SIM = Path(sys.argv[1])
CLIENTS = 5
RUN = """
[run]
name = "statistics"
rounds = 1
[data]
dataset = "csv"
name = "mine"
numeric = [{numeric}]
normalise = "federated"
target = "label"
classes = ["a", "b", "c"]
partition = {{ kind = "own", clients = 5 }}
split = {{ test = 0 }}
[model]
kind = "softmax"
[sampling]
clients_per_round = 5
[evaluation]
where = "none"
"""
rng = np.random.default_rng(42)
SAMPLES = 4000


def with_outliers():
    values = rng.normal(0, 1, SAMPLES)
    values[::500] = 1e12
    return values


COLUMNS = {
    "normal": rng.normal(50, 9, SAMPLES),
    "log normal": rng.lognormal(0, 4, SAMPLES),
    "cauchy": rng.standard_cauchy(SAMPLES),
    "outliers": with_outliers(),
    "time stamps": rng.uniform(1.7e9, 1.7e9 + 1e6, SAMPLES),
    "ages": rng.integers(28, 78, SAMPLES).astype(float),
    "almost all zero": np.where(rng.uniform(size=SAMPLES) < 0.97, 0.0, rng.uniform(-1e-20, 1e20, SAMPLES)),
    "tiny": rng.uniform(-1e-38, 1e-38, SAMPLES),
    "constant": np.full(SAMPLES, -3.25),
    "two values": np.where(np.arange(SAMPLES) < 3, 1e30, -1e-30),
}
MISSING = {name: rng.uniform(size=SAMPLES) < 0.05 for name in COLUMNS}
LABELS = rng.choice(["a", "b", "c"], SAMPLES, p=[0.7, 0.2, 0.1])
# The clients have different numbers of samples, and the columns are sorted among some of them.
OWNER = np.minimum(rng.integers(0, CLIENTS * 2, SAMPLES), CLIENTS - 1)


def simulate(directory, more=""):
    run_file = directory / "run.toml"
    run_file.write_text(RUN.format(numeric=", ".join(f'"{name}"' for name in COLUMNS)) + more)
    subprocess.run([SIM, "run", run_file, "--data", f"mine={directory / 'mine'}", "--out", directory / "out",
                    "--force"], check=True, timeout=100, stdout=subprocess.DEVNULL)
    first = (directory / "out" / "metrics.jsonl").read_text().splitlines()[0]
    return json.loads(first)["statistics"], json.loads(first)["model_hash"]


with tempfile.TemporaryDirectory() as name:
    home = Path(name)
    (home / "mine").mkdir()
    for client in range(CLIENTS):
        with open(home / "mine" / f"client-{client}.csv", "w", encoding="utf-8") as out:
            print(",".join([*COLUMNS, "label"]), file=out)
            for i in np.flatnonzero(OWNER == client):
                cells = ["" if MISSING[n][i] else repr(float(COLUMNS[n][i])) for n in COLUMNS]
                print(",".join([*cells, LABELS[i]]), file=out)
    statistics, model = simulate(home)
    masked = simulate(home, '[secure_aggregation]\nkind = "exact"\n')

assert masked == (statistics, model), "secure aggregation changes the statistics or the model"
assert statistics["clients"] == CLIENTS and statistics["samples"] == SAMPLES
assert statistics["labels"] == [{"name": n, "count": int((LABELS == n).sum())} for n in "abc"]
worst = 0.0
for column in statistics["columns"]:
    name = column["name"]
    values = COLUMNS[name][~MISSING[name]].astype(np.float32).astype(np.float64)
    assert column["count"] == len(values) and column["missing"] == int(MISSING[name].sum()), name
    rounding = 1e-9 * np.abs(values).max()
    assert abs(column["mean"] - values.mean()) <= column["mean_error"] + rounding, (name, column, values.mean())
    assert abs(column["deviation"] - values.std()) <= 2 * column["mean_error"] + rounding, (name, values.std())
    for key, q in [("minimum", 0), ("lower_quartile", 0.25), ("median", 0.5), ("upper_quartile", 0.75),
                   ("maximum", 1)]:
        exact = np.quantile(values, q)
        error = abs(column[key] - exact)
        assert error <= column[key + "_error"] * (1 + 1e-9), (name, key, column[key], exact)
    spread = np.subtract(*np.quantile(values, [0.75, 0.25]))
    stated = column["median_error"] / spread if spread > 0 else 0.0
    worst = max(worst, stated if name != "almost all zero" else 0.0)
    print(f"{name:16} median {column['median']:12.6g} (exact {np.quantile(values, 0.5):12.6g}), stated within "
          f"{column['median_error']:9.2g}, mean within {column['mean_error']:9.2g}")
# A stated error that covers everything would state nothing.
assert worst < 0.1, worst
