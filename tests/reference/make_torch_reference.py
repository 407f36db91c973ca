#!/usr/bin/python3
"""Writes PyTorch's results for the models of learn/ (Debian: python3-torch).

    make_torch_reference.py DIRECTORY    writes DIRECTORY/torch_*.txt
    make_torch_reference.py --check DIRECTORY    compares only; fails on a difference above 1e-9

For each model: loss, class scores and gradient of one batch, and the parameters after three steps of
torch.optim.SGD with momentum and weight decay on that batch. Parameters and inputs come from an integer
formula (hashed() below, the same as in tests/unit/learn/reference_test.cc) and are exact in float32. PyTorch
computes in float64, so that only Fedge's rounding causes differences. The files contain every stride-th
gradient and new parameter, tensor after tensor, in the order of learn/.

Images are height x width x channels, as in learn/; parameters are in PyTorch's order of dimensions.
"""
import pathlib
import sys

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error.name} not found (package python3-{error.name})")
    sys.exit(77)  # CTest counts this exit code as skipped

LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, STEPS = 0.05, 0.9, 1e-3, 3


def hashed(count, stream):
    """Returns `count` float32 numbers of 16 bits in [-1, 1): a mixing function of position and stream."""
    x = np.arange(count, dtype=np.uint32) + np.uint32(stream * 0x9E3779B9 % 2**32)
    for factor in (0x7FEB352D, 0x846CA68B):
        x ^= x >> np.uint32(16)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(15)
    return (x >> np.uint32(16)).astype(np.float64) / 32768.0 - 1.0


class Case:
    def __init__(self, name, rows, stride, input_shape, classes, layers):
        self.name, self.rows, self.stride = name, rows, stride
        self.height, self.width, self.channels = input_shape
        self.classes, self.layers = classes, layers


def dense(inputs, outputs):
    return nn.Linear(inputs, outputs)


def mlp(*widths):
    layers = [nn.Flatten()]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [dense(inputs, outputs), nn.ReLU()]
    return layers[:-1]


def cnn(height, width, channels, first, second, hidden, classes):
    def stage(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]

    flat = height // 4 * (width // 4) * second
    return stage(channels, first) + stage(first, second) + [nn.Flatten()] + \
        [dense(flat, hidden), nn.ReLU(), dense(hidden, classes)]


CASES = [
    Case("softmax", 10, 29, (28, 28, 1), 10, mlp(784, 10)),
    Case("mlp", 10, 499, (28, 28, 1), 10, mlp(784, 200, 200, 10)),
    Case("mlp_odd", 7, 3, (3, 5, 1), 6, mlp(15, 19, 13, 9, 6)),
    Case("cnn", 4, 2999, (28, 28, 1), 10, cnn(28, 28, 1, 32, 64, 512, 10)),
    Case("cnn_small", 6, 5, (8, 12, 3), 7, cnn(8, 12, 3, 4, 6, 11, 7)),
]


def flatten(tensors):
    """Returns the tensors of a network as one flat vector."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).detach().numpy().copy()


def set_parameters(layers):
    """Fills the network from hashed(), with the bounds of PyTorch's initialisation."""
    for i, layer in enumerate(layers):
        # A power of two near 2 / sqrt(inputs), so that every parameter stays exact in float32.
        bound = 2.0 ** np.round(np.log2(2.0 / np.sqrt(layer.weight[0].numel())))
        with torch.no_grad():
            for tensor, stream in ((layer.weight, 2 * i), (layer.bias, 2 * i + 1)):
                tensor.copy_(torch.from_numpy(hashed(tensor.numel(), stream) * bound).reshape(tensor.shape))


def compute(case):
    network = nn.Sequential(*case.layers).double()
    layers = [layer for layer in network if hasattr(layer, "weight")]
    set_parameters(layers)
    images = torch.from_numpy(hashed(case.rows * case.height * case.width * case.channels, 1000))
    images = images.reshape(case.rows, case.height, case.width, case.channels).permute(0, 3, 1, 2).contiguous()
    labels = torch.arange(case.rows) * 3 % case.classes

    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM,
                                weight_decay=WEIGHT_DECAY)
    out = {}
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        scores = network(images)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            out["scores"] = scores.detach().numpy().reshape(-1)
            gradient = flatten([p.grad for p in network.parameters()])
            out["gradient"] = gradient[::case.stride]
            out["gradient_norm"] = np.array([np.sqrt(np.sum(gradient ** 2))])
        optimizer.step()
    parameters = flatten(network.parameters())
    out["losses"] = np.array(losses)
    out["trained"] = parameters[::case.stride]
    out["size"] = np.array([parameters.size])
    return out


def read(path):
    blocks = {}
    values = path.read_text().split()
    at = 0
    while at < len(values):
        count = int(values[at + 1])
        blocks[values[at]] = np.array([float(v) for v in values[at + 2:at + 2 + count]])
        at += 2 + count
    return blocks


def write(path, blocks):
    with open(path, "w", encoding="ascii") as out:
        for name, values in blocks.items():
            out.write(f"{name} {len(values)}\n")
            text = [f"{value:.10g}" for value in values]
            for first in range(0, len(text), 8):
                out.write(" ".join(text[first:first + 8]) + "\n")


def check_or_write(cases, compute):
    check = sys.argv[1:2] == ["--check"]
    directory = pathlib.Path(sys.argv[-1])
    failed = False
    for case in cases:
        path = directory / f"torch_{case.name}.txt"
        blocks = {"stride": np.array([case.stride]), **compute(case)}
        if not check:
            write(path, blocks)
            continue
        stored = read(path)
        for name, values in blocks.items():
            difference = np.max(np.abs(stored[name] - values))
            if stored[name].shape != values.shape or not difference <= 1e-9 * max(1.0, np.max(np.abs(values))):
                print(f"{path}: {name} is not what PyTorch {torch.__version__} computes, off by {difference}")
                failed = True
    if check and not failed:
        print(f"{len(cases)} models: as PyTorch {torch.__version__} computes them")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    check_or_write(CASES, compute)
