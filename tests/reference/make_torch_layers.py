#!/usr/bin/python3
"""Writes PyTorch's results for lists of layers (Debian: python3-torch).

    make_torch_layers.py DIRECTORY    writes DIRECTORY/torch_layers_*.txt
    make_torch_layers.py --check DIRECTORY    compares only; fails on a difference above 1e-9

For each network of tests/unit/learn/layers/torch_test.cc: scores, loss and gradient of one batch, in float64.
Parameters and inputs come from hashed() of make_torch_reference.py. Modules are registered in the order of the
list, so that their parameters have its order.
"""
from make_torch_reference import check_or_write, flatten, hashed

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    """6x8x3 images: a convolution, a block with a strided shortcut, a block without."""

    def __init__(self):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm0 = nn.GroupNorm(2, 4)
        self.conv1 = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(2, 8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(4, 8)
        self.short = nn.Conv2d(4, 8, 1, stride=2, bias=False)
        self.norm3 = nn.GroupNorm(1, 8)
        self.conv4 = nn.Conv2d(8, 8, 3, padding=1)
        self.dense = nn.Linear(8, 3)

    def forward(self, x):
        x = F.relu(self.norm0(self.conv0(x)))
        main = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        x = F.relu(main + self.norm3(self.short(x)))
        x = F.relu(self.conv4(x) + x)
        return self.dense(x.mean((2, 3)))


class Pooled(nn.Module):
    """12x10x3 images: the CNN of pfl-research without dropout, and smaller."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 7, 3)
        self.conv2 = nn.Conv2d(7, 18, 3)
        self.dense1 = nn.Linear(18 * 4 * 3, 9)
        self.dense2 = nn.Linear(9, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.dense2(F.relu(self.dense1(x.flatten(1))))


class Mixed(nn.Module):
    """6x8x3 images: grouped, depthwise and transposed convolutions, curves, pools."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5, padding=2, groups=3)
        self.conv2 = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.up = nn.ConvTranspose2d(6, 5, 3, stride=2, padding=1, output_padding=1)
        self.up2 = nn.ConvTranspose2d(5, 4, 2, stride=2)
        self.norm = nn.LayerNorm(4)
        self.dense = nn.Linear(4, 3)

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x), 0.01)
        x = F.silu(F.avg_pool2d(self.conv2(x), 2))
        x = F.gelu(self.up(x), approximate="tanh")
        x = F.interpolate(F.max_pool2d(self.up2(x), 3, stride=2), scale_factor=2)
        x = torch.tanh(self.norm(x.permute(0, 2, 3, 1)))
        return self.dense(x.amax((1, 2)))


class Unet(nn.Module):
    """12 steps of 5 numbers, with a class for each step: an attention U-Net of one level."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(5, 6, 3, padding=1)
        self.low = nn.Conv1d(6, 8, 3, padding=1)
        self.up = nn.ConvTranspose1d(8, 6, 2, stride=2)
        self.gate_x = nn.Conv1d(6, 4, 1, bias=False)
        self.gate_g = nn.Conv1d(6, 4, 1)
        self.score = nn.Conv1d(4, 1, 1)
        self.head = nn.Conv1d(12, 3, 1)

    def forward(self, x):
        fine = F.relu(self.down(x))
        up = self.up(F.relu(self.low(F.max_pool1d(fine, 2))))
        gate = torch.sigmoid(self.score(F.relu(self.gate_x(fine) + self.gate_g(up))))
        return self.head(torch.cat([fine * gate, up], 1)).permute(0, 2, 1)


class Lstm(nn.Module):
    """7 tokens of 11: the next token after each."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 5)
        self.lstm1 = nn.LSTM(5, 18, batch_first=True)
        self.lstm2 = nn.LSTM(18, 6, batch_first=True)
        self.dense = nn.Linear(6, 11)

    def forward(self, tokens):
        return self.dense(self.lstm2(self.lstm1(self.embedding(tokens))[0])[0])


class Gru(nn.Module):
    """12 steps of 5 numbers: the class after the last step."""

    def __init__(self):
        super().__init__()
        self.gru1 = nn.GRU(5, 17, batch_first=True)
        self.gru2 = nn.GRU(17, 6, batch_first=True)
        self.dense = nn.Linear(6, 3)

    def forward(self, x):
        return self.dense(self.gru2(self.gru1(x.permute(0, 2, 1))[0])[0][:, -1])


class Bigru(nn.Module):
    """Sequences of 12 steps x 5, read in both directions, and a class of each step."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 9, batch_first=True, bidirectional=True)
        self.dense = nn.Linear(18, 3)

    def forward(self, x):
        return self.dense(self.gru(x.permute(0, 2, 1))[0])


class Case:
    def __init__(self, name, network, shape, classes=3, points=1, tokens=False, rows=4, stride=3):
        self.name, self.network, self.shape, self.classes = "layers_" + name, network, shape, classes
        self.points, self.tokens, self.rows, self.stride = points, tokens, rows, stride


CASES = [
    Case("residual", Residual, (6, 8, 3)),
    Case("pooled", Pooled, (12, 10, 3)),
    Case("mixed", Mixed, (6, 8, 3)),
    Case("unet", Unet, (12, 5), points=12),
    Case("lstm", Lstm, (7,), classes=11, points=7, tokens=True),
    Case("gru", Gru, (12, 5)),
    Case("bigru", Bigru, (12, 5), points=12),
]


def compute(case):
    network = case.network().double()
    with torch.no_grad():
        for i, tensor in enumerate(network.parameters()):
            inputs = tensor[0].numel()
            # A power of two near 2 / sqrt(inputs), so that every parameter stays exact in float32.
            scale = 2.0 ** np.round(np.log2(2.0 / np.sqrt(inputs))) if tensor.dim() > 1 else 0.5
            tensor.copy_(torch.from_numpy(hashed(tensor.numel(), i) * scale).reshape(tensor.shape))
    count = case.rows * case.points
    targets = torch.arange(count) * 3 % case.classes
    if case.tokens:
        inputs = (torch.arange(count) * 7 % case.classes).reshape(case.rows, case.points)
    else:
        inputs = torch.from_numpy(hashed(case.rows * int(np.prod(case.shape)), 1000))
        inputs = inputs.reshape(case.rows, *case.shape).movedim(-1, 1).contiguous()
    scores = network(inputs).reshape(count, case.classes)
    loss = F.cross_entropy(scores, targets)
    loss.backward()
    gradient = flatten([p.grad for p in network.parameters()])
    return {"scores": scores.detach().numpy().reshape(-1), "gradient": gradient[::case.stride],
            "gradient_norm": np.array([np.sqrt(np.sum(gradient ** 2))]), "losses": np.array([loss.item()]),
            "size": np.array([gradient.size])}


if __name__ == "__main__":
    check_or_write(CASES, compute)
