#!/usr/bin/env python3
"""Runs an experiment of docs/experiments/ and writes its table.

    bench/experiments/run.py fedplt/relatives --programs build/release/bin --out /tmp/fedplt [--seeds 3] [--quick]

Each row of an experiment is a run file with some settings changed; fedge-sim runs it once for each seed.
If the experiment has a "base", that model is pre-trained first. "prepare" names a script of this directory that
writes files into --out first; $OUT in a setting is replaced by that directory.

"tuned" chooses settings without the test samples. Its "values" (of one "setting") or the "values" of each
element of its "grid" are tried in every combination, on the first seed, with data.validation = 0.1 and with
its own "settings". A value is the value of "setting", or {"name": ..., "settings": {...}}. The combination
with the best metric "by" on the validation samples is used for the row's runs, which train on all training
samples and are evaluated on the test samples. Directories of tuning runs have "tuning" in their name.

If a row, or the whole experiment, names another row in "against", a second table shows the mean of the
differences to that row over the seeds, for the columns in "paired". A seed gives both rows the same partition,
initial model and devices.

A final result is the mean of the last three evaluations, or of as many as "averaged" says: 1 fits learning rates
that fall to 0.

A run ends early if its model diverges, for example. It has no final result, and its combination of tuned settings is
not chosen.

Finished runs with the same settings are not repeated, so that an interrupted experiment can be continued.
Uses only the standard library.
"""
import argparse
import concurrent.futures
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tomllib
from typing import Callable, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

averaged = 3  # evaluations at the end of a run whose mean is its final result; an experiment's "averaged"
TUNING = {"data.validation": 0.1}  # settings of tuning runs, unless the experiment sets them
# Student's t for 1, 2, ... degrees of freedom, two-sided at 5 %. Above 20, the last is used: it is too large.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
           2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086]


