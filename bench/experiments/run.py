#!/usr/bin/env python3
"""Runs an experiment of docs/experiments/ and writes its table.

    bench/experiments/run.py fedplt --programs build/release/bin --out /tmp/fedplt [--seeds 3] [--quick]

Each row of an experiment is a run file with some settings changed; fedge-sim runs it once for each seed.
If the experiment has a "base", that model is pre-trained first. If a setting is "tuned", each row uses the
value with the best result on its first seed.
Finished runs with the same settings are not repeated, so that an interrupted experiment can be continued.
Uses only the standard library.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def load(name):
    """Reads an experiment's description, NAME.json."""
    with open(os.path.join(HERE, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def prepare(options, experiment):
    """Pre-trains the base model of the runs, unless it exists, and sets it in their settings."""
    base = experiment.get("base")
    if not base:
        return
    if "file" in base:
        experiment["settings"]["model.base"] = json.dumps(os.path.join(ROOT, base["file"]))
        return
    out = os.path.abspath(os.path.join(options.out, "base.safetensors"))
    if not os.path.exists(out):
        os.makedirs(options.out, exist_ok=True)
        command = [os.path.join(options.programs, "fedge-sim"), "pretrain", os.path.join(HERE, base["run_file"]),
                   "--out", out] + base.get("arguments", [])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{base['run_file']}: {done.stderr.strip() or done.stdout[-2000:]}")
    experiment["settings"]["model.base"] = json.dumps(out)


def run(options, experiment, parts, seed):
    """Returns one run's metrics: a list with a dictionary for each round. `parts` define the cell's settings: its
    row, in a grid its table and column, and the value of a tuned setting."""
    settings = dict(experiment["settings"])
    for part in parts:
        settings.update(part["settings"])
    settings["run.seed"] = seed
    if options.quick:
        settings.update({"run.rounds": 3, "run.evaluate_every": 1})
    name = "-".join(part["name"] for part in parts)
    out = os.path.join(options.out, name.replace(" ", "_").replace("/", "-"), str(seed))
    stamp = os.path.join(out, "settings.json")
    wanted = json.dumps(settings, sort_keys=True)
    model = os.path.join(out, "model.safetensors")
    if not (os.path.exists(model) and os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == wanted):
        os.makedirs(out, exist_ok=True)
        if os.path.exists(model):
            os.remove(model)
        command = [os.path.join(options.programs, "fedge-sim"), "run", os.path.join(HERE, experiment["run_file"]),
                   "--out", out, "--force", "--log-level", "error",
                   "--threads", str(max(1, len(os.sched_getaffinity(0)) // options.jobs))]
        for key, value in settings.items():
            command += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # A run whose model diverges also exits with 1; its metrics are valid results of the experiment.
        if done.returncode != 0 and not os.path.exists(model):
            sys.exit(f"{name}, seed {seed}: {done.stderr.strip() or done.stdout[-2000:]}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def final(rounds, key="test_accuracy"):
    """Returns the mean of the last three evaluated rounds. Under label skew, single rounds differ by several points."""
    return statistics.fmean([r[key] for r in rounds if r.get(key) is not None][-3:])


def settled(rounds, key="test_accuracy"):
    """Returns the mean of the last ten rounds with this metric, because the available clients change each round."""
    return statistics.fmean([r[key] for r in rounds if r.get(key) is not None][-10:])


def megabytes(rounds):
    return sum(r["bytes_up"] for r in rounds) / 1e6


def downloaded(rounds):
    return sum(r["bytes_down"] for r in rounds) / 1e6


def at_rank(rounds, rank, key):
    """Like final(), for the model truncated to this rank of its adapters. None if the run has no such rank."""
    found = [x[key] for r in rounds for x in r.get("ranks", []) if x["rank"] == rank]
    return statistics.fmean(found[-3:]) if found else None


def accuracy_at(rounds, budget):
    """Returns the best accuracy before the clients' uploads exceeded `budget` megabytes."""
    sent, best = 0.0, None
    for r in rounds:
        sent += r["bytes_up"] / 1e6
        if sent > budget:
            break
        if r.get("test_accuracy") is not None:
            best = max(best or 0.0, r["test_accuracy"])
    return best


def until(rounds, accuracy):
    """Returns the rounds up to the first that reaches this accuracy; empty if none does."""
    for i, r in enumerate(rounds):
        if r.get("test_accuracy") is not None and r["test_accuracy"] >= accuracy:
            return rounds[: i + 1]
    return []


def seconds_to(rounds, accuracy):
    needed = until(rounds, accuracy)
    return needed[-1]["virtual_seconds"] if needed else None


def rounds_to(rounds, accuracy):
    return len(until(rounds, accuracy)) or None


def updates_to(rounds, accuracy):
    return sum(r["clients_completed"] for r in until(rounds, accuracy)) or None


def spread(values, scale=1.0, digits=2):
    if all(v is None for v in values):
        return ""
    reached = [v for v in values if v is not None]
    if len(reached) < len(values):
        return f"{len(reached)} of {len(values)} get there"
    text = f"{scale * statistics.fmean(values):.{digits}f}"
    if len(values) > 1:
        text += f" ± {scale * statistics.stdev(values):.{digits}f}"
    return text


COLUMNS = {
    "final": ("final accuracy, %", lambda runs, _: spread([final(r) for r in runs], 100)),
    "best": ("best accuracy, %", lambda runs, _: spread(
        [max(x["test_accuracy"] for x in r if x.get("test_accuracy") is not None) for r in runs], 100)),
    "up": ("upload, MB", lambda runs, _: spread([megabytes(r) for r in runs], 1, 1)),
    "at": ("accuracy at {at} MB, %", lambda runs, e: spread([accuracy_at(r, e["at"]) for r in runs], 100)),
    "seconds": ("virtual seconds to {target} %", lambda runs, e: spread(
        [seconds_to(r, e["target"] / 100) for r in runs], 1, 0)),
    "rounds": ("rounds to {target} %", lambda runs, e: spread(
        [rounds_to(r, e["target"] / 100) for r in runs], 1, 0)),
    "updates": ("updates to {target} %", lambda runs, e: spread(
        [updates_to(r, e["target"] / 100) for r in runs], 1, 0)),
    "ratio": ("of float32's upload, %", lambda runs, e: spread([100 * megabytes(r) / e["whole"] for r in runs], 1, 1)),
    "bits": ("bits a byte", lambda runs, _: spread([final(r, "bits_per_byte") for r in runs], 1, 3)),
    "group_bits": ("mean of groups", lambda runs, _: spread([final(r, "group_bits_per_byte") for r in runs], 1, 3)),
    "last_bits": ("bits after the last round", lambda runs, _: spread([r[-1]["bits_per_byte"] for r in runs], 1, 3)),
    "last_group_bits": ("mean of groups", lambda runs, _: spread(
        [r[-1]["group_bits_per_byte"] for r in runs], 1, 3)),
    "down": ("download, MB", lambda runs, _: spread([downloaded(r) for r in runs], 1, 1)),
    "tuned": ("{tuned[name]}", lambda runs, e: str(e["chosen"])),
    "settled": ("accuracy, %", lambda runs, _: spread([settled(r) for r in runs], 100)),
    "covered": ("on covered labels, %", lambda runs, _: spread([settled(r, "covered_accuracy") for r in runs], 100)),
    "labels": ("covered labels of 10", lambda runs, _: spread(
        [statistics.fmean(x["covered_labels"] for x in r if x.get("covered_labels") is not None) for r in runs])),
    "gini": ("participation Gini", lambda runs, _: spread([r[-1]["participation_gini"] for r in runs], 1, 3)),
    "interclass": ("variance between classes", lambda runs, _: spread(
        [settled(r, "between_class_variance") for r in runs], 1, 3)),
    "uploads": ("uploads a round", lambda runs, _: spread(
        [statistics.fmean(x["clients_completed"] for x in r) for r in runs], 1, 1)),
}


def column(name):
    """Returns a column's title and function. "accuracy@4" and "bits@4" are for the model's first 4 ranks."""
    key, _, rank = name.partition("@")
    if not rank:
        return COLUMNS[name]
    key, title, scale, digits = {"accuracy": ("accuracy", "%", 100, 2), "bits": ("bits_per_byte", "bits", 1, 3)}[key]
    return (f"rank {rank}, {title}",
            lambda runs, _: spread([at_rank(r, int(rank), key) for r in runs], scale, digits))


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def runs_of(options, experiment, parts):
    """Returns the runs of one cell, one for each seed; runs options.jobs at a time."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(lambda seed: run(options, experiment, parts, seed), range(1, options.seeds + 1)))


def tune(options, experiment, parts):
    """Returns the value of the tuned setting that is best on the first seed, as a part of the cell."""
    tuned = experiment["tuned"]
    figures = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tried = [{"name": str(value), "settings": {tuned["setting"]: value}} for value in tuned["values"]]
        for part, rounds in zip(tried, pool.map(lambda part: run(options, experiment, parts + [part], 1), tried)):
            figures[part["name"]] = (final(rounds, tuned["by"]), part)
    best = (max if tuned["by"] == "test_accuracy" else min)(figures.values(), key=lambda pair: pair[0])[1]
    experiment["chosen"] = best["name"]
    return best


def print_lists(options, experiment):
    """Prints tables with a row for each run and a column for each metric."""
    columns = experiment["columns"]
    for table in experiment.get("tables", [None]):
        if table:
            print(f"\n{table['name']}:\n")
        print_row(["run"] + [column(c)[0].format(**experiment) for c in columns])
        print_row(["---"] * (len(columns) + 1))
        for row in experiment["rows"]:
            parts = [table, row] if table else [row]
            if "tuned" in experiment:
                parts = parts + [tune(options, experiment, parts)]
            runs = runs_of(options, experiment, parts)
            experiment.setdefault("whole", statistics.fmean(megabytes(r) for r in runs))
            print_row([row["name"]] + [column(c)[1](runs, experiment) for c in columns])


def print_grid(options, experiment):
    """Prints tables with a row and a column for each setting, and one metric in each cell."""
    title, figure = column(experiment["cell"])
    for table in experiment["tables"]:
        print(f"\n{table['name']}: {title}\n")
        print_row([""] + [across["name"] for across in experiment["across"]])
        print_row(["---"] * (len(experiment["across"]) + 1))
        for row in experiment["rows"]:
            print_row([row["name"]] + [
                figure(runs_of(options, experiment, [table, row, across]), experiment)
                for across in experiment["across"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("experiment")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--out", required=True, help="directory for the runs' outputs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the processors")
    parser.add_argument("--quick", action="store_true", help="three rounds each: does it run at all?")
    options = parser.parse_args()
    experiment = load(options.experiment)
    prepare(options, experiment)
    (print_grid if "across" in experiment else print_lists)(options, experiment)


main()
