#!/usr/bin/env python3
"""Runs attacks on a directory with and without protection and prints Markdown: docs/experiments/hostile-nodes.md.

    bench/overlays/attacks.py [--program build/release/bin/fedge-lab] [--jobs 2] [--seeds 20] [--only crowd]
"""
import argparse
import json
import subprocess
import sys
import time

LABELS = {"success_percent": "success, %", "stale_percent": "outdated record accepted, %",
          "forged_percent": "forged record accepted, %",
          "kept_percent": "victims with an honest node near every key, %",
          "honest_contacts_percent": "honest contacts of victims, %",
          "amplification": "bytes at the victim per byte sent", "rubbish_kb": "junk data stored per honest node, KB",
          "latency_ms": "mean latency of successful lookups, ms", "messages": "messages per lookup",
          "traffic_kb": "KB sent per honest node and round"}
DECIMALS = {"amplification": 2, "latency_ms": 0, "traffic_kb": 2}
BY_ATTACK = {
    "crowd": ["none", "opendht", "opendht,ids", "opendht,ids,paths", "all"],
    "eclipse": ["none", "stable", "ids,stable", "ids,stable,bootstraps", "ids,stable,saved", "opendht", "opendht,ids", "all"],
    "poison": ["none", "stable", "stable,signatures", "stable,signatures,all-holders", "opendht", "all"],
    "reflect": ["none", "stable,tokens", "opendht", "all"],
}
SHARES = [0, 0.1, 0.2, 0.3]
GROUND = [("4 groups", 4, 8), ("16 groups", 16, 8), ("16 groups, 20 holders", 16, 20), ("64 groups, 20 holders", 64, 20)]


def cell(figure, key):
    if figure["mean"] is None:
        return "-"
    decimals = DECIMALS.get(key, 1)
    text = f"{figure['mean']:.{decimals}f}"
    if figure["half_width"] is not None:
        text += f" ± {figure['half_width']:.{decimals}f}"
    return text


class Bench:
    def __init__(self, options):
        self.options = options

    def run(self, attack, protections, *extra):
        command = [self.options.program, "attack", attack, "--format", "json", "--jobs", str(self.options.jobs),
                   "--seeds", str(self.options.seeds), *extra]
        for protection in protections:
            command += ["--protect", protection]
        begin = time.monotonic()
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(" ".join(command[1:]), f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        return [row["figures"] for row in json.loads(output)["protections"]]

    def by_protection(self, attack):
        names = BY_ATTACK[attack]
        rows = self.run(attack, names)
        keys = [key for key in LABELS if any(row[key]["mean"] is not None for row in rows)]
        print(f"### {attack}: 20 % hostile\n\n| protections | " + " | ".join(LABELS[key] for key in keys) + " |")
        print("| --- |" + " --- |" * len(keys))
        for name, row in zip(names, rows):
            print(f"| {name.replace(',', ', ')} | " + " | ".join(cell(row[key], key) for key in keys) + " |")
        print(flush=True)

    def by_share(self):
        names = ["none", "opendht", "opendht,ids", "all"]
        print("### By the share of hostile nodes\n\n| | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |")
        print("| --- |" + " --- |" * len(SHARES))
        for attack, keys in (("crowd", ["success_percent"]), ("eclipse", ["success_percent", "kept_percent"])):
            columns = [self.run(attack, names, "--hostile", str(share)) for share in SHARES]
            for key in keys:
                for i, name in enumerate(names):
                    print(f"| {attack}: {LABELS[key]}; {name.replace(',', ', ')} | " +
                          " | ".join(cell(column[i][key], key) for column in columns) + " |")
        print(flush=True)

    def ground(self):
        names = ["opendht,ids", "all"]
        print("### Crowding with keys that were made for it: 16 bits of 64\n\n| | " +
              " | ".join(label for label, _, _ in GROUND) + " |")
        print("| --- |" + " --- |" * len(GROUND))
        columns = [self.run("crowd", names, "--ground-bits", "16", "--groups", str(groups), "--replication", str(holders))
                   for _, groups, holders in GROUND]
        for i, name in enumerate(names):
            print(f"| success, %; {name.replace(',', ', ')} | " +
                  " | ".join(cell(column[i]["success_percent"], "success_percent") for column in columns) + " |")
        print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fedge-lab")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="crowd, eclipse, poison, reflect, share or ground")
    options = parser.parse_args()
    bench = Bench(options)
    begin = time.monotonic()
    for attack in BY_ATTACK:
        if options.only in ("", attack):
            bench.by_protection(attack)
    if options.only in ("", "share"):
        bench.by_share()
    if options.only in ("", "ground"):
        bench.ground()
    print(f"{time.monotonic() - begin:.0f} s on {options.jobs} threads.")


if __name__ == "__main__":
    main()
