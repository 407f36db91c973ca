"""A federated client's trainer with PyTorch. Run it with
fedge-client run --trainer "train.py DATA.safetensors"."""
import math
import pathlib
import sys

import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import fedge_trainer  # noqa: E402


def build(fedge):
    """Builds the run's multi-layer perceptron. Returns it, and its tensors by their names in the run."""
    height, width, channels = fedge.data["input"]
    widths = [height * width * channels, *fedge.model["hidden"], fedge.data["classes"]]
    layers = [nn.Linear(inputs, outputs) for inputs, outputs in zip(widths, widths[1:])]
    steps = [step for layer in layers for step in (layer, nn.ReLU())]
    named = {f"dense{i}.{kind}": getattr(layer, kind) for i, layer in enumerate(layers, 1)
             for kind in ("weight", "bias")}
    return nn.Sequential(nn.Flatten(), *steps[:-1]), named


def train(task, settings, model, named):
    start, moved, losses = {}, {}, []
    for name, sent in task.tensors.items():
        start[name] = torch.frombuffer(sent.data, dtype=torch.float32).reshape(sent.shape)
        moved[name] = torch.zeros(sent.shape, dtype=torch.bool)
        for begin, end in task.parts(name):
            moved[name].view(-1)[begin:end] = True
        named[name].data.copy_(start[name])
    torch.manual_seed(task.seed)
    optimizer = torch.optim.SGD(named.values(), settings["learning_rate"], settings["momentum"],
                                weight_decay=settings["weight_decay"])
    count = math.ceil(task.data_share * len(labels))
    for batch in [b for _ in range(settings["local_epochs"])
                  for b in torch.randperm(count).split(settings["batch_size"])]:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        pull = settings.get("mu", 0) / 2 * sum(((p - start[name]) ** 2).sum() for name, p in named.items())
        (loss + pull).backward()
        optimizer.step()
        for name, parameter in named.items():
            parameter.data.copy_(torch.where(moved[name], parameter, start[name]))
        losses.append(loss.item())
        if task.should_stop():
            break
    task.update(named, samples=count, steps=len(losses), train_loss=sum(losses) / len(losses))


data = fedge_trainer.read_safetensors(sys.argv[1])
images = torch.frombuffer(data["images"].data, dtype=torch.float32).reshape(data["images"].shape)
labels = torch.frombuffer(data["labels"].data, dtype=torch.uint8).long()
fedge = fedge_trainer.connect()
model, named = build(fedge)
fedge.ready(samples=len(labels))
for task in fedge.tasks():
    train(task, fedge.training, model, named)
