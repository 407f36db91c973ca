"""A trainer program that misbehaves once. Otherwise it adds 1 to every value and reports that it trained on all of
its 5 samples in one step. It evaluates a model on 4 samples, of which it predicts the last one wrong; for the samples
that it is told, on these. Its first model has the tensors "weight" (3 x 2) and "scale" (a single number).

    trainer_program.py MODE DIRECTORY

MODE is the misbehaviour, at the first task (or before it, for ready_*, and at the first evaluation for evaluation_*). A
file in DIRECTORY records that it has
happened, even if this process is killed. DIRECTORY/pid contains the process id. The program builds all bytes itself,
without the library of the examples, so that it can send invalid ones.
"""
import json
import os
import signal
import struct
import subprocess
import sys
import time

MODE, DIRECTORY = sys.argv[1], sys.argv[2]
HONEST = ("honest", "environment", "ready_exits", "ready_never", "ready_version", "ready_nan", "ready_no_model")


def is_turn():
    try:
        os.close(os.open(os.path.join(DIRECTORY, "done-" + MODE), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def write(raw):
    while raw:
        raw = raw[os.write(1, raw):]


def frame(header, payload=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<IQ", len(text), len(payload)) + text + payload


def read(count):
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def receive():
    header, payload = struct.unpack("<IQ", read(12))
    return json.loads(read(header)), read(payload)


def safetensors(entries, data):
    """Returns a .safetensors file. `entries` are (name, type, shape, bytes) in data order; a name may occur twice."""
    pieces, offset = [], 0
    for name, kind, shape, size in entries:
        pieces.append(f'{json.dumps(name)}:{{"dtype":"{kind}","shape":{json.dumps(shape)},'
                      f'"data_offsets":[{offset},{offset + size}]}}')
        offset += size
    text = ("{" + ",".join(pieces) + "}").encode()
    return struct.pack("<Q", len(text)) + text + data


def parse(payload):
    (length,) = struct.unpack_from("<Q", payload)
    entries = json.loads(payload[8:8 + length])
    data = payload[8 + length:]
    tensors = [(name, e["dtype"], e["shape"], e["data_offsets"][1] - e["data_offsets"][0])
               for name, e in sorted(entries.items(), key=lambda item: item[1]["data_offsets"])]
    return tensors, list(struct.unpack(f"<{len(data) // 4}f", data))


def answer(task, payload, **changes):
    header = {"type": "update", "task": task, "samples": 5, "steps": 1, "train_loss": 0.5, **changes}
    write(frame({key: value for key, value in header.items() if value is not None}, payload))


def misbehave(task, tensors, values):
    """Misbehaves as MODE says. Returns True if the program must not answer the task any more."""
    floats = struct.pack(f"<{len(values)}f", *values)
    name, kind, shape, size = tensors[0]
    if MODE == "exits":
        sys.exit(3)
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "exits_in_frame":
        write(frame({"type": "update", "task": task})[:20])
        sys.exit(0)
    if MODE == "exits_in_payload":
        write(frame({"type": "update", "task": task, "samples": 5, "steps": 1, "train_loss": 1}, floats)[:-1])
        sys.exit(0)
    if MODE == "garbage":
        print("epoch 1 of 10, loss 2.3", flush=True)
    if MODE == "huge_payload":
        write(struct.pack("<IQ", 10, 2**60))
    if MODE == "huge_header":
        write(struct.pack("<IQ", 2**31, 0))
    if MODE == "negative":
        write(b"\xff" * 12)
    if MODE == "deep":
        write(frame(b'{"type":' + b"[" * 40 + b"]" * 40 + b"}"))
    if MODE == "twice_key":
        write(frame(b'{"type":"heartbeat","type":"error"}'))
    if MODE == "big_endian":
        write(struct.pack(">IQ", 20, 0) + b" " * 20)
    if MODE == "hangs" or MODE == "ignores_signals":
        if MODE == "ignores_signals":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1000)
    if MODE == "closes":
        os.close(1)
        while True:
            time.sleep(1000)
    if MODE == "leaves_child":
        child = subprocess.Popen(["sleep", "1000"])
        with open(os.path.join(DIRECTORY, "child"), "w", encoding="ascii") as file:
            file.write(str(child.pid))
        sys.exit(4)
    if MODE == "error":
        write(frame({"type": "error", "task": task, "reason": "the GPU\x1b[31m is on fire"}))
    if MODE == "nan":
        values[1] = float("nan")
        answer(task, safetensors(tensors, struct.pack(f"<{len(values)}f", *values)))
    if MODE == "shape":
        answer(task, safetensors([(name, kind, shape[::-1] + [1], size), *tensors[1:]], floats))
    if MODE == "dtype":
        answer(task, safetensors([(name, "F64", [size // 8], size), *tensors[1:]], floats))
    if MODE == "twice_tensor":
        answer(task, safetensors([tensors[0], *tensors[:-1]], floats[:size] + floats))
    if MODE == "missing":
        answer(task, safetensors(tensors[:1], floats[:size]))
    if MODE == "stranger":
        answer(task, safetensors([*tensors, ("other", "F32", [1], 4)], floats + b"\0\0\0\0"))
    if MODE == "pickle":
        answer(task, b"\x80\x04\x95" + floats)
    if MODE == "no_samples":
        answer(task, floats, samples=0)
    if MODE == "many_samples":
        answer(task, safetensors(tensors, floats), samples=6)
    if MODE == "many_steps":
        answer(task, safetensors(tensors, floats), steps=2)
    if MODE == "no_loss":
        answer(task, floats, train_loss=None)
    if MODE == "other_task":
        answer(task + 1, safetensors(tensors, floats))
    if MODE == "floods":
        for _ in range(40):
            os.write(2, b"warning: this is the same line again\n" * 1000)
        os.write(2, b"x" * 1_000_000 + b"\n")
        return False
    if MODE == "unbidden":
        write(frame({"type": "ready", "protocol": 1, "samples": 5}))
    return True


def predict(task, scores, targets, shape=None):
    rows, classes = shape or (len(targets), len(scores) // len(targets))
    tensors = [("scores", "F32", [rows, classes], 4 * len(scores)),
               ("targets", "F32", [len(targets)], 4 * len(targets))]
    values = [*scores, *targets]
    write(frame({"type": "predictions", "task": task}, safetensors(tensors, struct.pack(f"<{len(values)}f", *values))))


def misjudge(task, scores, targets):
    """Misbehaves as MODE says. Returns True if the program must not answer the evaluation any more."""
    classes = len(scores) // len(targets)
    if MODE == "evaluation_exits":
        sys.exit(3)
    if MODE == "evaluation_hangs":
        while True:
            time.sleep(1000)
    if MODE == "evaluation_error":
        write(frame({"type": "error", "task": task, "reason": "no test samples here"}))
    if MODE == "evaluation_target":
        predict(task, scores, [classes, *targets[1:]])
    if MODE == "evaluation_half":
        predict(task, scores, [0.5, *targets[1:]])
    if MODE == "evaluation_shape":
        predict(task, scores, targets, [classes, len(targets)])
    if MODE == "evaluation_names":
        write(frame({"type": "predictions", "task": task},
                    safetensors([("logits", "F32", [1], 4), ("targets", "F32", [1], 4)], bytes(8))))
    if MODE == "evaluation_many":
        predict(task, scores, targets)
        predict(task, scores, targets)
    if MODE == "evaluation_few":
        predict(task, scores[classes:], targets[1:])
        write(frame({"type": "evaluation", "task": task, "samples": len(targets) - 1}))
    if MODE == "evaluation_lies":
        predict(task, scores, targets)
        write(frame({"type": "evaluation", "task": task, "samples": len(targets) + 1}))
    if MODE == "evaluation_huge":
        write(struct.pack("<IQ", 10, 2**60))
    if MODE == "evaluation_empty":
        write(frame({"type": "predictions", "task": task}))
    if MODE == "evaluation_update":
        answer(task, b"not looked at")
    return True


def evaluate(header, classes):
    count = len(header["samples"]) if "samples" in header else 4
    targets = [i % classes for i in range(count)]
    scores = [float(c == ((target + 1) % classes if i == count - 1 else target))
              for i, target in enumerate(targets) for c in range(classes)]
    if MODE == "evaluation_nan":
        scores[0] = float("nan")
    elif MODE.startswith("evaluation_") and is_turn() and misjudge(header["task"], scores, targets):
        return
    half = max(1, count // 2)
    predict(header["task"], scores[:half * classes], targets[:half])
    write(frame({"type": "heartbeat"}))
    if count > half:
        predict(header["task"], scores[half * classes:], targets[half:])
    write(frame({"type": "evaluation", "task": header["task"], "samples": count}))


def first_model():
    values = struct.pack("<7f", *range(7))
    if MODE == "ready_nan":
        values = struct.pack("<f", float("nan")) + values[4:]
    return safetensors([("weight", "F32", [3, 2], 24), ("scale", "F32", [], 4)], values)


def main():
    with open(os.path.join(DIRECTORY, "pid"), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    hello, _ = receive()
    assert hello["type"] == "hello", hello
    if MODE == "ready_exits" and is_turn():
        sys.exit(1)
    if MODE == "ready_never":
        sys.exit(1)
    if MODE == "ready_version":
        write(frame({"type": "ready", "protocol": 2, "samples": 5}))
    if MODE == "ready_many":
        write(frame({"type": "ready", "protocol": 1, "samples": 2**53}))
    if MODE == "environment":
        with open(os.path.join(DIRECTORY, "seen"), "w", encoding="utf-8") as file:
            json.dump({"variables": dict(os.environ), "files": sorted(map(int, os.listdir("/proc/self/fd"))),
                       "group": os.getpgid(0) == os.getpid(), "nice": os.nice(0), "hello": hello}, file)
    asked = hello["model"].get("asked") and MODE != "ready_no_model"
    write(frame({"type": "ready", "protocol": 1, "samples": 5, "evaluates": 4, "future": [{"deep": 1}]},
                first_model() if asked else b""))
    while True:
        header, payload = receive()
        if header["type"] == "evaluate":
            with open(os.path.join(DIRECTORY, "evaluation"), "w", encoding="utf-8") as file:
                json.dump(header, file)
            evaluate(header, hello["data"]["classes"])
        if header["type"] != "train":
            continue
        with open(os.path.join(DIRECTORY, "task"), "w", encoding="utf-8") as file:
            json.dump(header, file)
        tensors, values = parse(payload)
        if MODE == "patient":  # continues until it gets a stop message
            while (stop := receive()[0])["type"] != "stop":
                pass
            with open(os.path.join(DIRECTORY, "stop"), "w", encoding="utf-8") as file:
                json.dump(stop, file)
        elif (MODE not in HONEST and not MODE.startswith("evaluation_") and is_turn()
              and misbehave(header["task"], tensors, values)):
            continue
        write(frame({"type": "progress", "fraction": 0.5, "loss": 1.25}))
        values = [value + 1 for value in values]
        answer(header["task"], safetensors(tensors, struct.pack(f"<{len(values)}f", *values)))


main()
