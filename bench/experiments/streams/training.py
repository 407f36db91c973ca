#!/usr/bin/env python3
"""Centralised, local and federated training on segments of streams (docs/experiments/streams.md).

    training.py BIN RUN.toml SEGMENTS OUT [--rounds N] [--seeds N] [--only NAME,...] [--set KEY=VALUE]...
BIN has fedge-sim; RUN.toml is a run file such as examples/models/event_unet.toml; SEGMENTS has a directory for
each client, as fedge data screen writes them. A client without files train-* only evaluates. Prints a table:
mean and standard deviation over the seeds, of the evaluation by the clients after the last round. Then the confusion
matrices of the points over all seeds: of each true class, the percentages that were predicted as each class.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import tomllib

METRICS = ("macro_f1", "mean_iou", "event_precision", "event_recall", "event_f1", "boundary_error")
FEDERATED = {
    "FedAvg": [],
    "FedProx, mu 0.01": ["strategy.kind=\"fedprox\"", "training.objective.mu=0.01"],
    "FedAvg, own first block": ["model.personal=[\"conv1\",\"group_norm1\",\"conv2\",\"down1\"]",
                                "training.personal.kind=\"fedper\""],
}


def trains(client: pathlib.Path) -> bool:
    return any(client.glob("train-*"))


def copy(client: pathlib.Path, target: pathlib.Path, sides: tuple[str, ...]) -> None:
    """Copies files of these sides; names stay unique if several clients share a directory."""
    target.mkdir(parents=True, exist_ok=True)
    for side in sides:
        for path in client.glob(f"{side}-*.safetensors"):
            shutil.copy(path, target / f"{side}-{client.name}-{path.name.removeprefix(side + '-')}")


def without_gates(text: str) -> str:
    """The run file without its attention gates."""
    for k in "123":
        text = text.replace(f'from = ["kept{k}", "up{k}"]', f'from = ["down{k}", "up{k}"]')
        text = re.sub(rf'\n[^\n]*name = "skip{k}"[^\n]*\n[^\n]*name = "deep{k}"[^\n]*\n[^\n]*\n'
                      rf'[^\n]*name = "gate{k}"[^\n]*\n[^\n]*name = "kept{k}"[^\n]*', "", text)
    return text


class Study:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.clients = sorted(path for path in options.segments.iterdir() if path.is_dir())
        self.training = [client for client in self.clients if trains(client)]
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="streams-"))

    def run(self, name: str, data: pathlib.Path, seed: int, settings: list[str], text: str | None = None) -> dict:
        run_file = self.options.run_file
        if text is not None:
            run_file = self.scratch / "run.toml"
            run_file.write_text(text, encoding="utf-8")
        clients = [path for path in data.iterdir() if path.is_dir()]
        training = sum(trains(path) for path in clients)
        out = self.options.out / re.sub(r"[^A-Za-z0-9]+", "_", name) / str(seed)
        command = [self.options.bin / "fedge-sim", "run", run_file, "--data", f"{self.options.name}={data}", "--out",
                   out, "--force"]
        values = [f"run.rounds={self.options.rounds}", f"run.evaluate_every={self.options.rounds}",
                  f"run.seed={seed}", f"data.partition.clients={len(clients)}",
                  f"sampling.clients_per_round={training}", *self.options.set, *settings]
        for value in values:
            command += ["--set", value]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        last = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
        return json.loads(last)["evaluation"]

    def centralised(self) -> pathlib.Path:
        data = self.scratch / "centralised"
        for client in self.training:
            copy(client, data / "000-all", ("train",))
        for client in self.clients:
            if any(client.glob("test-*")):
                copy(client, data / client.name, ("test",))
        return data

    def alone(self, client: pathlib.Path) -> pathlib.Path:
        """One client's training samples and its test samples, or those of clients that only evaluate."""
        data = self.scratch / f"alone-{client.name}"
        copy(client, data / client.name, ("train", "test"))
        if not any(client.glob("test-*")):
            for other in self.clients:
                if not trains(other):
                    copy(other, data / other.name, ("test",))
        return data

    def results(self, name: str, seed: int) -> dict:
        if name == "centralised":
            return self.run(name, self.centralised(), seed, [])
        if name == "centralised, no gates":
            return self.run(name, self.centralised(), seed, [],
                            without_gates(self.options.run_file.read_text(encoding="utf-8")))
        if name != "local":
            return self.run(name, self.options.segments, seed, FEDERATED[name])
        parts = [self.run(f"local {client.name}", self.alone(client), seed, []) for client in self.training]
        weights = [part["samples"] for part in parts]
        mean = {}
        for key in METRICS:
            known = [(part[key], w) for part, w in zip(parts, weights) if part.get(key) is not None]
            mean[key] = sum(v * w for v, w in known) / sum(w for _, w in known) if known else None
        mean["confusion"] = [sum(counts) for counts in zip(*(part["confusion"] for part in parts))]
        return mean

    def table(self) -> None:
        print("| training | " + " | ".join(METRICS) + " |")
        print("| --- |" + " ---: |" * len(METRICS))
        text = self.options.run_file.read_text(encoding="utf-8")
        classes = tomllib.loads(text)["data"]["classes"]
        names = ["local", *FEDERATED, "centralised", "centralised, no gates"]
        if 'name = "down1"' not in text:  # another model than the U-Net
            names = [name for name in names if name not in ("FedAvg, own first block", "centralised, no gates")]
        confusions = {}
        for name in names:
            if self.options.only and name not in self.options.only.split(";"):
                continue
            rows = [self.results(name, seed) for seed in range(1, self.options.seeds + 1)]
            cells = []
            for key in METRICS:
                values = [row[key] for row in rows if row.get(key) is not None]
                spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
                cells.append(f"{statistics.fmean(values):.3f}{spread}" if values else "-")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            confusions[name] = [sum(counts) for counts in zip(*(row["confusion"] for row in rows))]
        for name, counts in confusions.items():
            print(f"\n| {name}: true | " + " | ".join(classes) + " |\n| --- |" + " ---: |" * len(classes))
            for k, label in enumerate(classes):
                row = counts[k * len(classes):(k + 1) * len(classes)]
                print(f"| {label} | " + " | ".join(f"{100 * count / max(sum(row), 1):.1f}" for count in row) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("run_file", type=pathlib.Path)
    parser.add_argument("segments", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--name", default="road", help="data.name of the run file")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of rows, separated by semicolons")
    parser.add_argument("--set", action="append", default=[])
    Study(parser.parse_args()).table()


if __name__ == "__main__":
    main()
