#!/usr/bin/python3
"""Accuracy and seconds a round of examples/models/shakespeare_lstm.toml in fedge-sim and in PyTorch.

shakespeare.py SPEAKERS [ROUNDS]: SPEAKERS has one text file for each speaker, as the example says. Both train 10
speakers a round, one epoch in batches of 10 windows of 80 characters, SGD 1.0, and average by windows; the draws and
the initial models differ. Every tenth block of 1024 bytes of a file is for testing. fedge-sim uses two threads, PyTorch
two processes of one thread. The accuracy is that of the next character on the test blocks. Evaluations are left out of
the times. The programs must be on PATH.
"""
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/training"))

from torch_layers import Lstm  # noqa: E402

CONTEXT, BLOCK, BATCH, RATE, A_ROUND, WORKERS = 80, 1024, 10, 1.0, 10, 2


def tokens(text):
    """The 95 printable characters and the newline; others become a question mark."""
    return [95 if c == "\n" else ord(c) - 32 if " " <= c <= "~" else 31 for c in text]


def windows(text):
    ids = torch.tensor(tokens(text))
    count = (len(ids) - 1) // CONTEXT
    return ids[:count * CONTEXT].view(count, CONTEXT), ids[1:count * CONTEXT + 1].view(count, CONTEXT)


def read(directory):
    clients, test = [], []
    for file in sorted(pathlib.Path(directory).glob("*.txt")):
        text = file.read_text(encoding="utf-8")
        blocks = [text[i:i + BLOCK] for i in range(0, len(text), BLOCK)]
        clients.append(windows("".join(b for i, b in enumerate(blocks) if i % 10 != 9)))
        test += [windows(b) for i, b in enumerate(blocks) if i % 10 == 9 and len(b) > CONTEXT]
    return clients, [torch.cat([pair[side] for pair in test]) for side in (0, 1)]


def as_numpy(state):
    """Queues copy arrays; tensors they would share."""
    return {name: value.detach().numpy() for name, value in state.items()}


def as_tensors(arrays):
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


def work(directory, tasks, results):
    torch.set_num_threads(1)
    clients, _ = read(directory)
    model = Lstm()
    for start, chosen in iter(tasks.get, None):
        total, weight = None, 0
        for client in chosen:
            model.load_state_dict(as_tensors(start))
            optimizer = torch.optim.SGD(model.parameters(), RATE)
            inputs, targets = clients[client]
            for batch in torch.randperm(len(inputs)).split(BATCH):
                optimizer.zero_grad()
                F.cross_entropy(model(inputs[batch]), targets[batch].flatten()).backward()
                optimizer.step()
            scaled = {name: len(inputs) * value.detach() for name, value in model.state_dict().items()}
            total = scaled if total is None else {name: total[name] + scaled[name] for name in total}
            weight += len(inputs)
        results.put((as_numpy(total), weight))


def accuracy(model, test):
    with torch.no_grad():
        right = sum(int((model(x).argmax(1) == y.flatten()).sum())
                    for x, y in zip(test[0].split(100), test[1].split(100), strict=True))
    return right / test[1].numel()


def pytorch(directory, rounds):
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(directory, tasks, results)) for _ in range(WORKERS)]
    for worker in workers:  # before this process uses PyTorch, which does not survive a fork
        worker.start()
    clients, test = read(directory)
    torch.manual_seed(1)
    model = Lstm()
    seconds = 0.0
    for _ in range(rounds):
        begin = time.perf_counter()
        chosen = torch.randperm(len(clients))[:A_ROUND].tolist()
        for worker in range(WORKERS):
            tasks.put((as_numpy(model.state_dict()), chosen[worker::WORKERS]))
        sums = [results.get() for _ in range(WORKERS)]
        weight = sum(part for _, part in sums)
        model.load_state_dict(as_tensors({name: sum(part[name] for part, _ in sums) / weight
                                          for name in model.state_dict()}))
        seconds += time.perf_counter() - begin
    for worker in workers:
        tasks.put(None)
        worker.join()
    return seconds / rounds, accuracy(model, test)


def fedge(directory, rounds):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["fedge-sim", "run", str(ROOT / "examples/models/shakespeare_lstm.toml"), "--data",
                        f"shakespeare={directory}", "--set", f"run.rounds={rounds}", "--set",
                        f"run.evaluate_every={rounds}", "--threads", str(WORKERS), "--out", f"{out}/results"],
                       check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in pathlib.Path(f"{out}/results/metrics.jsonl").read_text().splitlines()]
    trained = lines[:-1]
    seconds = (trained[-1]["wall_seconds"] - trained[0]["wall_seconds"]) / (len(trained) - 1)
    return seconds, lines[-1]["test_accuracy"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    for name, run in (("fedge-sim", fedge), ("PyTorch " + torch.__version__, pytorch)):
        seconds, right = run(sys.argv[1], rounds)
        print(f"{name}: {seconds:.2f} s a round, accuracy {100 * right:.2f} % after {rounds} rounds", flush=True)


if __name__ == "__main__":
    main()
