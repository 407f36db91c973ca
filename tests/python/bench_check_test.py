"""Tests bench/check.py with programs whose output the test defines. Also checks that each README.md of bench/ states
the date and the commit of its measurements.

    bench_check_test.py SOURCE_DIRECTORY
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])


def program(directory, name, lines, code=0):
    path = directory / name
    path.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {code}\n")
    path.chmod(0o755)


def check(directory, figures):
    (directory / "figures.tsv").write_text("# a comment\n" + figures)
    return subprocess.run([sys.executable, ROOT / "bench/check.py", "--bin", directory, "--figures",
                           directory / "figures.tsv"], capture_output=True, text=True, check=False)


def figure(what, value, command, pattern, date="2026-11-24"):
    return f"{what}\t{value}\t16b6b94\t{date}\t{command}\t{pattern}\n"


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        program(directory, "speeds", ["fold    10.00 GB/s  130%", "mask     4.00 GB/s   52%"])
        program(directory, "broken", ["fold    10.00 GB/s"], code=3)
        near = check(directory, figure("fold", 13.3, "speeds", r"fold +([0-9.]+) GB/s")
                     + figure("mask", 3.1, "speeds", r"mask +([0-9.]+) GB/s"))
        assert near.returncode == 0, near
        assert "none is off" in near.stdout and "0.75" in near.stdout and "1.29" in near.stdout, near.stdout
        # A figure that is too high, one that is too low, one that is not printed, and a program that fails.
        for figures, words in [
                (figure("fold", 13.4, "speeds", r"fold +([0-9.]+)"), "off by more than a third since 16b6b94 of 2026-11-24"),
                (figure("mask", 2.9, "speeds", r"mask +([0-9.]+)"), "off by more than a third"),
                (figure("gone", 1, "speeds", r"gone +([0-9.]+)"), "not printed by speeds"),
                (figure("fold", 10, "broken", r"fold +([0-9.]+)"), "not printed by broken")]:
            off = check(directory, figures + figure("mask", 4, "speeds", r"mask +([0-9.]+)"))
            assert off.returncode == 1 and words in off.stdout and "1 of them off" in off.stdout, off
        for bad in [figure("fold", 10, "speeds", r"fold"), figure("fold", 10, "speeds", r"(f)old", date="yesterday")]:
            refused = check(directory, bad)
            assert refused.returncode == 1 and "figures.tsv:2" in refused.stderr, refused
    # Reads the real list of figures; every program is missing, so all figures fail.
    real = subprocess.run([sys.executable, ROOT / "bench/check.py", "--bin", "/nonexistent"], capture_output=True,
                          text=True, check=False)
    assert real.returncode == 1 and "FileNotFoundError" not in real.stderr, real.stderr
    for path in sorted(ROOT.glob("bench/**/README.md")):
        text = path.read_text()
        assert re.search(r"\d{4}-\d\d-\d\d", text) and re.search(r"\b[0-9a-f]{7}\b", text), f"{path}: no date or commit"


if __name__ == "__main__":
    main()
