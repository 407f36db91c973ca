#!/usr/bin/env python3
"""Runs an experiment of docs/experiments/ and writes its table.

    bench/experiments/run.py fedplt --programs build/release/bin --out /tmp/fedplt [--seeds 3] [--quick]

Every row of an experiment is a run file with some settings changed, run by fedge-sim once for each seed.
Runs that are there already (same settings, finished) are not repeated, so that an interrupted experiment
can be taken up again. Standard library alone.
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
    """The experiment's description: experiments/NAME.json."""
    with open(os.path.join(HERE, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def run(options, experiment, parts, seed):
    """One run's metrics, a list of one dictionary a round. `parts` are what a cell is made of: its row, and
    in a grid its table and column."""
    settings = dict(experiment["settings"])
    for part in parts:
        settings.update(part["settings"])
    settings["run.seed"] = seed
    if options.quick:
        settings["run.rounds"] = 3
    name = "-".join(part["name"] for part in parts)
    out = os.path.join(options.out, name.replace(" ", "_").replace("/", "-"), str(seed))
    stamp = os.path.join(out, "settings.json")
    wanted = json.dumps(settings, sort_keys=True)
    finished = os.path.exists(os.path.join(out, "model.safetensors"))
    if not (finished and os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == wanted):
        os.makedirs(out, exist_ok=True)
        command = [os.path.join(options.programs, "fedge-sim"), "run", os.path.join(HERE, experiment["run_file"]),
                   "--out", out, "--log-level", "error", "--threads", str(max(1, len(os.sched_getaffinity(0)) // options.jobs))]
        for key, value in settings.items():
            command += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name}, seed {seed}: {done.stderr.strip() or done.stdout[-2000:]}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def final(rounds):
    """Mean accuracy of the last three evaluated rounds: one round alone swings by points under label skew."""
    values = [r["test_accuracy"] for r in rounds if r.get("test_accuracy") is not None]
    return statistics.fmean(values[-3:])


def settled(rounds, key="test_accuracy"):
    """The mean over the last ten rounds that have the figure: who is there changes from round to round."""
    return statistics.fmean([r[key] for r in rounds if r.get(key) is not None][-10:])


def megabytes(rounds):
    return sum(r["bytes_up"] for r in rounds) / 1e6


def accuracy_at(rounds, budget):
    """The best accuracy seen before the clients had uploaded so many megabytes."""
    sent, best = 0.0, None
    for r in rounds:
        sent += r["bytes_up"] / 1e6
        if sent > budget:
            break
        if r.get("test_accuracy") is not None:
            best = max(best or 0.0, r["test_accuracy"])
    return best


def until(rounds, accuracy):
    """The rounds up to the first that is so accurate; none if none is."""
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


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def runs_of(options, experiment, parts):
    """One cell's runs, a seed each, so many at a time."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(lambda seed: run(options, experiment, parts, seed), range(1, options.seeds + 1)))


def print_lists(options, experiment):
    """A row for each run, a column for each figure; in each table, if there are several."""
    columns = experiment["columns"]
    for table in experiment.get("tables", [None]):
        if table:
            print(f"\n{table['name']}:\n")
        print_row(["run"] + [COLUMNS[c][0].format(**experiment) for c in columns])
        print_row(["---"] * (len(columns) + 1))
        for row in experiment["rows"]:
            runs = runs_of(options, experiment, [table, row] if table else [row])
            experiment.setdefault("whole", statistics.fmean(megabytes(r) for r in runs))
            print_row([row["name"]] + [COLUMNS[c][1](runs, experiment) for c in columns])


def print_grid(options, experiment):
    """For each table, a row and a column for each setting, one figure in each cell."""
    title, figure = COLUMNS[experiment["cell"]]
    for table in experiment["tables"]:
        print(f"\n{table['name']}: {title}\n")
        print_row([""] + [column["name"] for column in experiment["across"]])
        print_row(["---"] * (len(experiment["across"]) + 1))
        for row in experiment["rows"]:
            print_row([row["name"]] + [
                figure(runs_of(options, experiment, [table, row, column]), experiment)
                for column in experiment["across"]])


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
    (print_grid if "across" in experiment else print_lists)(options, experiment)


main()
