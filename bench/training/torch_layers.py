#!/usr/bin/python3
"""Times the training step of bench_layers in PyTorch, on one thread: torch_layers.py NAME STEPS.

NAME is a run file of examples/models/ without its suffix; the networks, batches and random data are the same.
Plain SGD is one fused addition for each tensor. Prints the median step in milliseconds, and samples per second.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def cifar_cnn():
    return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Dropout(0.25), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Dropout(0.5),
                         nn.Linear(128, 10))


def activity_cnn():
    return nn.Sequential(nn.Conv1d(6, 32, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(32, 32, 5, padding=2),
                         nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(32, 32, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(32, 5))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(4, outputs), nn.GroupNorm(4, outputs)
        self.short = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.GroupNorm(4, outputs))

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + self.short(x))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.GroupNorm(4, 16), nn.ReLU()]
    channels = 16
    for units in (16, 32, 64):
        for block in range(3):
            layers.append(Block(channels, units, 2 if block == 0 and units > 16 else 1))
            channels = units
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(96, 8), nn.LSTM(8, 256, 2, batch_first=True)
        self.dense = nn.Linear(256, 96)

    def forward(self, tokens):
        return self.dense(self.lstm(self.embedding(tokens))[0]).flatten(0, 1)


NETWORKS = {
    "lenet": (lenet, 20, (1, 28, 28), 10),
    "cifar_cnn": (cifar_cnn, 10, (3, 32, 32), 10),
    "activity_cnn": (activity_cnn, 32, (6, 104), 5),
    "resnet20": (resnet20, 20, (3, 32, 32), 10),
    "shakespeare_lstm": (Lstm, 10, None, 96),
}


def main():
    make, batch, shape, outputs = NETWORKS[sys.argv[1]]
    torch.set_num_threads(1)
    network = make()
    parameters = list(network.parameters())
    inputs = torch.randint(0, outputs, (batch, 80)) if shape is None else torch.randn(batch, *shape)
    targets = torch.randint(0, outputs, (batch * (80 if shape is None else 1),))
    seconds = []
    for _ in range(int(sys.argv[2]) + 2):
        start = time.perf_counter()
        gradients = torch.autograd.grad(F.cross_entropy(network(inputs), targets), parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                parameter.add_(gradient, alpha=-0.01)
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds[2:])
    print(f"{1e3 * median:.2f} ms, {batch / median:.0f} samples/s (PyTorch {torch.__version__}, "
          f"{sum(p.numel() for p in parameters)} parameters)")


if __name__ == "__main__":
    main()
