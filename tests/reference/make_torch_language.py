#!/usr/bin/python3
"""Writes PyTorch's results for the model of learn/models/transformer.h (Debian: python3-torch).

    make_torch_language.py DIRECTORY    writes DIRECTORY/torch_transformer*.txt
    make_torch_language.py --check DIRECTORY    compares only; fails on a difference above 1e-9

For each case: logits, loss and gradient of one batch, and the parameters after ten steps of
torch.optim.AdamW on it, in float64. The network uses torch's functions on one flat vector of parameters, in
the order of learn/, and torch differentiates it. Parameters come from hashed() of make_torch_reference.py, as
in tests/unit/learn/transformer_reference_test.cc.
"""
import pathlib
import sys

from make_torch_reference import check_or_write, hashed

import numpy as np
import torch
from torch.nn import functional as F

LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY, STEPS = 3e-3, (0.9, 0.95), 1e-5, 0.1, 10
PARTS = (("attention.q", 1, 1), ("attention.k", 1, 1), ("attention.v", 1, 1), ("attention.o", 1, 1),
         ("mlp.up", 4, 1), ("mlp.down", 1, 4))


class Case:
    def __init__(self, name, sequences, stride, shape, tied=True, rank=0, ranks=0, targets=None):
        self.name, self.sequences, self.stride, self.tied = name, sequences, stride, tied
        self.vocabulary, self.context, self.layers, self.width, self.heads = shape
        self.rank, self.ranks = rank, ranks  # rank of the adapters, and number of ranks in use
        self.targets = targets or [part.split(".")[1] for part, _, _ in PARTS]


CASES = [
    Case("transformer", 5, 29, (37, 12, 2, 24, 3)),
    Case("transformer_untied", 10, 97, (96, 64, 3, 48, 4), tied=False),
    Case("transformer_adapter", 5, 13, (37, 12, 2, 24, 3), rank=5, ranks=5),
    Case("transformer_prefix", 5, 7, (37, 12, 2, 24, 3), rank=5, ranks=3, targets=["q", "v", "up"]),
]


def tensors_of(case):
    """Returns names and shapes of the tensors, in the order of learn/."""
    d = case.width
    out = [("token_embedding", (case.vocabulary, d)), ("position_embedding", (case.context, d))]
    for i in range(1, case.layers + 1):
        name = f"block{i}."
        out += [(name + "norm1.weight", (d,)), (name + "norm1.bias", (d,))]
        out += [(name + f"attention.{part}.weight", (d, d)) for part in "qkv"]
        out += [(name + f"attention.{part}.bias", (d,)) for part in "qkv"]
        out += [(name + "attention.o.weight", (d, d)), (name + "attention.o.bias", (d,))]
        out += [(name + "norm2.weight", (d,)), (name + "norm2.bias", (d,))]
        out += [(name + "mlp.up.weight", (4 * d, d)), (name + "mlp.up.bias", (4 * d,))]
        out += [(name + "mlp.down.weight", (d, 4 * d)), (name + "mlp.down.bias", (d,))]
    out += [("norm.weight", (d,)), ("norm.bias", (d,))]
    if not case.tied:
        out.append(("head.weight", (case.vocabulary, d)))
    return out


def adapted(case):
    """Returns names, outputs and inputs of the matrices that have an adapter."""
    d = case.width
    return [(f"block{i}.{part}.weight", o * d, n * d) for i in range(1, case.layers + 1)
            for part, o, n in PARTS if part.split(".")[1] in case.targets]


def initial(case):
    values = []
    for stream, (name, shape) in enumerate(tensors_of(case)):
        count = int(np.prod(shape))
        gain = len(shape) == 1 and "norm" in name and name.endswith("weight")
        values.append((1.0 if gain else 0.0) + hashed(count, stream) * (0.25 if len(shape) == 2 else 0.125))
    if case.rank > 0:
        row = sum(outputs + inputs for _, outputs, inputs in adapted(case))
        values.append(hashed(case.rank * row, len(values)) * 0.125)
    return np.concatenate(values)


def scores_of(case, flat, tokens):
    views, at = {}, 0
    for name, shape in tensors_of(case):
        count = int(np.prod(shape))
        views[name] = flat[at:at + count].reshape(shape)
        at += count
    if case.rank > 0:
        rows = flat[at:].reshape(case.rank, -1)[:case.ranks]
        a_at, b_at = 0, sum(inputs for _, _, inputs in adapted(case))
        for name, outputs, inputs in adapted(case):
            a, b = rows[:, a_at:a_at + inputs], rows[:, b_at:b_at + outputs]
            views[name] = views[name] + 2.0 * b.t() @ a
            a_at, b_at = a_at + inputs, b_at + outputs
    d, heads = case.width, case.heads
    count, length = tokens.shape

    def linear(name, x):
        return x @ views[name + ".weight"].t() + views[name + ".bias"]

    def norm(name, x):
        return F.layer_norm(x, (d,), views[name + ".weight"], views[name + ".bias"], 1e-5)

    x = views["token_embedding"][tokens] + views["position_embedding"][:length]
    hidden = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
    for i in range(1, case.layers + 1):
        y = norm(f"block{i}.norm1", x)
        q, k, v = (linear(f"block{i}.attention.{part}", y).view(count, length, heads, d // heads).transpose(1, 2)
                   for part in "qkv")
        scores = (q @ k.transpose(2, 3)) / np.sqrt(d // heads)
        y = F.softmax(scores.masked_fill(hidden, float("-inf")), 3) @ v
        x = x + linear(f"block{i}.attention.o", y.transpose(1, 2).reshape(count, length, d))
        y = F.gelu(linear(f"block{i}.mlp.up", norm(f"block{i}.norm2", x)), approximate="tanh")
        x = x + linear(f"block{i}.mlp.down", y)
    return norm("norm", x) @ views["token_embedding" if case.tied else "head.weight"].t()


def compute(case):
    numbers = np.arange(case.sequences * case.context + 1)
    text = torch.from_numpy((numbers * 7 + numbers * numbers // 3) % case.vocabulary)
    tokens, targets = text[:-1].clone(), text[1:].clone()
    tokens[-4:], targets[-4:] = 0, -100  # the last sequence is shorter
    tokens = tokens.reshape(case.sequences, case.context)
    flat = torch.from_numpy(initial(case))
    frozen = sum(int(np.prod(shape)) for _, shape in tensors_of(case)) if case.rank > 0 else 0
    trained = flat[frozen:].clone().requires_grad_(True)
    optimizer = torch.optim.AdamW([trained], lr=LEARNING_RATE, betas=BETAS, eps=EPSILON,
                                  weight_decay=WEIGHT_DECAY)
    out, losses = {}, []
    for step in range(STEPS):
        optimizer.zero_grad()
        scores = scores_of(case, torch.cat([flat[:frozen], trained]), tokens)
        loss = F.cross_entropy(scores.reshape(-1, case.vocabulary), targets)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            out["scores"] = scores.detach().numpy().reshape(-1)[::case.stride].copy()
            gradient = trained.grad.numpy().copy()
            out["gradient"] = gradient[::case.stride]
            out["gradient_norm"] = np.array([np.sqrt(np.sum(gradient ** 2))])
        optimizer.step()
    out["losses"] = np.array(losses)
    out["trained"] = trained.detach().numpy()[::case.stride].copy()
    out["size"] = np.array([flat.numel()])
    return out


if __name__ == "__main__":
    check_or_write(CASES, compute)
