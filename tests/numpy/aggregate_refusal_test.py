"""Tests what `fedge aggregate` refuses. Every bad file or option must give exit code 1, one sentence that names the
cause, and no output file.

    aggregate_refusal_test.py FEDGE
"""
import dataclasses
import os
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy not found (package python3-numpy)")
    sys.exit(77)  # CTest counts this exit code as skipped

sys.dont_write_bytecode = True
import safetensors_file
from aggregation_rounds import Round, cut, run

SEED = 20261
RULES = ["fedavg", "uniform_mean", "fednova", "fedadam", "median", "trimmed_mean", "krum", "multi_krum", "bulyan",
         "geometric_median", "centered_clip", "clipped_mean"]
SHAPES = {"conv": (4, 3, 2), "bias": (7,), "head": (5, 2)}
FILES = 7


def honest_round(directory, random):
    """Writes seven plain updates to files."""
    size = sum(int(np.prod(shape)) for shape in SHAPES.values())
    x = random.normal(0, 0.02, (FILES, size)).astype(np.float32)
    round_ = Round("refusals", directory, SHAPES, x, np.zeros(size), [1] * FILES, [1] * FILES, 2.0**-29, 1)
    for path, values in zip(round_.files, x):
        safetensors_file.write(path, cut(values, SHAPES), {"num_examples": 3, "num_steps": 2})
    return round_


class Refusals:
    def __init__(self, program, round_):
        self.program = program
        self.round = round_
        self.count = 0

    def expect(self, what, strategy, options, words):
        """Checks that the command is refused with one sentence that contains these words."""
        process, out = run(self.program, strategy, options, self.round)
        said = process.stderr
        label = f"{what}, {strategy} {' '.join(options)}"
        assert process.returncode == 1, f"{label}: exit {process.returncode}, said {said!r}"
        assert said.startswith("fedge: ") and said.count("\n") == 1, f"{label}: not one sentence: {said!r}"
        for word in words:
            assert word in said, f"{label}: {word!r} is missing in {said!r}"
        assert not os.path.exists(out), f"{label}: an output was written"
        self.count += 1

    def accepted(self, strategy):
        process, _ = run(self.program, strategy, [], self.round)
        assert process.returncode == 0, f"{strategy} refused the plain round: {process.stderr!r}"


def check_values(refusals, random):
    """Invalid values, in any file, position and rule: the error names the file and the parameter."""
    values = [np.nan, np.inf, -np.inf, 256.001, -1e30]
    for number, rule in enumerate(RULES):
        for value in [values[number % len(values)], values[(number + 2) % len(values)]]:
            file, tensor = int(random.integers(FILES)), str(random.choice(list(SHAPES)))
            place = int(random.integers(np.prod(SHAPES[tensor])))
            tensors, metadata = safetensors_file.read(refusals.round.files[file])
            broken = {name: part.copy() for name, part in tensors.items()}
            broken[tensor].reshape(-1)[place] = value
            safetensors_file.write(refusals.round.files[file], broken, metadata)
            refusals.expect(f"{value} in file {file}", rule, [],
                            [refusals.round.files[file], f"{tensor}[{place}]", "finite", "256"])
            safetensors_file.write(refusals.round.files[file], tensors, metadata)
        refusals.accepted(rule)


def check_tensors(refusals, random):
    """Files whose tensors do not match each other."""
    file = int(random.integers(1, FILES))
    path = refusals.round.files[file]
    tensors, metadata = safetensors_file.read(path)
    without = {name: part for name, part in tensors.items() if name != "head"}
    others = [
        ("another size", {**tensors, "bias": np.zeros(8)}, ["bias", "8", "7"]),
        ("another shape", {**tensors, "conv": tensors["conv"].reshape(-1, 1)},
         ["conv", f"[{tensors['conv'].size}, 1]", str(list(tensors["conv"].shape))]),
        ("another name", {"conv": tensors["conv"], "offset": tensors["bias"], "head": tensors["head"]},
         ["offset"]),
        ("a tensor less", without, ["head", "missing"]),
        ("a tensor more", {**tensors, "extra": np.zeros(1)}, ["extra"]),
        ("another order", {name: tensors[name] for name in ("bias", "conv", "head")}, ["another order"]),
    ]
    for what, written, words in others:
        safetensors_file.write(path, written, metadata)
        for rule in ["fedavg", "median", "krum"]:
            refusals.expect(what, rule, [], [path, *words])
    safetensors_file.write(path, tensors, metadata)
    refusals.accepted("median")


