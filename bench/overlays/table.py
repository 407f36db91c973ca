#!/usr/bin/env python3
"""Compares the overlays in all regimes and prints Markdown: docs/experiments/overlays.md.

    bench/overlays/table.py [--program build/release/bin/fedge-lab] [--jobs 2] [--seeds 5] [--rounds 300] [--only churn-300]

Regimes: lookups from the start (cold) and after a warm-up; churn with sessions of 1000, 300 and 100 rounds; all overlays
with the same maintenance budget; and the effect of k, alpha, the leaf set, the successor list and b under churn.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROWS = [
    ("success_percent", "success, %", 2),
    ("correct_owner_percent", "correct owner, %", 2),
    ("first_success_percent", "success in the first 12 rounds, %", 2),
    ("first_latency_ms", "mean latency in the first 12 rounds, ms", 0),
    ("first_messages", "messages per lookup in the first 12 rounds", 1),
    ("startup_rounds", "startup, rounds", 1),
    ("hops_mean", "hops, mean", 2),
    ("hops_p50", "hops, p50", 1),
    ("hops_p95", "hops, p95", 1),
    ("hops_p99", "hops, p99", 1),
    ("latency_p50_ms", "latency, p50, ms", 0),
    ("latency_p95_ms", "latency, p95, ms", 0),
    ("latency_p99_ms", "latency, p99, ms", 0),
    ("timeouts_per_lookup", "timeouts per lookup", 3),
    ("messages_per_lookup", "messages per lookup", 1),
    ("maintenance_messages", "maintenance messages per node and round", 2),
    ("publish_messages", "publishing messages per node and round", 2),
    ("repair_messages", "repair messages per node and round", 2),
    ("all_messages", "all messages per node and round", 2),
    ("maintenance_bytes", "maintenance bytes per node and round", 0),
    ("all_bytes", "all bytes per node and round", 0),
    ("join_messages", "messages per join", 1),
    ("join_bytes", "bytes per join", 0),
    ("state_contacts", "contacts per node", 1),
    ("load_imbalance", "load, most over mean", 2),
    ("values_per_node", "values per node", 2),
    ("values_gini", "values, Gini coefficient", 3),
]
SHORT = ["success_percent", "correct_owner_percent", "hops_mean", "latency_p50_ms", "latency_p99_ms",
         "timeouts_per_lookup", "messages_per_lookup", "maintenance_messages", "maintenance_bytes",
         "join_messages", "state_contacts"]
REGIMES = [
    ("cold", "Nobody leaves, lookups at once", ["--warm-up", "0"]),
    ("warm", "Nobody leaves, after 12 rounds of warm-up", []),
    ("churn-1000", "Churn, sessions of 1000 rounds", ["--session-rounds", "1000"]),
    ("churn-300", "Churn, sessions of 300 rounds", ["--session-rounds", "300"]),
    ("churn-100", "Churn, sessions of 100 rounds", ["--session-rounds", "100"]),
]
# Additional regimes, which are not in the paper and run for at most 30 rounds.
RUSH = [
    ("rush-cold", "All join within 4 rounds, lookups at once", ["--join-rounds", "4", "--warm-up", "0"]),
    ("rush-warm", "All join within 4 rounds, after 12 rounds of warm-up", ["--join-rounds", "4"]),
]
SENSITIVITY = [
    ("kademlia", "k = 20, alpha = 3", []),
    ("kademlia", "k = 8, alpha = 3", ["--k", "8"]),
    ("kademlia", "k = 20, alpha = 1", ["--alpha", "1"]),
    ("kademlia", "k = 8, alpha = 1", ["--k", "8", "--alpha", "1"]),
    ("pastry", "L = 16, b = 4", []),
    ("pastry", "L = 8, b = 4", ["--leaf-set", "8"]),
    ("pastry", "L = 32, b = 4", ["--leaf-set", "32"]),
    ("pastry", "L = 16, b = 2", ["--digit-bits", "2"]),
    ("chord", "8 successors", []),
    ("chord", "4 successors", ["--successors", "4"]),
    ("chord", "16 successors", ["--successors", "16"]),
]


def cell(figure, decimals):
    if figure["mean"] is None:
        return "-"
    text = f"{figure['mean']:.{decimals}f}"
    if figure["half_width"] is not None:
        text += f" ± {figure['half_width']:.{decimals}f}"
    return text


class Bench:
    def __init__(self, options):
        self.options = options
        self.events = 0
        self.thread_seconds = 0

    def run(self, extra, rounds, seeds):
        command = [self.options.program, "overlay", "--format", "json", "--jobs", str(self.options.jobs),
                   "--nodes", str(self.options.nodes), "--rounds", str(rounds), "--seeds", str(seeds)] + extra
        begin = time.monotonic()
        overlays = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["overlays"]
        seconds = time.monotonic() - begin
        for overlay in overlays:
            self.events += overlay["events"]
            self.thread_seconds += overlay["wall_seconds"]
        print(" ".join(command[1:]), f"{seconds:.0f} s", file=sys.stderr, flush=True)
        return overlays, seconds

    def table(self, title, names, overlays, rows, note):
        print(f"### {title}\n\n{note}\n\n| | " + " | ".join(names) + " |")
        print("| --- |" + " --- |" * len(names))
        for key, label, decimals in ROWS:
            if key in rows:
                print(f"| {label} | " + " | ".join(cell(o["figures"][key], decimals) for o in overlays) + " |")
        print(flush=True)

    def regime(self, title, extra, most_rounds=1000000):
        rounds = min(self.options.rounds, most_rounds)
        overlays, seconds = self.run(extra, rounds, self.options.seeds)
        events = sum(o["events"] for o in overlays)
        note = f"{rounds} rounds, {self.options.seeds} seeds; {events / 1e6:.0f} million events in {seconds:.0f} s."
        if any(o["pilots"] for o in overlays):
            note += " Periods times " + ", ".join(f"{o['maintenance_scale']:.3f} ({o['kind']})" for o in overlays) + "."
        self.table(title, [o["kind"] for o in overlays], overlays, [key for key, _, _ in ROWS], note)

    def sensitivity(self):
        rounds, seeds = min(self.options.rounds, 60), min(self.options.seeds, 3)
        for kind in ("kademlia", "pastry", "chord"):
            names, overlays, total = [], [], 0
            for of, name, extra in SENSITIVITY:
                if of != kind:
                    continue
                got, seconds = self.run(["--kind", kind, "--session-rounds", "300"] + extra, rounds, seeds)
                names.append(name)
                overlays += got
                total += seconds
            self.table(f"What sizes change: {kind}", names, overlays, SHORT,
                       f"Sessions of 300 rounds, {rounds} rounds, {seeds} seed{'s' if seeds > 1 else ''}; {total:.0f} s.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fedge-lab")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=10, help="maintenance messages per node and round for all")
    parser.add_argument("--only", default="", help="one of cold, warm, rush-cold, rush-warm, churn-1000, churn-300, churn-100, budget, sensitivity")
    options = parser.parse_args()
    bench = Bench(options)
    begin = time.monotonic()
    print(f"Load of the machine before: {os.getloadavg()[0]:.1f}\n")
    for name, title, extra in REGIMES:
        if options.only in ("", name):
            bench.regime(title, extra)
    print(f"So far {time.monotonic() - begin:.0f} s.\n", flush=True)
    for name, title, extra in RUSH:
        if options.only in ("", name):
            bench.regime(title, extra, 30)
    if options.only in ("", "budget"):
        bench.regime(f"Equal budgets: {options.budget:g} maintenance messages per node and round, sessions of 300 rounds",
                     ["--session-rounds", "300", "--messages-per-round", f"{options.budget:g}"], 100)
    if options.only in ("", "sensitivity"):
        bench.sensitivity()
    print(f"{bench.events / 1e6:.0f} million events in {time.monotonic() - begin:.0f} s on {options.jobs} threads, "
          f"{bench.events / max(bench.thread_seconds, 1e-9) / 1e6:.2f} million a second and thread. "
          f"Load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
