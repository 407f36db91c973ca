#!/usr/bin/python3
"""Measures what fedge-sim adds to a PyTorch program's own time: trainer_overhead.py DIRECTORY [ROUNDS].

DIRECTORY has CIFAR-10's binary files. Runs examples/pytorch/resnet20.toml (1,000 clients, 10 a round) with one
process of its program, and the same trainings in a plain loop in this process, on one thread each. Prints the seconds
of a client's training in both, from the second round on, and the overhead. The programs must be on PATH.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS, SAMPLES, BATCH, RATE = 10, 50, 10, 0.05


def simulated(directory, rounds):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["fedge-sim", "run", str(ROOT / "examples/pytorch/resnet20.toml"), "--data",
                        f"cifar-10={directory}", "--set", f"run.rounds={rounds}", "--set", "evaluation.where=none",
                        "--trainer", f"{sys.executable} {ROOT}/examples/pytorch/resnet20.py {directory}", "--out",
                        f"{out}/results"], check=True, stdout=subprocess.DEVNULL)
        lines = pathlib.Path(f"{out}/results/metrics.jsonl").read_text().splitlines()
    seconds = [json.loads(line)["wall_seconds"] for line in lines]
    return (seconds[-1] - seconds[0]) / (len(seconds) - 1) / CLIENTS


def network():
    """Returns the network of the example, which is a program and not a module."""
    source = (ROOT / "examples/pytorch/resnet20.py").read_text().split("torch.set_num_threads")[0]
    names = {"__file__": str(ROOT / "examples/pytorch/resnet20.py")}
    exec(compile(source, "resnet20.py", "exec"), names)
    return names["build"](), names["read_cifar"]


def plain(directory, rounds):
    model, read_cifar = network()
    images, labels = read_cifar(directory, [f"data_batch_{i}.bin" for i in range(1, 6)])
    start = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(1)
    begun = None
    for task in range(rounds * CLIENTS):
        if task == CLIENTS:
            begun = time.monotonic()
        model.load_state_dict(start)
        optimizer = torch.optim.SGD(model.parameters(), RATE)
        own = torch.randint(len(labels), (SAMPLES,))
        for batch in own.split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    return (time.monotonic() - begun) / (rounds - 1) / CLIENTS


if __name__ == "__main__":
    torch.set_num_threads(1)
    path, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 12
    through, bare = [], []
    for _ in range(3):  # in turn, because the machine's speed changes
        bare.append(plain(path, count))
        through.append(simulated(path, count))
    through, bare = sorted(through)[1], sorted(bare)[1]
    print(f"PyTorch {torch.__version__}: {bare * 1000:.1f} ms a client in a loop, "
          f"{through * 1000:.1f} ms through fedge-sim, {100 * (through / bare - 1):+.1f} %")
