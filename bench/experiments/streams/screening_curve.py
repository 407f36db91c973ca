#!/usr/bin/env python3
"""Recall against saved bytes of several rules of screening, over recorded streams.

    screening_curve.py FEDGE BASE.toml STREAM...
FEDGE is the program `fedge`; BASE.toml has the keys that all rules share (fedge data screen --screening).
Prints a Markdown table: events found / events, the share of the streams' bytes that need not be sent, and segments
an hour; where all streams have positions (a column "metres"), also a kilometre.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

RULES = {
    "mixture of 3": "",
    "single Gaussian": "components = 1\nbackground = 0\nmatch = 100\n",
}
OPEN = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.8, 1.6)


def kilometres(stream: str) -> float | None:
    lines = pathlib.Path(stream).read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    if "metres" not in names:
        return None
    first, last = (float(line.split(",")[names.index("metres")]) for line in (lines[1], lines[-1]))
    return (last - first) / 1000


def screen(program: str, rules: str, streams: list[str]) -> tuple[float, float, float, int]:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(rules)
        file.flush()
        command = [program, "data", "screen", *streams, "--screening", file.name, "--format", "json"]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    samples = sum(row["samples"] for row in rows)
    saved = sum(row["bytes_saved"] * row["samples"] for row in rows) / samples
    hours = sum(row["seconds"] for row in rows) / 3600
    found = sum(row["events_found"] for row in rows) / max(sum(row["events"] for row in rows), 1)
    segments = sum(row["segments"] for row in rows)
    return found, saved, segments / hours, segments


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, base, streams = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"), sys.argv[3:]
    lengths = [kilometres(stream) for stream in streams]
    placed = None not in lengths
    print("| rule | value | recall | bytes saved, % | segments an hour |" + placed * " segments a km |")
    print("| --- | ---: | ---: | ---: | ---: |" + placed * " ---: |")

    def row(name: str, value: float, rules: str) -> None:
        found, saved, rate, segments = screen(program, base + rules, streams)
        per_km = f" {segments / sum(lengths):.2f} |" if placed else ""
        print(f"| {name} | {value:g} | {found:.3f} | {100 * saved:.1f} | {rate:.0f} |{per_km}", flush=True)

    for name, rules in RULES.items():
        for value in OPEN:
            row(name, value, f"{rules}open = {value}\nclose = {value / 2}\n")
    for value in THRESHOLDS:
        row("threshold", value, f"threshold = {value}\n")


if __name__ == "__main__":
    main()
