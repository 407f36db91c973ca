#!/usr/bin/python3
"""Seconds of a round of examples/models/cifar_cnn.toml in fedge-sim and in PyTorch: cifar_round.py DIRECTORY [ROUNDS].

DIRECTORY has CIFAR-10's binary files. A round is 50 clients of 50 samples in batches of 10, SGD 0.1. fedge-sim uses two
threads; PyTorch two processes of one thread, which divide the clients and load the round's model for each. Evaluations
are left out. Both take three turns; prints the medians. The programs must be on PATH.
"""
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from torch_layers import cifar_cnn  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS, SAMPLES, BATCH, RATE, WORKERS = 50, 50, 10, 0.1, 2


def fedge(directory, rounds):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["fedge-sim", "run", str(ROOT / "examples/models/cifar_cnn.toml"), "--data",
                        f"cifar-10={directory}", "--set", f"run.rounds={rounds}", "--set", "evaluation.where=none",
                        "--threads", str(WORKERS), "--out", f"{out}/results"], check=True, stdout=subprocess.DEVNULL)
        lines = pathlib.Path(f"{out}/results/metrics.jsonl").read_text().splitlines()
    seconds = [json.loads(line)["wall_seconds"] for line in lines]
    return (seconds[-1] - seconds[0]) / (len(seconds) - 1)


def work(rounds, clients, barrier):
    torch.set_num_threads(1)
    model = cifar_cnn()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    images, labels = torch.randn(SAMPLES, 3, 32, 32), torch.randint(10, (SAMPLES,))
    for _ in range(rounds):
        barrier.wait()
        for _ in range(clients):
            model.load_state_dict(start)
            optimizer = torch.optim.SGD(model.parameters(), RATE)
            for batch in torch.randperm(SAMPLES).split(BATCH):
                optimizer.zero_grad()
                F.cross_entropy(model(images[batch]), labels[batch]).backward()
                optimizer.step()
    barrier.wait()


def pytorch(rounds):
    barrier = multiprocessing.Barrier(WORKERS + 1)
    workers = [multiprocessing.Process(target=work, args=(rounds, CLIENTS // WORKERS, barrier)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    seconds = []
    barrier.wait()
    for _ in range(rounds):
        begun = time.monotonic()
        barrier.wait()
        seconds.append(time.monotonic() - begun)
    for worker in workers:
        worker.join()
    return statistics.median(seconds)


if __name__ == "__main__":
    path, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8
    torch_rounds, fedge_rounds = [], []
    for _ in range(3):
        torch_rounds.append(pytorch(count))
        fedge_rounds.append(fedge(path, count))
    torch_round, fedge_round = statistics.median(torch_rounds), statistics.median(fedge_rounds)
    print(f"PyTorch {torch.__version__}: {torch_round:.2f} s a round, fedge-sim {fedge_round:.2f} s, "
          f"ratio {torch_round / fedge_round:.2f}")