def check_files(refusals, random):
    """Files that are invalid: truncated, of another format, with invalid metadata, or missing."""
    path = refusals.round.files[int(random.integers(FILES))]
    tensors, metadata = safetensors_file.read(path)
    with open(path, "rb") as file:
        whole = file.read()
    double = whole.replace(b"F32", b"F64")
    for what, written in [("cut off", whole[:-1]), ("cut off in its header", whole[:40]), ("empty", b""),
                          ("longer", whole + b"\0"), ("float64", double),
                          ("a huge header", b"\xff" * 8 + whole[8:]), ("no JSON", whole[:8] + b"!" + whole[9:])]:
        with open(path, "wb") as file:
            file.write(written)
        refusals.expect(what, "trimmed_mean", [], [path])
    for key in ["num_examples", "num_steps"]:
        for value in ["0", "-3", "many", "1.5", ""]:
            safetensors_file.write(path, tensors, {**metadata, key: value})
            refusals.expect(f"{key} {value!r}", "fednova", [], [path, key])
    os.remove(path)
    refusals.expect("a missing file", "krum", [], [path])
    safetensors_file.write(path, tensors, metadata)
    refusals.accepted("fednova")


def check_options(refusals):
    for strategy, option, words in [
            ("trimmed_mean", "trim=-2", ["trim", "-2"]),
            ("trimmed_mean", "trim=4", ["trim = 4", "9 updates", "7"]),
            ("krum", "byzantine=-2", ["byzantine", "-2"]),
            ("krum", "byzantine=x", ["byzantine", "x"]),
            ("multi_krum", "select=8", ["select = 8", "8 updates", "7"]),
            ("bulyan", "byzantine=2", ["11 updates", "7"]),
            ("krum", "bucket_size=4", ["krum", "9 updates", "7"]),
            ("median", "bucket_size=0", ["bucket_size", "0"]),
            ("geometric_median", "iterations=0", ["iterations", "0"]),
            ("geometric_median", "tolerance=2", ["tolerance", "2"]),
            ("geometric_median", "smoothing=0", ["smoothing", "0"]),
            ("centered_clip", "radius=0", ["radius", "0"]),
            ("clipped_mean", "clip_norm=-1", ["clip_norm", "-1"]),
            ("clipped_mean", "clip_to_median=false", ["clip_norm"]),
            ("median", "trim=1", ["trim"]),
            ("fedavg", "max_abs=nan", ["max_abs"]),
            ("median", "max_abs=1e6", ["max_abs"]),
            ("fedadam", "learning_rate=0", ["learning_rate"]),
            ("fedadam", "beta2=1", ["beta2"]),
            ("fedyogi", "tau=0", ["tau"]),
            ("medain", "trim=1", ["medain"])]:
        refusals.expect("an option", strategy, [option], words)
    for strategy in ["qfedavg", "feddyn"]:
        refusals.expect("a strategy of runs", strategy, [], [strategy, "in a run only"])


def check_weights(refusals):
    """Weights on the command line: a count that differs from the number of files, or values too large for the sums."""
    plain = refusals.round
    for rule, weights, words in [("fedavg", [1] * (FILES - 1), ["--weights", "6", "7"]),
                                 ("median", [1] * (FILES + 1), ["--weights", "8", "7"]),
                                 ("median", [0] + [1] * (FILES - 1), ["weight", "is 0"]),
                                 ("fedavg", [10**9] + [1] * (FILES - 1), ["1000000000 samples"]),
                                 ("fednova", [2**26] * FILES, [f"{2**26} (samples"])]:
        refusals.round = dataclasses.replace(plain, options=["--weights", ",".join(map(str, weights))])
        refusals.expect(f"weights {weights}", rule, [], words)
    refusals.round = plain


def main():
    random = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as directory:
        refusals = Refusals(sys.argv[1], honest_round(directory, random))
        check_values(refusals, random)
        check_tensors(refusals, random)
        check_files(refusals, random)
        check_options(refusals)
        check_weights(refusals)
        print(f"{refusals.count} bad inputs refused, each with its name; seed {SEED}")


main()
