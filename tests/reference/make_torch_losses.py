#!/usr/bin/python3
"""Writes PyTorch's values and gradients of the losses that a run file can choose (Debian: python3-torch).

    make_torch_losses.py DIRECTORY    writes DIRECTORY/torch_losses.txt
    make_torch_losses.py --check DIRECTORY    compares only; fails on a difference above 1e-9

For each loss of tests/unit/learn/targets/chosen_losses_test.cc: its value for one batch and the gradient of its
scores, in float64. Scores come from hashed() of make_torch_reference.py, times 4. The Dice loss is written from its
definition, since PyTorch has none; autograd differentiates it.
"""
from make_torch_reference import check_or_write, hashed

import numpy as np
import torch
from torch.nn import functional as F

ROWS, POINTS = 5, 7
WEIGHTS = [0.5, 2.0, 1.25]


def dice(scores, targets):
    """Scores: samples x points x classes."""
    p = scores.softmax(-1)
    y = F.one_hot(targets, scores.shape[-1])
    return (1 - (2 * (p * y).sum(1) + 1e-5) / (p.sum(1) + y.sum(1) + 1e-5)).mean()


def points(scores, weight=None, dice_weight=None):
    targets = (torch.arange(ROWS * POINTS) * 5 % 3).reshape(ROWS, POINTS)
    weights = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    entropy = F.cross_entropy(scores.reshape(-1, 3), targets.reshape(-1), weights)
    return entropy if dice_weight is None else entropy + dice_weight * dice(scores, targets)


class Loss:
    def __init__(self, name, shape, loss):
        self.name, self.shape, self.loss = name, shape, loss


class AllLosses:
    name, stride = "losses", 1


def values(shape):
    return torch.from_numpy(hashed(int(np.prod(shape)), 77) * 4).reshape(shape)


LOSSES = [
    Loss("huber", (ROWS, 4), lambda x: F.huber_loss(x, values((ROWS, 4)), delta=0.75)),
    Loss("class_weights", (ROWS, 3),
         lambda x: F.cross_entropy(x, torch.arange(ROWS) * 5 % 3, torch.tensor(WEIGHTS, dtype=torch.float64))),
    Loss("label_weights", (ROWS, 3),
         lambda x: F.binary_cross_entropy_with_logits(x, (torch.arange(ROWS * 3) % 2).reshape(ROWS, 3).double(),
                                                      pos_weight=torch.tensor(WEIGHTS, dtype=torch.float64))),
    Loss("point_weights", (ROWS, POINTS, 3), lambda x: points(x, WEIGHTS)),
    Loss("dice", (ROWS, POINTS, 3), lambda x: points(x, None, 1.0)),
    Loss("weighted_dice", (ROWS, POINTS, 3), lambda x: points(x, WEIGHTS, 0.25)),
]


def compute(_):
    blocks = {}
    for case in LOSSES:
        scores = (torch.from_numpy(hashed(int(np.prod(case.shape)), 5)) * 4).reshape(case.shape).requires_grad_()
        loss = case.loss(scores)
        loss.backward()
        blocks[f"{case.name}_loss"] = np.array([loss.item()])
        blocks[f"{case.name}_gradient"] = scores.grad.numpy().reshape(-1)
    return blocks


if __name__ == "__main__":
    check_or_write([AllLosses], compute)
