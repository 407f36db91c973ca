#!/usr/bin/python3
"""Times the training step of bench_language in PyTorch, on one thread: torch_language.py RANK STEPS.

The same network (6 layers, width 192, 6 heads, 4 x MLP, GELU by tanh, tied head, vocabulary 96), batch 16,
context 128, torch.optim.AdamW. If RANK is above 0, only adapters of that rank on every linear layer are
trained. Queries, keys and values are one matrix, and so are their adapters' first factors. Prints the median
time of a step in milliseconds, and tokens per second.
"""
import math
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY, BATCH = 6, 192, 6, 128, 96, 16


class Linear(nn.Module):
    def __init__(self, inputs, outputs, rank, parts=1):
        super().__init__()
        self.frozen, self.parts = nn.Linear(inputs, outputs), parts
        if rank > 0:
            self.a = nn.Parameter(torch.randn(parts * rank, inputs) / math.sqrt(inputs))
            self.b = nn.ParameterList([nn.Parameter(torch.zeros(outputs // parts, rank)) for _ in range(parts)])

    def forward(self, x):
        y = self.frozen(x)
        if not hasattr(self, "a"):
            return y
        hidden = (x @ self.a.t()).chunk(self.parts, -1)
        return y + 2.0 * torch.cat([h @ b.t() for h, b in zip(hidden, self.b)], -1)


class Block(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = Linear(WIDTH, 3 * WIDTH, rank, 3), Linear(WIDTH, WIDTH, rank)
        self.up, self.down = Linear(WIDTH, 4 * WIDTH, rank), Linear(4 * WIDTH, WIDTH, rank)

    def forward(self, x, mask):
        q, k, v = (part.view(BATCH, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Network(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(rank) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1))

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x, self.mask)
        scores = self.norm(x) @ self.tokens.weight.t()
        return F.cross_entropy(scores.view(-1, VOCABULARY), targets.view(-1))


def main():
    rank, steps = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    network = Network(rank)
    if rank > 0:
        for name, parameter in network.named_parameters():
            parameter.requires_grad = name.endswith(".a") or ".b." in name
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    text = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1))
    seconds = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        optimizer.zero_grad()
        network(text[:, :-1], text[:, 1:].contiguous()).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds[2:])
    print(f"{1e3 * median:.1f} ms, {BATCH * CONTEXT / median:.0f} tokens/s (PyTorch {torch.__version__}, "
          f"{sum(p.numel() for p in trained)} trained)")


if __name__ == "__main__":
    main()
