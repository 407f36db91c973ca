#!/usr/bin/env python3
"""Draws the README's pictures from the output of a real run.

    scripts/readme_picture.py [--programs DIR]

Runs `fedge-sim run examples/fashion-mlp.toml` in a terminal of 100 columns and writes
    docs/images/demo.svg        the terminal with the run's output
    docs/images/accuracy.svg    the accuracy figure of the run's report.html
Needs a build (default: build/release/bin) and Debian's dataset-fashion-mnist. The run takes some seconds.
Both pictures follow the reader's light or dark colour scheme and contain neither wall-clock times nor paths.
"""
import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN_FILE = "examples/fashion-mlp.toml"
COMMAND = f"fedge-sim run {RUN_FILE}"
COLUMNS, ROWS = 100, 40

CHARACTER = 8.6  # picture units per column
LINE = 20
MARGIN = 18
TITLE_BAR = 34
STYLE = """
text { font: 14px ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f; white-space: pre; }
.window { fill: #f6f8fa; stroke: #d0d7de; } .bar { stroke: #d0d7de; } .dot { fill: #c3cad3; }
.soft { fill: #59636e; } .prompt { fill: #1a7f37; } .result { font-weight: bold; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .window { fill: #161b22; stroke: #3d444d; } .bar { stroke: #3d444d; } .dot { fill: #4a5563; }
  .soft { fill: #9198a1; } .prompt { fill: #56d364; }
}
"""


def run_in_terminal(programs, directory):
    """Returns what the program writes to a terminal."""
    (directory / "examples").mkdir()
    shutil.copy(ROOT / RUN_FILE, directory / RUN_FILE)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "PATH": f"{programs.resolve()}:{os.environ['PATH']}"}
    with subprocess.Popen(COMMAND.split(), cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=slave,
                          stderr=slave) as process:
        os.close(slave)
        raw = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the last program has closed the terminal
                part = b""
            if not part:
                break
            raw += part
    os.close(master)
    text = raw.decode()
    if process.returncode != 0:
        sys.exit(f"readme_picture.py: {COMMAND} failed with exit code {process.returncode}:\n{text}")
    return text


def screen(text):
    """Returns the lines that remain on the screen, without text that a carriage return and "erase line" remove."""
    lines = [re.sub(r".*\r\x1b\[K", "", line).rstrip("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if any("\x1b" in line or len(line) > COLUMNS for line in lines):
        sys.exit("readme_picture.py: the output has a control sequence or a line that the terminal would wrap")
    return lines


def draw_line(line, top, css):
    stripped = line.lstrip(" ")
    if not stripped:
        return ""
    left = MARGIN + CHARACTER * (len(line) - len(stripped))
    # textLength keeps columns aligned in every monospaced font.
    return (f'<text x="{left:.1f}" y="{top}" textLength="{CHARACTER * len(stripped):.1f}" lengthAdjust="spacingAndGlyphs" '
            f'xml:space="preserve"{css}>{html.escape(stripped)}</text>\n')


def draw_terminal(lines):
    width = round(2 * MARGIN + CHARACTER * max(map(len, lines)))
    height = TITLE_BAR + 2 * MARGIN + LINE * (len(lines) + 1) - 8
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
           f"<title>Output of {COMMAND}</title>\n"
           f"<desc>A terminal with one line per round: accuracy, loss, clients, traffic, virtual time and model hash.</desc>\n"
           f"<style>{STYLE}</style>\n"
           f'<rect class="window" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="9"/>\n'
           f'<path class="bar" d="M1 {TITLE_BAR}.5H{width - 1}"/>\n')
    for dot in range(3):
        out += f'<circle class="dot" cx="{20 + 20 * dot}" cy="{TITLE_BAR / 2:g}" r="6"/>\n'
    top = TITLE_BAR + MARGIN + 12
    out += (f'<text class="prompt" x="{MARGIN}" y="{top}">$</text>\n' + draw_line("  " + COMMAND, top, ""))
    for line in lines:
        top += LINE
        css = ""
        if line.lstrip().startswith("round "):
            css = ' class="soft"'
        elif line.startswith("accuracy "):
            css = ' class="result"'
        out += draw_line(line, top, css)
    return out + "</svg>\n"


def accuracy_figure(report):
    for figure in re.findall(r"<svg .*?</svg>", report, re.S):
        if "<title>Accuracy on the test data</title>" in figure:
            return figure + "\n"
    sys.exit("readme_picture.py: report.html has no accuracy figure")


def pictures(programs):
    """Returns the name and SVG text of each picture."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        lines = screen(run_in_terminal(programs, directory))
        report = (directory / "fedge-out/report.html").read_text()
        return {"demo.svg": draw_terminal(lines), "accuracy.svg": accuracy_figure(report)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin", help="where fedge-sim is")
    options = parser.parse_args()
    directory = ROOT / "docs/images"
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pictures(options.programs).items():
        (directory / name).write_text(text)
        print(f"wrote docs/images/{name}, {len(text.encode()) / 1000:.1f} kB")


if __name__ == "__main__":
    main()
