#!/usr/bin/python3
"""Time and memory of fedge-sim as the population, the cohort and the threads grow. fedge-sim must be on PATH.

scale.py population   10,000, 100,000 and 1,000,000 devices, 1,000 a round, with availability, links and dropouts
scale.py cohort       50, 200 and 1,000 clients a round of a CNN with 1.66 million parameters
scale.py threads      1 and 2 threads, and two processes of 1 thread: 1,200 clients a round of an MLP with 109,386
                      parameters
scale.py ranks        1 rank, and 2 ranks of 1 thread under mpirun, beside 2 threads: 50 clients a round of the CNN;
                      with and without an evaluation in each round

Each command repeats its runs in turn (three times, or REPETITIONS after the command), because other guests of a
machine change its speed within minutes, and prints medians of the rounds' times over all repetitions, and the
shortest. Data: Fashion-MNIST.
"""
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MLP = """
[run]
name = "scale"
rounds = 20
evaluate_every = 1000
[data]
dataset = "fashion-mnist"
[model]
kind = "mlp"
hidden = [128, 64]
[training]
batch_size = 10
optimizer = { kind = "sgd", learning_rate = 0.05 }
"""
POPULATION = MLP + """
[data.partition]
kind = "dirichlet"
alpha = 0.3
clients = 1000000
samples_per_client = 60
replicate = true
[sampling]
clients_per_round = 1000
over_selection = 1.3
[simulation]
device = { sigma = 0.7 }
network = { sigma = 0.8, latency_sigma = 0.5 }
dropout = { probability = 0.02 }
availability = { kind = "gilbert_elliott" }
"""
USERS = MLP + """
[data.partition]
kind = "iid"
clients = 1200
samples_per_client = 50
[sampling]
clients_per_round = 1200
"""
CNN = """
[run]
name = "cohort"
rounds = 3
evaluate_every = 1000
[data]
dataset = "fashion-mnist"
partition = { kind = "iid", clients = 1000, samples_per_client = 20 }
[model]
kind = "cnn"
[training]
batch_size = 20
optimizer = { kind = "sgd", learning_rate = 0.05 }
[sampling]
clients_per_round = 1000
"""


class Run:
    """One configuration: its rounds' times over all repetitions, and the most that it needed."""

    def __init__(self, text, **settings):
        self.text, self.settings = text, settings
        self.rounds, self.walls, self.peak, self.events, self.hashes = [], [], 0, [], set()
        self.traffic = []

    def repeat(self, threads=2, ranks=1):
        with tempfile.TemporaryDirectory() as out:
            file = pathlib.Path(out) / "run.toml"
            file.write_text(self.text)
            words = ["fedge-sim", "run", str(file), "--threads", str(threads), "--out", f"{out}/results",
                     "--log-level", "info"]
            for key, value in self.settings.items():
                words += ["--set", f"{key.replace('__', '.')}={value}"]
            if ranks > 1:
                words = ["mpirun", "-n", str(ranks), *words]
            with open(f"{out}/said", "w+", encoding="utf8") as said:
                begun = time.monotonic()
                process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said)
                _, status, usage = os.wait4(process.pid, 0)
                if status:
                    sys.exit(f"{' '.join(words)} failed")
                self.walls.append(time.monotonic() - begun)
                said.seek(0)
                lines = said.readlines()
                ended = [line for line in lines if "simulation.ended" in line][0]
                self.traffic += [dict(word.split("=") for word in line.split("simulation.ranks ")[1].split())
                                 for line in lines if "simulation.ranks" in line]
            self.events.append(float(ended.split("events=")[1]))
            rows = [json.loads(line) for line in pathlib.Path(out, "results/metrics.jsonl").read_text().splitlines()]
        seconds = [row["wall_seconds"] for row in rows]
        # The first round contains the clients' connecting, the last one the evaluation.
        self.rounds += [after - before for before, after in zip(seconds[:-2], seconds[1:-1])]
        self.peak = max(self.peak, usage.ru_maxrss / 1024)
        self.hashes.add(rows[-1]["model_hash"])

    @property
    def median(self):
        return statistics.median(self.rounds)


