#!/usr/bin/env python3
"""Compares gossip with FedAvg on the same run file; prints Markdown: docs/experiments/fltorrent.md, "Gossip instead".

    bench/swarm/gossip.py [--programs build/release/bin] [--jobs 2] [--seeds 3] [--gossip fixed,trained]
                          [--set KEY=VALUE ...]

An accuracy is the mean of the last three evaluations; the table has its mean and standard deviation over the seeds.
FedAvg runs with a coordinator and gives the same models, bit for bit, as a serverless run. --check 2 verifies this: it
also runs two serverless rounds with the first seed and compares the models.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_FILE = os.path.join(HERE, "gossip.toml")
PARTITIONS = {
    "Dirichlet(0.1)": [],
    "IID": ['data.partition={kind="iid",clients=50,samples_per_client=240}'],
}
# Title and command-line options of each variant.
GOSSIP = {
    "drawn": ("gossip, neighbours drawn for each round", []),
    "fixed": ("gossip, neighbours that stay", ["--topology", "fixed"]),
    "two": ("gossip, two neighbours, drawn for each round", ["--degree", "2"]),
    "trained": ("gossip as the first, before mixing", ["--evaluate", "trained"]),
}


def run(options, program, *arguments, settings):
    sets = [part for setting in settings for part in ("--set", setting)]
    command = [os.path.join(options.programs, program), *arguments, *sets]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(" ".join(command[1:]), f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout


def fedavg(options, settings):
    """Runs FedAvg and returns its metrics, a dictionary for each round."""
    with tempfile.TemporaryDirectory() as out:
        run(options, "fedge-sim", "run", RUN_FILE, "--threads", str(options.jobs), "--out", out, settings=settings)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def last(rounds, key):
    values = [each[key] for each in rounds if each.get(key) is not None]
    return statistics.fmean(values[-3:])


def gossip(options, extra, settings):
    result = json.loads(run(options, "fedge-lab", "gossip", RUN_FILE, *extra, "--jobs", str(options.jobs), "--format", "json",
                            settings=settings))
    print(json.dumps(result), file=sys.stderr, flush=True)
    return {key: last(result["rounds"], key) for key in result["rounds"][0]}


def cell(values, factor=100, decimals=1):
    text = f"{factor * statistics.fmean(values):.{decimals}f}"
    if len(values) > 1:
        text += f" ± {factor * statistics.stdev(values):.{decimals}f}"
    return text


def compare(options, partition, changes):
    seeds = [f"run.seed={seed}" for seed in range(1, options.seeds + 1)]

    def row(name, runs):
        def column(key, *how):
            return cell([run[key] for run in runs], *how)
        print("| " + " | ".join([partition, name] + [column("accuracy_" + which) for which in ("mean", "least", "most")] +
                                [column("average_accuracy"), column("consensus_distance", 1, 3)]) + " |", flush=True)

    if not options.no_fedavg:
        common = [last(fedavg(options, changes + options.set + [seed]), "test_accuracy") for seed in seeds]
        row("FedAvg", [dict.fromkeys(("accuracy_mean", "accuracy_least", "accuracy_most", "average_accuracy"), each) |
                       {"consensus_distance": 0} for each in common])
    for name, extra in [GOSSIP[variant] for variant in options.gossip.split(",")]:
        row(name, [gossip(options, extra, changes + options.set + [seed]) for seed in seeds])


def check(options):
    settings = options.set + ["run.seed=1", f"run.rounds={options.check}", "run.evaluate_every=1"]
    hashes = [[each["model_hash"] for each in fedavg(options, settings + more)]
              for more in ([], ["dissemination.kind=serverless"])]
    print(f"{options.check} rounds with a coordinator and without: "
          f"{'the same models' if hashes[0] == hashes[1] else 'OTHER MODELS'}, last {hashes[0][-1][:12]}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="build/release/bin", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gossip", default=",".join(GOSSIP), metavar="LIST", help="of " + ", ".join(GOSSIP))
    parser.add_argument("--no-fedavg", action="store_true")
    parser.add_argument("--only", choices=sorted(PARTITIONS), help="one of the partitions")
    parser.add_argument("--check", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.check:
        check(options)
    print("| data | | clients' models: mean, % | least, % | most, % | average of all models, % | consensus distance |")
    print("|" + " --- |" * 7, flush=True)
    for partition, changes in PARTITIONS.items():
        if options.only in (None, partition):
            compare(options, partition, changes)


if __name__ == "__main__":
    main()
