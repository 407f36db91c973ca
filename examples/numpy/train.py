"""A federated client's trainer with NumPy: a multi-layer perceptron with hand-written gradients. Run it with
fedge-client run --trainer "train.py DATA.safetensors"."""
import math
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import fedge_trainer  # noqa: E402


def array(tensor):
    return np.frombuffer(tensor.data, {"F32": "<f4", "U8": "u1"}[tensor.dtype]).reshape(tensor.shape)


def gradient(w, x, y):
    """Returns the mean cross-entropy of the batch, and its gradient for each tensor."""
    depth = len(w) // 2
    inputs = [x]
    for i in range(1, depth + 1):
        scores = inputs[-1] @ w[f"dense{i}.weight"].T + w[f"dense{i}.bias"]
        inputs.append(np.maximum(scores, 0))
    scores -= scores.max(axis=1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    rows = np.arange(len(y))
    d = np.exp(log_p)
    d[rows, y] -= 1
    d /= len(y)
    g = {}
    for i in range(depth, 0, -1):
        g[f"dense{i}.weight"] = d.T @ inputs[i - 1]
        g[f"dense{i}.bias"] = d.sum(axis=0)
        if i > 1:
            d = (d @ w[f"dense{i}.weight"]) * (inputs[i - 1] > 0)
    return -log_p[rows, y].mean(), g


def train(task, settings, x, y):
    start = {name: array(tensor) for name, tensor in task.tensors.items()}
    w = {name: values.copy() for name, values in start.items()}
    velocity = {name: np.zeros_like(values) for name, values in w.items()}
    moved = {name: np.zeros(values.size, bool) for name, values in w.items()}
    for name, flags in moved.items():
        for begin, end in task.parts(name):
            flags[begin:end] = True
    rng, rate = np.random.default_rng(task.seed), np.float32(settings["learning_rate"])
    count, size = math.ceil(task.data_share * len(y)), settings["batch_size"]
    orders = [rng.permutation(count) for _ in range(settings["local_epochs"])]
    losses = []
    for batch in [order[i:i + size] for order in orders for i in range(0, count, size)]:
        loss, g = gradient(w, x[batch], y[batch])
        for name, values in w.items():
            slope = g[name] + settings["weight_decay"] * values + settings.get("mu", 0) * (values - start[name])
            velocity[name] = settings["momentum"] * velocity[name] + slope
            values -= rate * velocity[name] * moved[name].reshape(values.shape)
        losses.append(float(loss))
        if task.should_stop():
            break
    task.update(w, samples=count, steps=len(losses), train_loss=sum(losses) / len(losses))


data = fedge_trainer.read_safetensors(sys.argv[1])
labels = array(data["labels"])
images = array(data["images"]).reshape(len(labels), -1)
fedge = fedge_trainer.connect()
fedge.ready(samples=len(labels))
for task in fedge.tasks():
    train(task, fedge.training, images, labels)
