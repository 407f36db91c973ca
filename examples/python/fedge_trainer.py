"""Implements a trainer program's side of the trainer protocol (docs/reference/trainer-protocol.md). It needs
only the standard library, so that you can copy this file beside your program.

    import fedge_trainer

    fedge = fedge_trainer.connect()      # the run's settings: fedge.training["learning_rate"], fedge.model, ...
    fedge.ready(samples=600)
    for task in fedge.tasks():           # ends when the client closes the input
        ...                              # train, starting from task.tensors
        task.update(tensors, samples=600, steps=30, train_loss=0.7)

A program that evaluates models says so with ready(..., evaluates=100), and answers the tasks with task.evaluates by
task.predictions(scores, targets) for some samples at a time, and then task.evaluated().

After connect(), print() writes to standard error, which the client copies to its log.
"""
import json
import math
import os
import select
import struct
import sys
import time

TYPES = {"F32": ("f", 4), "U8": ("B", 1)}  # format of struct and memoryview, bytes of a value
HEARTBEAT_SECONDS = 1


class Tensor:
    """A tensor. `data` is a bytearray of row-major little-endian values, for numpy.frombuffer or torch.frombuffer."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, tuple(shape), data


def parse_safetensors(raw):
    """Returns the tensors by name, in the order of their data."""
    (length,) = struct.unpack_from("<Q", raw)
    entries = json.loads(bytes(raw[8:8 + length]))
    entries.pop("__metadata__", None)
    tensors = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        if last - first != TYPES[entry["dtype"]][1] * math.prod(entry["shape"]):
            raise ValueError(f"tensor {name}: shape and size do not agree")
        tensors[name] = Tensor(entry["dtype"], entry["shape"], bytearray(raw[8 + length + first:8 + length + last]))
    return tensors


def read_safetensors(path):
    with open(path, "rb") as file:
        return parse_safetensors(memoryview(file.read()))


def in_memory(value):
    """Returns a NumPy array of a PyTorch tensor; other values as they are."""
    return value.detach().cpu().contiguous().numpy() if hasattr(value, "detach") else value


def as_float(value):
    """Returns the PyTorch tensor, NumPy array or Tensor in float32."""
    if hasattr(value, "detach"):
        return value.float()
    return value.astype("float32") if hasattr(value, "astype") else value


def write_safetensors(tensors):
    """Returns the bytes of a .safetensors file. `tensors` maps names to PyTorch tensors, NumPy arrays or Tensors,
    all of float32."""
    header, pieces, offset = {}, [], 0
    for name, value in tensors.items():
        value = in_memory(value)
        if isinstance(value, Tensor):
            kind, shape, raw = TYPES[value.dtype][0], value.shape, bytes(value.data)
        else:
            view = memoryview(value)
            kind, shape, raw = view.format.lstrip("<="), view.shape, view.tobytes()
        if kind != "f":
            raise TypeError(f"tensor {name} is of type {kind!r}, not float32")
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + len(raw)]}
        pieces.append(raw)
        offset += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *pieces])


class Task:
    """The work of one round: `tensors` (the model by name), `round`, `seconds_left`; to train, also `seed` and
    `data_share`. `evaluates`: whether the model is to be evaluated, not trained.

    In a simulation, `client` is the number of the client to work for, and its samples are either `samples`, their
    numbers in the training samples of the data set, or at `path`. To evaluate, `samples` are numbers in the samples
    that `of` names, "training" or "test", and `client` is None. On a device, all four are None.
    """

    def __init__(self, connection, header, tensors):
        self.connection, self.header, self.tensors = connection, header, tensors
        self.number, self.round, self.seconds_left = header["task"], header["round"], header["seconds_left"]
        self.evaluates = header["type"] == "evaluate"
        self.seed, self.data_share, self.client, self.samples, self.path, self.of = (
            header.get(key) for key in ("seed", "data_share", "client", "samples", "path", "of"))
        self.done, self.predicted = False, 0

    def parts(self, name):
        """Returns the ranges [begin, end) of this tensor's flat values to train. Without a coverage: all of it."""
        begin = 0
        for other, tensor in self.tensors.items():
            size = math.prod(tensor.shape)
            if other == name:
                break
            begin += size
        ranges = self.header.get("coverage", [[0, begin + size]])
        return [(max(first - begin, 0), min(last - begin, size)) for first, last in ranges
                if first < begin + size and last > begin]

    def should_stop(self):
        """Returns whether to end training after the current step and send the update. Call it in every step: it also
        sends the heartbeat, without which the client assumes that this program hangs."""
        return self.connection.stopped(self.number)

    def progress(self, fraction, loss=None):
        header = {"type": "progress", "fraction": fraction}
        if loss is not None and math.isfinite(loss):
            header["loss"] = loss
        self.connection.send(header)

    def update(self, tensors, samples, steps, train_loss):
        """Sends the trained model: every tensor of the task, with the same shape, as float32."""
        if not math.isfinite(train_loss):
            return self.fail("the training loss is not finite")
        self.done = True
        self.connection.send({"type": "update", "task": self.number, "samples": samples, "steps": steps,
                              "train_loss": train_loss}, write_safetensors(tensors))

    def predictions(self, scores, targets):
        """Sends what the model predicts of some samples: the scores before softmax, samples x classes, and the right
        classes. PyTorch tensors, NumPy arrays or Tensors; docs/reference/trainer-protocol.md has the shapes
        for other tasks. The client computes all metrics from them."""
        self.connection.send({"type": "predictions", "task": self.number},
                             write_safetensors({"scores": as_float(scores), "targets": as_float(targets)}))
        self.predicted += targets.shape[0]

    def evaluated(self):
        """Says that predictions() was called for all samples."""
        self.done = True
        self.connection.send({"type": "evaluation", "task": self.number, "samples": self.predicted})

    def fail(self, reason):
        self.done = True
        self.connection.send({"type": "error", "task": self.number, "reason": reason})


