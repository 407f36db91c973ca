#!/usr/bin/python3
"""Writes PyTorch's results for the models of learn/models/language/ (Debian: python3-torch).

    make_torch_language.py DIRECTORY    writes DIRECTORY/torch_transformer*.txt, torch_llama*.txt
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


class Case:
    def __init__(self, name, sequences, stride, shape, tied=True, rank=0, ranks=0, targets=None, llama=None):
        self.name, self.sequences, self.stride, self.tied = name, sequences, stride, tied
        self.vocabulary, self.context, self.layers, self.width, self.heads = shape
        self.rank, self.ranks = rank, ranks  # rank of the adapters, and number of ranks in use
        self.llama = llama is not None
        self.shared, self.hidden, self.theta, self.epsilon = llama or (self.heads, 4 * self.width, 0, 1e-5)
        self.targets = targets or [part.split(".")[1] for part, _, _ in self.parts()]

    def parts(self):
        """Returns names, outputs and inputs of the matrices of a block."""
        d, keys = self.width, self.shared * self.width // self.heads
        parts = [("attention.q", d, d), ("attention.k", keys, d), ("attention.v", keys, d), ("attention.o", d, d)]
        if self.llama:
            parts.append(("mlp.gate", self.hidden, d))
        return parts + [("mlp.up", self.hidden, d), ("mlp.down", d, self.hidden)]


CASES = [
    Case("transformer", 5, 29, (37, 12, 2, 24, 3)),
    Case("transformer_untied", 10, 97, (96, 64, 3, 48, 4), tied=False),
    Case("transformer_adapter", 5, 13, (37, 12, 2, 24, 3), rank=5, ranks=5),
    Case("transformer_prefix", 5, 7, (37, 12, 2, 24, 3), rank=5, ranks=3, targets=["q", "v", "up"]),
    Case("llama", 5, 29, (37, 12, 2, 24, 3), llama=(3, 40, 10000.0, 1e-5)),
    Case("llama_shared", 9, 97, (96, 64, 3, 64, 8), tied=False, llama=(2, 88, 500.0, 1e-6)),
    Case("llama_adapter", 5, 7, (37, 12, 2, 24, 6), rank=5, ranks=3, targets=["q", "k", "gate", "down"],
         llama=(3, 40, 10000.0, 1e-5)),
]


def tensors_of(case):
    """Returns names and shapes of the tensors, in the order of learn/."""
    d = case.width
    out = [("token_embedding", (case.vocabulary, d))]
    if not case.llama:
        out.append(("position_embedding", (case.context, d)))

    def matrices(block, names):
        chosen = [part for part in case.parts() if part[0] in names]
        found = [(f"{block}.{name}.weight", (outputs, inputs)) for name, outputs, inputs in chosen]
        return found + [(f"{block}.{name}.bias", (outputs,)) for name, outputs, _ in chosen if not case.llama]

    def norm(name):
        return [(name + ".weight", (d,))] + ([] if case.llama else [(name + ".bias", (d,))])

    for i in range(1, case.layers + 1):
        name = f"block{i}"
        out += norm(name + ".norm1") + matrices(name, ["attention.q", "attention.k", "attention.v"])
        out += matrices(name, ["attention.o"]) + norm(name + ".norm2") + matrices(name, ["mlp.gate", "mlp.up"])
        out += matrices(name, ["mlp.down"])
    out += norm("norm")
    if not case.tied:
        out.append(("head.weight", (case.vocabulary, d)))
    return out


def adapted(case):
    """Returns names, outputs and inputs of the matrices that have an adapter."""
    return [(f"block{i}.{part}.weight", outputs, inputs) for i in range(1, case.layers + 1)
            for part, outputs, inputs in case.parts() if part.split(".")[1] in case.targets]


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
    d, heads, size = case.width, case.heads, case.width // case.heads
    count, length = tokens.shape

    def linear(name, x):
        y = x @ views[name + ".weight"].t()
        return y if case.llama else y + views[name + ".bias"]

    def norm(name, x):
        if case.llama:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + case.epsilon) * views[name + ".weight"]
        return F.layer_norm(x, (d,), views[name + ".weight"], views[name + ".bias"], 1e-5)

    def heads_of(x):
        return x.view(count, length, -1, size).transpose(1, 2)

    def rotated(x):
        if not case.llama:
            return x
        powers = torch.arange(0, size, 2, dtype=torch.float64) / size
        angles = torch.arange(length, dtype=torch.float64)[:, None] / case.theta ** powers
        cosines, sines = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        half = torch.cat([-x[..., size // 2:], x[..., :size // 2]], -1)
        return x * cosines + half * sines

    x = views["token_embedding"][tokens]
    if not case.llama:
        x = x + views["position_embedding"][:length]
    hidden = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
    for i in range(1, case.layers + 1):
        y = norm(f"block{i}.norm1", x)
        q, k, v = (heads_of(linear(f"block{i}.attention.{part}", y)) for part in "qkv")
        q, k = rotated(q), rotated(k)
        k, v = (part.repeat_interleave(heads // case.shared, 1) for part in (k, v))
        scores = (q @ k.transpose(2, 3)) / np.sqrt(size)
        y = F.softmax(scores.masked_fill(hidden, float("-inf")), 3) @ v
        x = x + linear(f"block{i}.attention.o", y.transpose(1, 2).reshape(count, length, d))
        y = norm(f"block{i}.norm2", x)
        if case.llama:
            y = F.silu(linear(f"block{i}.mlp.gate", y)) * linear(f"block{i}.mlp.up", y)
        else:
            y = F.gelu(linear(f"block{i}.mlp.up", y), approximate="tanh")
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
