#!/usr/bin/env python3
"""Writes the tables of docs/experiments/tracks.md on load and time.

    bench/tracks/scenarios.py loads [--programs build/release/bin]
    bench/tracks/scenarios.py times [--programs build/release/bin]

loads: trainings in a round of the paper's scenarios, as `fedge tracks resolve` counts them, compared with one
track for each client. times: three rounds of fedge-sim with a ring of disagreements, compared with the same run
without disagreements. Uses only the standard library.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def inbound(clients, against, until=None):
    return {"kind": "inbound", "clients": clients, "against": against, "until": until}


def ring(n, k=1):
    """Returns disagreements in which each of n clients excludes the next k, in a ring."""
    return [inbound([c], [(c + i) % n for i in range(1, k + 1)]) for c in range(n)]


SIX = [([0], [1, 2]), ([1], [3, 4]), ([2], [5]), ([3], [0]), ([4], [2]), ([5], [1])]
# The disagreements of SIX, but some end after round 2 and others after round 4.
ENDING = [inbound([0], [1]), inbound([0], [2], 2), inbound([1], [3], 2), inbound([1], [4], 4), inbound([2], [5], 4),
          inbound([3], [0]), inbound([4], [2], 4), inbound([5], [1])]
# Each scenario: name, number of clients, round, disagreements.
SCENARIOS = [
    ("S1: one inbound", 6, 1, [inbound([0], [1])]),
    ("S2: one of each kind", 6, 1, [
        inbound([0], [1]),
        {"kind": "outbound", "clients": [2], "against": [3]},
        {"kind": "bidirectional", "clients": [4], "against": [5]},
        {"kind": "full", "clients": [1], "against": []}]),
    ("S3: all six differ", 6, 1, [inbound(*each) for each in SIX]),
    ("S4: S1 until round 3, round 3", 6, 3, [inbound([0], [1], 3)]),
    ("S4, round 4", 6, 4, [inbound([0], [1], 3)]),
    ("S6: S3 with ends, round 1", 6, 1, ENDING),
    ("S6, round 3", 6, 3, ENDING),
    ("S6, round 5", 6, 5, ENDING),
    ("S32: ring of 6", 6, 1, ring(6)),
    ("S33: five exclude the sixth", 6, 1, [inbound([c], [5]) for c in range(5)]),
    ("S31: 20 exclude the next 4", 20, 1, ring(20, 4)),
    ("10 exclude the next 2", 10, 1, ring(10, 2)),
    ("15 exclude the next 3", 15, 1, ring(15, 3)),
] + [(f"ring of {n}", n, 1, ring(n)) for n in (5, 10, 20, 50, 100)] + [
    (f"{n} clients, ring of the first {k}", n, 1, ring(k))
    for n, k in ((20, 5), (20, 10), (20, 15), (30, 10), (40, 10), (50, 10))]


def names(clients):
    return "[" + ", ".join(f'"{c}"' for c in clients) + "]"


def disagreement_toml(each):
    """Returns the disagreement as a TOML inline table."""
    text = f'{{ kind = "{each["kind"]}", clients = {names(each["clients"])}'
    if each["against"]:
        text += f', against = {names(each["against"])}'
    if each.get("until"):
        text += f', until_round = {each["until"]}'
    return text + " }"


def exclusions(disagreements, now):
    """Returns, by definition, whom each client excludes, and the clients that have withdrawn."""
    excluded, withdrawn = {}, set()
    for each in disagreements:
        if each.get("until") and now > each["until"]:
            continue
        if each["kind"] == "full":
            withdrawn.update(each["clients"])
        for c in each["clients"]:
            for x in each["against"]:
                if each["kind"] in ("inbound", "bidirectional"):
                    excluded.setdefault(c, set()).add(x)
                if each["kind"] in ("outbound", "bidirectional"):
                    excluded.setdefault(x, set()).add(c)
    return excluded, withdrawn


def load_without_reuse(clients, disagreements, now):
    """Returns the sum of |V \\ F \\ E(c)| over the clients c that take part."""
    excluded, withdrawn = exclusions(disagreements, now)
    present = set(range(clients)) - withdrawn
    return sum(len(present - excluded.get(c, set())) for c in present)


def resolve(options, clients, disagreements, now, strict=False):
    """Returns the number of tracks and the load that `fedge tracks resolve` prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as policy:
        policy.write(f"clients = {clients}\ndisagreement = [\n")
        policy.write("".join("  " + disagreement_toml(each) + ",\n" for each in disagreements) + "]\n")
        policy.flush()
        command = [os.path.join(options.programs, "fedge"), "tracks", "resolve", policy.name, "--round", str(now),
                   "--format", "json"] + (["--strict"] if strict else [])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return len(answer["tracks"]), answer["load"]