def population(repetitions):
    runs = {n: Run(POPULATION, data__partition__clients=n, run__wait_for_clients=n // 4)
            for n in (10_000, 100_000, 1_000_000)}
    for _ in range(repetitions):
        for run in runs.values():
            run.repeat()
    print("| devices | whole run, s | s a round | shortest | events/s | peak, MB |\n| --- | --- | --- | --- | --- | --- |")
    for devices, run in runs.items():
        rate = statistics.median(e / w for e, w in zip(run.events, run.walls))
        print(f"| {devices:,} | {statistics.median(run.walls):.1f} | {run.median:.3f} | {min(run.rounds):.3f} | {rate:,.0f} "
              f"| {run.peak:.0f} |")


def cohort(repetitions):
    runs = {n: Run(CNN, sampling__clients_per_round=n) for n in (50, 200, 1000)}
    for _ in range(repetitions):
        for run in runs.values():
            run.repeat()
    print("| clients a round | s a round | peak, MB |\n| --- | --- | --- |")
    for clients, run in runs.items():
        print(f"| {clients:,} | {run.median:.2f} | {run.peak:.0f} |")


def threads(repetitions):
    runs, pair = {n: Run(USERS) for n in (1, 2)}, [Run(USERS), Run(USERS)]
    for _ in range(repetitions):
        for count, run in runs.items():
            run.repeat(count)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda run: run.repeat(1), pair))
    assert runs[1].hashes == runs[2].hashes
    limit = sum(runs[1].median / run.median for run in pair)
    print("| threads | s a round | shortest | users/s |\n| --- | --- | --- | --- |")
    for count, run in runs.items():
        print(f"| {count} | {run.median:.3f} | {min(run.rounds):.3f} | {1200 / run.median:,.0f} |")
    print(f"two threads: {runs[1].median / runs[2].median:.2f} times (medians), "
          f"{min(runs[1].rounds) / min(runs[2].rounds):.2f} times (shortest)\n"
          f"two processes of one thread at the same time, the machine's limit: {limit:.2f} times (medians)")


def ranks(repetitions):
    print("| evaluation | | s a round | shortest | efficiency |\n| --- | --- | --- | --- | --- |")
    for name, every in (("no", 1000), ("in each round", 1)):
        settings = {"sampling__clients_per_round": 50, "run__rounds": 10, "run__evaluate_every": every}
        runs = {places: Run(CNN, **settings) for places in ((1, 1), (1, 2), (2, 1))}
        for _ in range(repetitions):
            for (processes, count), run in runs.items():
                run.repeat(count, processes)
        assert len(set.union(*(run.hashes for run in runs.values()))) == 1
        for (processes, count), run in runs.items():
            what = "2 ranks" if processes == 2 else f"{count} thread" + "s" * (count > 1)
            efficiency = runs[1, 1].median / run.median / (processes * count)
            print(f"| {name} | {what} | {run.median:.3f} | {min(run.rounds):.3f} | {100 * efficiency:.0f} % |")
        moved = [{key: float(value) for key, value in traffic.items()} for traffic in runs[2, 1].traffic]
        mean = {key: statistics.mean(each[key] for each in moved) / 10 for key in moved[0]}
        print(f"\nOf rank 0, a round: {mean['bytes_reduced'] / 1e6:.1f} MB added up in {1e3 * mean['seconds_reducing']:.1f} ms, "
              f"{mean['bytes_sent'] / 1e3:.1f} kB sent besides, {1e3 * mean['seconds_waiting']:.0f} ms waited\n")


if __name__ == "__main__":
    commands = {"population": population, "cohort": cohort, "threads": threads, "ranks": ranks}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 3)
