#!/usr/bin/python3
"""Runs the workload of bench_training in PyTorch (Debian: python3-torch), in alternation with bench_training.

    torch_loop.py BENCH_TRAINING --model mlp --batch 10 --rounds 100 --evaluate 10,50,100
    torch_loop.py BENCH_TRAINING --model mlp --rounds 5 --alone      PyTorch only

For each client, a loop copies the global parameters and trains one epoch of mini-batches with autograd and
plain SGD. Two processes with one thread each divide the clients of a round with a shared counter. Each
process sums the results of its clients, and the parent averages. Batches and initial weights come from
bench_training's export, so that both train the same. To be fast, the loop keeps the parameters as views of
one vector, normalises images in advance, and uses no nn.Module, optimizer object or data loader.
"""
import argparse
import gzip
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

try:
    import numpy as np
    import torch
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error.name} not found")
    sys.exit(0)

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
LEARNING_RATE = 0.05
WORKERS = 2


def images(name):
    raw = gzip.decompress((DATA / f"{name}-images-idx3-ubyte.gz").read_bytes())
    pixels = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)
    return (torch.from_numpy(pixels.astype(np.float32)) / 255.0 - 0.2860) / 0.3530


def labels(name):
    raw = gzip.decompress((DATA / f"{name}-labels-idx1-ubyte.gz").read_bytes())
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=8).astype(np.int64))


class Workload:
    """The workload that bench_training --export writes (bench/training/workload.h)."""

    def __init__(self, path):
        self.words = np.fromfile(path, np.uint32)
        self.at = 0
        size, rounds, clients, self.batch = (self.number() for _ in range(4))
        self.initial = self.take(size).view(np.float32).copy()
        for _ in range(self.number()):
            self.take(self.number())  # skip the partition: the orders below contain the same samples
        self.rounds = [[(self.number(), self.take(self.number())) for _ in range(clients)] for _ in range(rounds)]

    def number(self):
        self.at += 1
        return int(self.words[self.at - 1])

    def take(self, count):
        self.at += count
        return self.words[self.at - count:self.at]


class Network:
    """A model whose parameters are views of one flat vector, in PyTorch's order of dimensions."""

    def __init__(self, model):
        self.cnn = model == "cnn"
        widths = {"softmax": (784, 10), "mlp": (784, 200, 200, 10), "cnn": (3136, 512, 10)}[model]
        self.shapes = [(32, 1, 5, 5), (32,), (64, 32, 5, 5), (64,)] if self.cnn else []
        for inputs, outputs in zip(widths, widths[1:]):
            self.shapes += [(outputs, inputs), (outputs,)]

    def views(self, flat):
        """Returns one tensor for each weight and bias, which shares the memory of `flat`."""
        tensors = []
        at = 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            tensors.append(flat[at:at + size].view(shape).detach().requires_grad_())
            at += size
        return tensors

    def scores(self, tensors, x):
        if self.cnn:
            x = x.reshape(-1, 1, 28, 28)
            for i in (0, 2):
                x = functional.conv2d(x, tensors[i], tensors[i + 1], padding=2)
                x = functional.max_pool2d(functional.relu(x), 2)
            x = x.flatten(1)
        first = 4 if self.cnn else 0
        for i in range(first, len(tensors), 2):
            x = functional.linear(x, tensors[i], tensors[i + 1])
            if i + 2 < len(tensors):
                x = functional.relu(x)
        return x

    def train(self, tensors, x, y, batch):
        for first in range(0, len(y), batch):
            loss = functional.cross_entropy(self.scores(tensors, x[first:first + batch]), y[first:first + batch])
            gradients = torch.autograd.grad(loss, tensors)
            with torch.no_grad():
                for values, gradient in zip(tensors, gradients):
                    values.add_(gradient, alpha=-LEARNING_RATE)


def worker(network, workload, x, y, model, total, counter, pipe):
    torch.set_num_threads(1)
    parameters = torch.empty_like(model)
    tensors = network.views(parameters)
    while True:
        clients = workload.rounds[pipe.recv()]
        started = time.process_time()
        total.zero_()
        samples = 0
        while True:
            with counter.get_lock():
                mine = counter.value
                counter.value += 1
            if mine >= len(clients):
                break
            order = torch.from_numpy(clients[mine][1].astype(np.int64))
            parameters.copy_(model)
            network.train(tensors, x[order], y[order], workload.batch)
            total.add_(parameters, alpha=float(len(order)))
            samples += len(order)
        pipe.send((samples, time.process_time() - started))


