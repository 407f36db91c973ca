"""Helpers of the aggregation tests: write rounds of updates to files and run `fedge aggregate` on them."""
import dataclasses
import os
import subprocess

import numpy as np

import aggregation_inputs
import safetensors_file


@dataclasses.dataclass
class Round:
    name: str
    directory: str
    shapes: dict
    x: np.ndarray      # (n, d) updates as Fedge reads them: float32 differences, in float64
    model: np.ndarray  # (d,) values of --global, or zeros
    weights: list
    steps: list
    half_unit: float   # half of the fixed-point resolution
    threads: int
    weights_given: bool = False  # with --weights; otherwise in the files
    order: list = None           # of the files; None: by number
    options: list = dataclasses.field(default_factory=list)  # for every run on this round

    @property
    def files(self):
        order = range(len(self.x)) if self.order is None else self.order
        return [os.path.join(self.directory, f"{i}.safetensors") for i in order]

    def noise(self):
        """Returns the possible difference between sums of n doubles in different orders; (d,)."""
        return len(self.x) * 2.0**-50 * np.max(np.abs(self.x), axis=0)

    def norm_noise(self):
        """Returns the same for sums that depend on norms; a scalar."""
        return len(self.x) * 2.0**-50 * np.max(np.sqrt(np.sum(self.x**2, axis=1)))

    def mean_slack(self, average_weight):
        """Returns the largest error of a fixed-point mean; (d,)."""
        return self.half_unit / average_weight + self.noise()


def write_round(name, directory, x, random):
    """Writes and returns the round of these updates: as differences, or as models with a --global model, with weights
    in the files or on the command line. Rounds whose name begins with "beyond" have larger bounds."""
    n, d = x.shape
    round_ = Round(name, directory, aggregation_inputs.shapes(random, d), x.astype(np.float32).astype(np.float64),
                   np.zeros(d), aggregation_inputs.weights(random, n), random.integers(1, 51, n).tolist(), 2.0**-29,
                   int(random.integers(1, 3)), bool(random.integers(2)))
    files = x.astype(np.float32)
    if name.startswith("beyond"):
        round_.options += ["--set", "max_abs=1e6", "--set", "fraction_bits=16"]
        round_.half_unit = 2.0**-17
    elif random.integers(2) and np.max(np.abs(x)) < 200:
        model = random.normal(0, 0.1, d).astype(np.float32)
        files = (model + x).astype(np.float32)
        round_.x, round_.model = (files - model).astype(np.float64), model.astype(np.float64)
        path = os.path.join(directory, "global.safetensors")
        safetensors_file.write(path, cut(model, round_.shapes))
        round_.options += ["--global", path]
    for i, path in enumerate(round_.files):
        metadata = {"num_examples": 7 if round_.weights_given else round_.weights[i], "num_steps": round_.steps[i]}
        safetensors_file.write(path, cut(files[i], round_.shapes), metadata)
    return round_


def cut(values, shapes):
    """Divides a flat vector into named tensors."""
    tensors, first = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        tensors[name] = values[first:first + size].reshape(shape)
        first += size
    return tensors


def run(program, strategy, options, round_):
    """Returns (process, path of the output); `options` are KEY=VALUE."""
    out = os.path.join(round_.directory, "out.safetensors")
    if os.path.exists(out):
        os.remove(out)
    command = [program, "aggregate", "--strategy", strategy, "--threads", str(round_.threads), "--out", out,
               *round_.options]
    command += [part for option in options for part in ("--set", option)]
    if round_.weights_given:
        order = range(len(round_.x)) if round_.order is None else round_.order
        command += ["--weights", ",".join(str(round_.weights[i]) for i in order)]
    return subprocess.run([*command, *round_.files], capture_output=True, text=True), out
