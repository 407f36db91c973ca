"""Trains and evaluates a ResNet-20 in PyTorch, for all clients of a simulation:

    fedge-sim run examples/pytorch/resnet20.toml --data cifar-10=DIRECTORY --workers 2 \\
        --trainer "python3 examples/pytorch/resnet20.py DIRECTORY"

Each task names a client's samples by their numbers in the training files, data_batch_1.bin to data_batch_5.bin, and
an evaluation those of test_batch.bin.
"""
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import fedge_trainer  # noqa: E402


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(4, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(4, outputs)
        self.short = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.GroupNorm(4, outputs))

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + self.short(x))


def build():
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.GroupNorm(4, 16), nn.ReLU()]
    channels = 16
    for units in (16, 32, 64):
        for block in range(3):
            layers.append(Block(channels, units, 2 if block == 0 and units > 16 else 1))
            channels = units
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def read_cifar(directory, names):
    """Returns images (normalised, channels first) and labels of these files."""
    raw = b"".join((pathlib.Path(directory) / name).read_bytes() for name in names)
    rows = torch.frombuffer(bytearray(raw), dtype=torch.uint8).reshape(-1, 3073)
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).reshape(3, 1, 1)
    deviation = torch.tensor([0.2470, 0.2435, 0.2616]).reshape(3, 1, 1)
    return (rows[:, 1:].reshape(-1, 3, 32, 32) / 255 - mean) / deviation, rows[:, 0].long()


def load(task, model):
    model.load_state_dict({name: torch.frombuffer(tensor.data, dtype=torch.float32).reshape(tensor.shape)
                           for name, tensor in task.tensors.items()})


def train(task, settings, model, images, labels):
    load(task, model)
    model.train()
    torch.manual_seed(task.seed)
    optimizer = torch.optim.SGD(model.parameters(), settings["learning_rate"], settings["momentum"],
                                weight_decay=settings["weight_decay"])
    own, losses = torch.tensor(task.samples), []
    for batch in [b for _ in range(settings["local_epochs"])
                  for b in own[torch.randperm(len(own))].split(settings["batch_size"])]:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if task.should_stop():
            break
    task.update(model.state_dict(), samples=len(own), steps=len(losses), train_loss=sum(losses) / len(losses))


def evaluate(task, model, images, labels):
    load(task, model)
    model.eval()
    with torch.no_grad():
        for batch in torch.tensor(task.samples).split(500):
            task.predictions(model(images[batch]), labels[batch])
            if task.should_stop():
                break
    task.evaluated()


torch.set_num_threads(1)  # there is a process for each core
data = {"training": read_cifar(sys.argv[1], [f"data_batch_{i}.bin" for i in range(1, 6)]),
        "test": read_cifar(sys.argv[1], ["test_batch.bin"])}
fedge = fedge_trainer.connect()
torch.manual_seed(fedge.run["seed"])
model = build()
fedge.ready(model=model.state_dict())
for task in fedge.tasks():
    if task.evaluates:
        evaluate(task, model, *data[task.of])
    else:
        train(task, fedge.training, model, *data["training"])
