#!/usr/bin/env python3
"""Measures the short figures of bench/figures.tsv again, and says which are off by more than a third.

check.py [--bin DIR] [--figures FILE]    ends with 1 if a figure is off or no program prints it
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OFF = 4 / 3  # largest ratio allowed in either direction


def read_figures(path):
    figures = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 6 or not re.fullmatch(r"[0-9a-f]{7,40}", columns[2]) or not re.fullmatch(
                r"\d{4}-\d\d-\d\d", columns[3]) or re.compile(columns[5]).groups != 1:
            sys.exit(f"{path}:{number}: is not: what, value, commit, date, program, a pattern with one group")
        figures.append((columns[0], float(columns[1]), columns[2], columns[3], columns[4], columns[5]))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--figures", type=pathlib.Path, default=ROOT / "bench/figures.tsv")
    options = parser.parse_args()
    outputs = {}
    off = 0
    print(f"{'figure':48} {'then':>9} {'now':>9} {'ratio':>6}")
    for what, value, commit, date, command, pattern in read_figures(options.figures):
        if command not in outputs:
            program, *arguments = command.split()
            try:
                ran = subprocess.run([options.bin / program, *arguments], capture_output=True, text=True, check=False)
                outputs[command] = ran.stdout if ran.returncode == 0 else ""
            except OSError:
                outputs[command] = ""
        found = re.search(pattern, outputs[command])
        now = float(found.group(1)) if found else None
        verdict = ""
        if now is None:
            verdict = f"  not printed by {command}"
        elif not 1 / OFF <= now / value <= OFF:
            verdict = f"  off by more than a third since {commit} of {date}"
        off += verdict != ""
        print(f"{what:48} {value:9.2f} {'-' if now is None else format(now, '9.2f'):>9} "
              f"{'-' if now is None else format(now / value, '6.2f'):>6}{verdict}")
    print(f"{off} of them off" if off else "none is off by more than a third")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
