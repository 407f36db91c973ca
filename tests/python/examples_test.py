"""Tests the examples whose trainer is a Python program: the commands of each README.md, and that the program trains
like the built-in trainer.

    examples_test.py BIN CASE

CASE is readme-KIND, steps-KIND or mixed. KIND is the folder of an example.
"""
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile

from federation import PYTHON, ROOT, SECONDS, Federation

# Largest accuracy difference between a federation of built-in trainers and a mixed one, which draw different batches.
# Measured with four clients of 1000 images each, four rounds, seeds 1 to 7: 0.4, 0.1, 0.3, -1.4, 0.8, -0.9 and 2.0
# percentage points, a standard deviation of 1.1.
TOLERANCE = 0.04
SKIPPED = 77


def read_model(path):
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    data = raw[8 + length:]
    return struct.unpack(f"<{len(data) // 4}f", data)


def readme(bin_directory, kind):
    """Runs the commands of the example's README.md unchanged except for a free port, in a new folder."""
    (commands,) = re.findall(r"```sh\n(.*?)```", (ROOT / f"examples/{kind}/README.md").read_text(), re.S)
    with socket.socket() as free, tempfile.TemporaryDirectory() as directory:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        assert commands.count(":7433") == 2, commands
        os.symlink(ROOT / "examples", os.path.join(directory, "examples"))
        environment = {**os.environ, "PATH": bin_directory + ":" + os.environ["PATH"]}
        done = subprocess.run(["/bin/sh", "-eu", "-c", commands.replace(":7433", f":{port}")], cwd=directory, env=environment,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        output = done.stdout + done.stderr
        assert done.returncode == 0, output
        assert output.count("update.accepted") == 2 * 3, output
        # Another example can be followed in the same folder.
        assert sorted(os.listdir(directory)) == ["examples", "out"], os.listdir(directory)
        assert os.listdir(os.path.join(directory, "out")) == [kind], os.listdir(os.path.join(directory, "out"))
        with open(os.path.join(directory, f"out/{kind}/results/metrics.jsonl"), encoding="utf-8") as metrics:
            accuracy = [json.loads(line)["test_accuracy"] for line in metrics][-1]
        # A linear model trained on this many images reaches more than 0.6, with 10 classes.
        assert accuracy > 0.6, accuracy
        print(f"{kind}: its read-me's commands lead to an accuracy of {accuracy:.3f}")


def steps(bin_directory, kind):
    """With all samples in one batch, nothing is random: three steps must give the built-in trainer's result."""
    one = ['data.partition={kind="iid",clients=1,samples_per_client=200}', "training.batch_size=1000", "run.rounds=2",
           "training.local_epochs=3", "training.optimizer.momentum=0.9", "training.optimizer.weight_decay=0.01"]
    for name, more in (("proximal", ["strategy.kind=fedprox", "training.objective.mu=0.5"]),
                       ("a part of the model", ["strategy.kind=random_mask", "strategy.planner.shares=[0.4]", "strategy.planner.fractions=[1.0]"])):
        models = {}
        for trainer in (None, kind):
            with tempfile.TemporaryDirectory() as directory:
                run = Federation(bin_directory, directory, one + more, [trainer])
                models[trainer] = read_model(run.model())
        off = max(abs(a - b) for a, b in zip(models[None], models[kind]))
        # A step changes parameters by up to 0.1; sums of 784 float32 products may round differently.
        assert len(models[None]) == len(models[kind]) and off < 1e-5, f"{name}: off by {off}"
        print(f"{kind}, {name}: after two rounds of three steps off the built-in trainer's model by {off:.1e}")


def mixed(bin_directory):
    settings = ['data.partition={kind="iid",clients=4,samples_per_client=1000}', "run.rounds=4"]
    accuracy = []
    for trainers, more in (([None] * 4, []), ([None, None, "pytorch", "numpy"], []),
                           ([None, None, "pytorch", "numpy"], ["strategy.kind=fedplt", 'compression={kind="int8"}'])):
        with tempfile.TemporaryDirectory() as directory:
            run = Federation(bin_directory, directory, settings + more, trainers)
            accuracy.append(run.accuracy())
            completed = [row["clients_completed"] for row in run.rounds]
            assert completed == [4] * 4, completed
    assert abs(accuracy[0] - accuracy[1]) < TOLERANCE, accuracy
    # Each client trains a part of the model, and sends 8 bits for each value.
    assert accuracy[2] > accuracy[0] - 2 * TOLERANCE, accuracy
    print("accuracy: built-in trainers {:.4f}, with PyTorch and NumPy {:.4f}, parts of it compressed {:.4f}".format(*accuracy))


def main():
    bin_directory, case = sys.argv[1:]
    name, _, kind = case.partition("-")
    for module in {"pytorch": ["torch"], "numpy": ["numpy"], "": ["torch", "numpy"]}[kind]:
        if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
            print(f"skipped: {module} not found (package python3-{module})")
            sys.exit(SKIPPED)
    if not os.path.exists("/usr/share/datasets/fashion-mnist"):
        print("skipped: Fashion-MNIST not found (package dataset-fashion-mnist)")
        sys.exit(SKIPPED)
    {"readme": readme, "steps": steps, "mixed": mixed}[name](bin_directory, *([kind] if kind else []))


main()