def load(name):
    """Reads an experiment's description, NAME.json."""
    with open(os.path.join(HERE, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def prepare(options, experiment):
    """Writes the files that the runs need. Pre-trains their base model, unless it exists, and sets it in their settings."""
    if "prepare" in experiment:
        os.makedirs(options.out, exist_ok=True)
        subprocess.run([sys.executable, os.path.join(HERE, experiment["prepare"]), options.out], check=True)
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
    row, in a grid its table and column, and the values of tuned settings. If the run ended early, the last round
    has "ended_early"."""
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
        for data in options.data:
            command += ["--data", data]
        for key, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            command += ["--set", f"{key}={text.replace('$OUT', os.path.abspath(options.out))}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # A run whose model diverges also exits with 1; its metrics are valid results of the experiment.
        if done.returncode != 0 and not os.path.exists(model):
            sys.exit(f"{name}, seed {seed}: {done.stderr.strip() or done.stdout[-2000:]}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
        rounds = [json.loads(line) for line in file]
    with open(os.path.join(out, "run.toml"), "rb") as file:
        if len(rounds) < tomllib.load(file)["run"]["rounds"]:
            if not rounds:
                sys.exit(f"{name}, seed {seed}: the run has no rounds; see {out}")
            rounds[-1]["ended_early"] = True
    return rounds


def ended_early(rounds):
    return "ended_early" in rounds[-1]


def final(rounds, key="test_accuracy"):
    """Returns the mean of the last evaluated rounds, or None if the run ended early. Under label skew, single rounds
    differ by several points."""
    if ended_early(rounds):
        return None
    return statistics.fmean([r[key] for r in rounds if r.get(key) is not None][-averaged:])


def settled(rounds, key="test_accuracy"):
    """Returns the mean of the last ten rounds with this metric, because the available clients change each round. None
    if the run ended early."""
    if ended_early(rounds):
        return None
    return statistics.fmean([r[key] for r in rounds if r.get(key) is not None][-10:])


def megabytes(rounds):
    return sum(r["bytes_up"] for r in rounds) / 1e6


def downloaded(rounds):
    return sum(r["bytes_down"] for r in rounds) / 1e6


def at_rank(rounds, rank, key):
    """Like final(), for the model truncated to this rank of its adapters. None if the run has no such rank."""
    found = [x[key] for r in rounds for x in r.get("ranks", []) if x["rank"] == rank]
    return statistics.fmean(found[-averaged:]) if found else None


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


class Column(NamedTuple):
    title: str  # may contain the experiment's fields, e.g. {target}
    value: Callable  # a run's rounds and the experiment -> a number, or None
    scale: float = 1.0
    digits: int = 2


COLUMNS = {
    "final": Column("final accuracy, %", lambda run, _: final(run), 100),
    "best": Column("best accuracy, %", lambda run, _: max(
        r["test_accuracy"] for r in run if r.get("test_accuracy") is not None), 100),
    "up": Column("upload, MB", lambda run, _: megabytes(run), 1, 1),
    "at": Column("accuracy at {at} MB, %", lambda run, e: accuracy_at(run, e["at"]), 100),
    "seconds": Column("virtual seconds to {target} %", lambda run, e: seconds_to(run, e["target"] / 100), 1, 0),
    "rounds": Column("rounds to {target} %", lambda run, e: rounds_to(run, e["target"] / 100), 1, 0),
    "updates": Column("updates to {target} %", lambda run, e: updates_to(run, e["target"] / 100), 1, 0),
    "ratio": Column("of float32's upload, %", lambda run, e: megabytes(run) / e["whole"], 100, 1),
    "bits": Column("bits a byte", lambda run, _: final(run, "bits_per_byte"), 1, 3),
    "group_bits": Column("mean of groups", lambda run, _: final(run, "group_bits_per_byte"), 1, 3),
    "last_bits": Column("bits after the last round", lambda run, _: run[-1]["bits_per_byte"], 1, 3),
    "last_group_bits": Column("mean of groups", lambda run, _: run[-1]["group_bits_per_byte"], 1, 3),
    "down": Column("download, MB", lambda run, _: downloaded(run), 1, 1),
    "settled": Column("accuracy, %", lambda run, _: settled(run), 100),
    "covered": Column("on covered labels, %", lambda run, _: settled(run, "covered_accuracy"), 100),
    "labels": Column("covered labels of 10", lambda run, _: statistics.fmean(
        r["covered_labels"] for r in run if r.get("covered_labels") is not None)),
    "gini": Column("participation Gini", lambda run, _: run[-1]["participation_gini"], 1, 3),
    "interclass": Column("variance between classes", lambda run, _: settled(run, "between_class_variance"), 1, 3),
    "uploads": Column("uploads a round", lambda run, _: statistics.fmean(r["clients_completed"] for r in run), 1, 1),
}


def column(name):
    """Returns a column. "accuracy@4" and "bits@4" are for the model's first 4 ranks."""
    key, _, rank = name.partition("@")
    if not rank:
        return COLUMNS[name]
    key, title, scale, digits = {"accuracy": ("accuracy", "%", 100, 2), "bits": ("bits_per_byte", "bits", 1, 3)}[key]
    return Column(f"rank {rank}, {title}", lambda run, _: at_rank(run, int(rank), key), scale, digits)


def values_of(name, runs, experiment):
    return [column(name).value(run, experiment) for run in runs]


def title_of(name, experiment):
    if name == "tuned":
        return ", ".join(axis["name"] for axis in axes_of(experiment["tuned"]))
    return column(name).title.format(**experiment)


def text_of(name, cell, experiment):
    """Returns the text of a column in a cell's row."""
    if name == "tuned":
        return cell["chosen"]
    values = values_of(name, cell["runs"], experiment)
    failed = sum(value is None and ended_early(run) for value, run in zip(values, cell["runs"]))
    if failed:
        return "ended early" if failed == len(values) else f"{failed} of {len(values)} ended early"
    return spread(values, column(name).scale, column(name).digits)


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def runs_of(options, experiment, parts):
    """Returns the runs of one cell, one for each seed; runs options.jobs at a time."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(lambda seed: run(options, experiment, parts, seed), range(1, options.seeds + 1)))


def axes_of(tuned):
    """Returns the tuned settings, each with its values."""
    return tuned.get("grid", [tuned])


def combinations(tuned):
    """Returns every combination of the tuned settings' values, as a part of a cell."""
    def part(axis, value):
        return value if isinstance(value, dict) else {"name": str(value), "settings": {axis["setting"]: value}}

    found = []
    for chosen in itertools.product(*([part(axis, value) for value in axis["values"]] for axis in axes_of(tuned))):
        settings = {}
        for one in chosen:
            settings.update(one["settings"])
        found.append({"name": ", ".join(one["name"] for one in chosen), "settings": settings})
    return found


def tune(options, experiment, parts):
    """Returns the best combination of the tuned settings, as a part of the cell. Uses no test samples."""
    tuned = experiment["tuned"]
    tuning = {"name": "tuning", "settings": TUNING | tuned.get("settings", {})}
    sign = 1 if tuned["by"] == "test_accuracy" else -1

    def score(part):
        rounds = run(options, experiment, parts + [tuning, part], 1)
        found = [r.get(tuned["by"]) for r in rounds if r.get("test_accuracy") is not None][-averaged:]
        # The metrics of an evaluated model can be null, if they are no finite numbers.
        return -math.inf if ended_early(rounds) or not found or None in found else sign * statistics.fmean(found)

    tried = combinations(tuned)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        best, part = max(zip(pool.map(score, tried), tried), key=lambda pair: pair[0])
    if best == -math.inf:
        sys.exit(f"{parts[-1]['name']}: the model diverges, or the run ends early, with every tuned value")
    return part


def run_cell(options, experiment, parts):
    """Runs a cell with all seeds, with tuned settings if there are any."""
    chosen = [tune(options, experiment, parts)] if "tuned" in experiment else []
    return {"runs": runs_of(options, experiment, parts + chosen), "chosen": "".join(part["name"] for part in chosen)}


def difference(ours, theirs, scale, digits):
    """Returns the mean difference of two rows' values by seed and its standard error; bold if it is significant."""
    if all(value is None for value in ours) or all(value is None for value in theirs):
        return ""
    if None in ours or None in theirs:
        return "not reached by every seed"
    differences = [scale * (one - other) for one, other in zip(ours, theirs)]
    mean, count = statistics.fmean(differences), len(differences)
    text = f"{mean:+.{digits}f}"
    if count < 2:
        return text
    error = statistics.stdev(differences) / math.sqrt(count)
    limit = STUDENT[min(count - 1, len(STUDENT)) - 1] * error
    return f"**{text}** ± {error:.{digits}f}" if abs(mean) > limit else f"{text} ± {error:.{digits}f}"


def print_differences(experiment, cells):
    """Prints the differences of rows to the rows that they name in "against"; nothing if none does."""
    pairs = [(row["name"], row.get("against", experiment.get("against"))) for row in experiment["rows"]]
    pairs = [(name, other) for name, other in pairs if other and other != name]
    if not pairs:
        return
    print("\nDifferences on the same seeds (mean ± standard error; bold: significant at 5 %):\n")
    metrics = experiment["paired"]
    print_row(["run", "minus"] + [title_of(metric, experiment) for metric in metrics])
    print_row(["---"] * (len(metrics) + 2))
    for name, other in pairs:
        print_row([name, other] + [
            difference(*(values_of(metric, cells[row]["runs"], experiment) for row in (name, other)),
                       column(metric).scale, column(metric).digits) for metric in metrics])


def check_against(experiment):
    """Ends the program if a row that "against" names does not exist."""
    names = [row["name"] for row in experiment["rows"]]
    for owner in [experiment] + experiment["rows"]:
        if owner.get("against", names[0]) not in names:
            sys.exit(f"against: there is no row \"{owner['against']}\"")
        if "against" in owner and not experiment.get("paired"):
            sys.exit('against: the experiment must list the columns to compare in "paired"')


def print_lists(options, experiment):
    """Prints tables with a row for each run and a column for each metric."""
    check_against(experiment)
    columns = experiment["columns"]
    for table in experiment.get("tables", [None]):
        if table:
            print(f"\n{table['name']}:\n")
        print_row(["run"] + [title_of(name, experiment) for name in columns])
        print_row(["---"] * (len(columns) + 1))
        cells = {}
        for row in experiment["rows"]:
            cell = cells[row["name"]] = run_cell(options, experiment, [table, row] if table else [row])
            experiment.setdefault("whole", statistics.fmean(megabytes(r) for r in cell["runs"]))
            print_row([row["name"]] + [text_of(name, cell, experiment) for name in columns])
        print_differences(experiment, cells)


def print_grid(options, experiment):
    """Prints tables with a row and a column for each setting, and one metric in each cell."""
    metric = experiment["cell"]
    for table in experiment["tables"]:
        print(f"\n{table['name']}: {title_of(metric, experiment)}\n")
        print_row([""] + [across["name"] for across in experiment["across"]])
        print_row(["---"] * (len(experiment["across"]) + 1))
        for row in experiment["rows"]:
            print_row([row["name"]] + [
                text_of(metric, run_cell(options, experiment, [table, row, across]), experiment)
                for across in experiment["across"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("experiment")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--out", required=True, help="directory for the runs' outputs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the processors")
    parser.add_argument("--data", action="append", default=[], metavar="NAME=DIRECTORY",
                        help="where a data set is, as for fedge-sim")
    parser.add_argument("--quick", action="store_true", help="three rounds each: does it run at all?")
    options = parser.parse_args()
    experiment = load(options.experiment)
    global averaged
    averaged = experiment.get("averaged", averaged)
    prepare(options, experiment)
    (print_grid if "across" in experiment else print_lists)(options, experiment)


main()