class Connection:
    def __init__(self):
        self.input = os.dup(0)
        self.output = os.fdopen(os.dup(1), "wb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # printed text must not mix with the frames
        self.sent = time.monotonic()
        self.stopping = set()
        hello, _ = self.receive() or sys.exit(0)
        if hello["type"] != "hello" or hello["protocol"] != 1:
            raise RuntimeError(f"this program speaks version 1 of the trainer protocol, not {hello}")
        self.client, self.clients = hello.get("client"), hello.get("clients")  # one is None
        self.run, self.training = hello["run"], hello["training"]
        self.model, self.data = hello["model"], hello["data"]

    def ready(self, samples=1, capability=None, evaluates=0, model=None):
        """Says that the program can train on so many samples, and evaluate models on `evaluates` others. In a
        simulation (`clients` is not None), both have no meaning. `model`: the tensors by name that a run with
        model.kind = "external" starts from; they are sent only if they are asked for."""
        header = {"type": "ready", "protocol": 1, "samples": samples, "evaluates": evaluates}
        if capability is not None:
            header["capability"] = capability
        self.send(header, write_safetensors(model) if self.model.get("asked") and model is not None else b"")

    def tasks(self):
        """Yields the tasks in turn. An exception in the loop's body ends the program; the task has then failed."""
        while (frame := self.receive()) is not None:
            header, payload = frame
            if header["type"] not in ("train", "evaluate"):
                continue  # a message about a task that was already answered
            task = Task(self, header, parse_safetensors(payload))
            yield task
            if not task.done:
                task.fail("the program gave no answer")

    def stopped(self, task):
        if time.monotonic() - self.sent > HEARTBEAT_SECONDS:
            self.send({"type": "heartbeat"})
        while task not in self.stopping and select.select([self.input], [], [], 0)[0]:
            frame = self.receive()
            if frame is None:
                sys.exit(0)
            if frame[0]["type"] == "stop":
                self.stopping = {frame[0]["task"]}
        return task in self.stopping

    def send(self, header, payload=b""):
        text = json.dumps(header).encode()
        for piece in (struct.pack("<IQ", len(text), len(payload)), text, payload):
            self.output.write(piece)
        self.output.flush()
        self.sent = time.monotonic()

    def receive(self):
        """Returns (header, payload), or None at the end of the input."""
        lengths = self.read(12)
        if lengths is None:
            return None
        header, payload = struct.unpack("<IQ", lengths)
        text, data = self.read(header), self.read(payload)
        if text is None or data is None:
            return None
        return json.loads(bytes(text)), data

    def read(self, count):
        data, got = memoryview(bytearray(count)), 0
        while got < count:
            more = os.readv(self.input, [data[got:]])
            if more == 0:
                return None
            got += more
        return data


def connect():
    return Connection()
