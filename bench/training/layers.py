#!/usr/bin/python3
"""Compares the training step of each list of examples/models/ with PyTorch's, all on one thread.

    layers.py [--program BENCH_LAYERS] [--python PYTHON]... [--model NAME]... [--turns 9] [--steps 10]

Each --python is a Python with PyTorch; default: Debian's. They and bench_layers take turns. Prints the medians of the
turns in milliseconds, with the shortest turn, and how many times as fast Fedge is by the medians. A neighbour on the
same core slows code that fills its multipliers more than other code: on a busy host compare the shortest turns too.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LISTS = {
    "lenet": ["--input", "28,28,1", "--outputs", "10"],
    "cifar_cnn": ["--input", "32,32,3", "--outputs", "10"],
    "resnet20": ["--input", "32,32,3", "--outputs", "10"],
    "activity_cnn": ["--input", "104,6,1", "--outputs", "5"],
    "shakespeare_lstm": ["--tokens", "80", "--outputs", "96"],
}


def run(command, environment):
    """Returns the words of the first line that the command prints; the first is the step in milliseconds."""
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def usable(pythons):
    """Returns (name of the version, program) of each Python that has PyTorch."""
    found = []
    for python in pythons:
        asked = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False)
        if asked.returncode == 0:
            found.append(("PyTorch " + asked.stdout.strip().split("+")[0], python))
        else:
            print(f"skipped: {python} has no PyTorch; install python3-torch for the comparison")
    return found


def compare(model, program, peers, turns, steps):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"
    commands = {"Fedge": [program, ROOT / "examples" / "models" / f"{model}.toml", *LISTS[model], "--steps", steps]}
    for name, python in peers:
        commands[name] = [python, HERE / "torch_layers.py", model, steps]
    taken = {name: [] for name in commands}
    shares = []
    for _ in range(turns):
        for name, command in commands.items():
            words = run([str(part) for part in command], environment)
            taken[name].append(float(words[0]))
            if name == "Fedge":
                shares.append(int(words[words.index("%") - 1]))
    ours = taken["Fedge"]
    print(f"{model}: Fedge {statistics.median(ours):.2f} ms (shortest {min(ours):.2f}), at least "
          f"{statistics.median(shares):.0f} % of the core's multiply-adds")
    for name, _ in peers:
        theirs = taken[name]
        print(f"  {name}: {statistics.median(theirs):.2f} ms (shortest {min(theirs):.2f}); Fedge is "
              f"{statistics.median(theirs) / statistics.median(ours):.2f} times as fast, by the shortest turns "
              f"{min(theirs) / min(ours):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Lists of layers against PyTorch.")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/bench_layers"))
    parser.add_argument("--python", action="append", help="a Python with PyTorch; default: /usr/bin/python3")
    parser.add_argument("--model", action="append", choices=LISTS)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        sys.exit(f"layers.py: {options.program} is not there: build it with cmake --preset release "
                 "-DFEDGE_BUILD_BENCH=ON")
    print(f"load before: {' '.join(pathlib.Path('/proc/loadavg').read_text(encoding='utf-8').split()[:3])}")
    peers = usable(options.python or ["/usr/bin/python3"])
    for model in options.model or LISTS:
        compare(model, options.program, peers, options.turns, str(options.steps))


if __name__ == "__main__":
    main()