class Torch:
    def __init__(self, model, workload):
        torch.set_num_threads(1)
        self.network = Network(model)
        x, y = images("train"), labels("train")
        self.test = images("t10k"), labels("t10k")
        self.model = torch.from_numpy(workload.initial.copy()).share_memory_()
        self.totals = [torch.zeros_like(self.model).share_memory_() for _ in range(WORKERS)]
        self.counter = multiprocessing.Value("i", 0)
        self.pipes = []
        self.round = 0
        for total in self.totals:
            here, there = multiprocessing.Pipe()
            multiprocessing.Process(target=worker, daemon=True, args=(self.network, workload, x, y, self.model,
                                                                      total, self.counter, there)).start()
            self.pipes.append(here)

    def train(self):
        started, processor = time.perf_counter(), time.process_time()
        self.counter.value = 0
        for pipe in self.pipes:
            pipe.send(self.round)
        answers = [pipe.recv() for pipe in self.pipes]
        torch.add(*self.totals, out=self.model).div_(sum(samples for samples, _ in answers))
        self.round += 1
        return (time.perf_counter() - started,
                time.process_time() - processor + sum(seconds for _, seconds in answers))

    def evaluate(self):
        with torch.no_grad():
            tensors = self.network.views(self.model)
            scores = torch.cat([self.network.scores(tensors, x) for x in self.test[0].split(1000)])
        return ((scores.argmax(1) == self.test[1]).double().mean().item(),
                functional.cross_entropy(scores, self.test[1]).item())


class Fedge:
    """A bench_training process that is controlled by commands."""

    def __init__(self, command):
        self.process = subprocess.Popen(command + ["--commands"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit("bench_training ended early")
        return tuple(float(value) for value in answer)

    def train(self):
        return self.ask("train")

    def evaluate(self):
        return self.ask("evaluate")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def describe(name, rounds, clients):
    seconds, processor = ([value[i] for value in rounds] for i in (0, 1))
    print(f"  {name:8} {clients / statistics.median(seconds):9.0f} {clients / min(seconds):9.0f} "
          f"{1e6 * statistics.median(processor) / clients:14.1f} {1e6 * min(processor) / clients:11.1f}")


def main():
    parser = argparse.ArgumentParser(description="PyTorch's side of the training benchmark.")
    parser.add_argument("bench_training", help="the program, built in release mode")
    parser.add_argument("--model", default="mlp", choices=("softmax", "mlp", "cnn"))
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--evaluate", default="", help="rounds after which to compare accuracies")
    parser.add_argument("--alone", action="store_true",
                        help="PyTorch only; prints milliseconds of processor time a client")
    options = parser.parse_args()
    milestones = {int(r) for r in options.evaluate.split(",") if r}

    command = [options.bench_training, "--model", options.model, "--batch", str(options.batch),
               "--rounds", str(options.rounds)]
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "workload")
        subprocess.run(command + ["--export", file], check=True)
        workload = Workload(file)
    clients = len(workload.rounds[0])
    peer = Torch(options.model, workload)
    if options.alone:
        rounds = [peer.train() for _ in range(options.rounds)]
        print(f"{1000 * min(processor for _, processor in rounds) / clients:.3f}")
        return

    fedge = Fedge(command)
    taken = {"fedge": [], "PyTorch": []}
    accuracies = []
    for number in range(1, options.rounds + 1):
        taken["PyTorch"].append(peer.train())
        taken["fedge"].append(fedge.train())
        if number in milestones:
            accuracies.append((number, fedge.evaluate(), peer.evaluate()))
    fedge.close()
    print(f"{options.model}, batch {options.batch}, {options.rounds} rounds of {clients} clients, taking turns")
    print(f"  {'':8} {'clients/s':>9} {'best':>9} {'processor us':>14} {'best':>11}   (per client)")
    # Skip the first round, which warms up caches and allocators.
    for name, rounds in taken.items():
        describe(name, rounds[1:], clients)
    pairs = list(zip(taken["PyTorch"][1:], taken["fedge"][1:]))
    by_clock, by_processor = (statistics.median(t[i] / f[i] for t, f in pairs) for i in (0, 1))
    print(f"  fedge is {by_clock:.2f} times as fast by the clock, {by_processor:.2f} times by processor time"
          " (medians of rounds)")
    for number, ours, theirs in accuracies:
        print(f"  after round {number}: accuracy fedge {ours[0]:.4f}, PyTorch {theirs[0]:.4f}; "
              f"loss fedge {ours[1]:.4f}, PyTorch {theirs[1]:.4f}")


if __name__ == "__main__":
    main()