def print_row(cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def print_loads(options):
    print_row(["scenario", "clients", "tracks", "trainings a round", "without reuse", "strict"])
    print_row(["---"] * 6)
    for name, clients, now, disagreements in SCENARIOS:
        tracks, load = resolve(options, clients, disagreements, now)
        strict = resolve(options, clients, disagreements, now, strict=True)[1]
        print_row([name, clients, tracks, load, load_without_reuse(clients, disagreements, now), strict])


def simulate(options, n, disagreements, settings):
    """Simulates three rounds; returns wall and processor seconds, and the last round's metrics."""
    assignments = {"run.rounds": 3, "data.partition.clients": n, "sampling.clients_per_round": n, **settings}
    if disagreements:
        assignments["tracks.disagreement"] = "[" + ", ".join(map(disagreement_toml, disagreements)) + "]"
    with tempfile.TemporaryDirectory() as out:
        command = [os.path.join(options.programs, "fedge-sim"), "run", os.path.join(HERE, "tracks.toml"), "--out", out,
                   "--log-level", "error"]
        for key, value in assignments.items():
            command += ["--set", f"{key}={value}"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(done.stderr)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            last = [json.loads(line) for line in file][-1]
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, processor, last


def trainings(last):
    if "tracks" not in last:
        return last["clients_completed"]
    return sum(track["clients_completed"] for track in last["tracks"])


def print_times(options):
    print_row(["clients", "samples each", "trainings a round", "wall, s", "processor, s", "virtual s a round",
               "no disagreement: wall, s", "processor, s", "virtual s a round"])
    print_row(["---"] * 9)
    for n in (5, 10, 20, 50, 100):
        samples = min(1000, 60000 // n)
        settings = {"data.partition.samples_per_client": samples}
        cells = [n, samples]
        for disagreements in (ring(n), []):
            wall, processor, last = simulate(options, n, disagreements, settings)
            if disagreements:
                cells.append(trainings(last))
            cells += [f"{wall:.1f}", f"{processor:.1f}", f"{last['virtual_seconds'] / 3:.2f}"]
        print_row(cells)
    print("\nA ring of 10 among 60 clients, 6 of them a turn:\n")
    print_row(["", "trainings a round", "by so many clients, seeds 1, 2, 3", "virtual s a round"])
    print_row(["---"] * 4)
    settings = {"sampling.clients_per_round": 6}
    for name, disagreements in (("ring of 10", ring(10)), ("no disagreement", [])):
        last = simulate(options, 60, disagreements, settings)[2]
        # After one round, Jain's index is the fraction of clients that took part in it.
        first = [simulate(options, 60, disagreements, {**settings, "run.rounds": 1, "run.seed": seed})[2]
                 for seed in (1, 2, 3)]
        trained = ", ".join(str(round(60 * each["participation_jain"])) for each in first)
        print_row([name, trainings(last), trained, f"{last['virtual_seconds'] / 3:.2f}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table", choices=("loads", "times"))
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    (print_loads if options.table == "loads" else print_times)(options)


main()
