#!/usr/bin/env python3
"""Measures how much time overlapping rounds (ParaBlock) save between a real coordinator and a real client.

  bench/daemons/overlap.py [--ratios 0.25,0.5,1,2] [--rounds 12] [--steps 60]

Two processes train a transformer of 6 equal blocks over TLS. The link between them is a relay with one token bucket
for both directions. Its rate makes communication take RATIO times as long as training. A first run without a limit
measures the time of training T_c, and a run of block_coordinate at each rate measures T_c + C. A run of parablock is
compared with the formula, max(T_c, C) a round. Prints Markdown. Needs a built release (BIN names another directory of
programs).
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("BIN", str(ROOT / "build/release/bin"))
LAYERS, WIDTH = 6, 96
BLOCK = 12 * WIDTH * WIDTH + 13 * WIDTH  # parameters
PIECE = 8192                             # bytes that the relay passes on at a time
TEXT = "The quick brown fox jumps over the lazy dog, and nobody asks why. "


class Link:
    """Relays connections to an address, at most `rate` bytes a second in both directions together; None: no limit."""

    def __init__(self, target, rate):
        self.target, self.rate = target, rate
        self.free, self.turn, self.passed = 0.0, threading.Lock(), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            host, port = self.target.rsplit(":", 1)
            far = socket.create_connection((host, int(port)))
            for source, sink in ((near, far), (far, near)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(PIECE):
                self.wait_for(len(data))
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def wait_for(self, count):
        with self.turn:
            self.passed += count
            if self.rate is None:
                return
            begin = max(time.monotonic(), self.free)
            self.free = begin + count / self.rate
        time.sleep(max(0.0, self.free - time.monotonic()))


def run_file(directory, options, strategy):
    (directory / "texts").mkdir()
    (directory / "texts/fox.txt").write_text(TEXT * 2000, encoding="ascii")
    file = directory / "run.toml"
    file.write_text(f"""[run]
name = "overlap"
rounds = {options.rounds}
seed = 3
chunk_size = 4096
[data]
dataset = "text"
directory = "{directory}/texts"
context = 64
test_windows = 1
[data.partition]
kind = "iid"
clients = 1
[model]
kind = "transformer"
layers = {LAYERS}
width = {WIDTH}
heads = 4
[training]
local_steps = {options.steps}
batch_size = 8
[training.optimizer]
kind = "adamw"
learning_rate = 0.001
[sampling]
clients_per_round = 1
[strategy]
kind = "{strategy}"
planner = {{ schedule = "cyclic", ends = "frozen" }}
""", encoding="utf-8")
    return file


def program(name, *arguments, **how):
    return subprocess.Popen([os.path.join(BIN, name), *map(str, arguments)], text=True, **how)


def measure(options, strategy, rate):
    """Returns the seconds and the bytes of a round, means over all after the first, and the models' hashes."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        data, out, state = directory / "coordinator", directory / "out", directory / "device"
        read, write = os.pipe()
        with open(directory / "log", "w", encoding="utf-8") as log:
            coordinator = program("fedge-coordinator", "--data-dir", data, "--listen", "127.0.0.1:0", "--run",
                                  run_file(directory, options, strategy), "--out", out, "--ready-fd", write,
                                  pass_fds=[write], stdout=log, stderr=log)
            os.close(write)
            with os.fdopen(read) as ready:
                address = ready.readline().split()
            if not address:
                sys.exit((directory / "log").read_text())
            link = Link(address[-1], rate)
            token = subprocess.run([os.path.join(BIN, "fedge"), "token", "create", "--data-dir", str(data), "--address",
                                    link.address], text=True, check=True, capture_output=True).stdout.strip()
            subprocess.run([os.path.join(BIN, "fedge-client"), "join", token, "--state-dir", str(state)], check=True,
                           stdout=log, stderr=log)
            client = program("fedge-client", "run", "--once", "--state-dir", state, "--data", f"text={directory}/texts",
                             stdout=log, stderr=log)
            code = coordinator.wait(timeout=options.timeout)
            client.wait(timeout=60)
        link.listener.close()
        if code != 0:
            sys.exit((directory / "log").read_text()[-4000:])
        rounds = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        each = (rounds[-1]["wall_seconds"] - rounds[0]["wall_seconds"]) / (len(rounds) - 1)
        moved = sum(r["bytes_up"] + r["bytes_down"] for r in rounds[1:]) / (len(rounds) - 1)
        return each, moved, [r["model_hash"] for r in rounds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratios", default="0.25,0.5,1,2")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    training, moved, models = measure(options, "block_coordinate", None)
    print(f"Training takes {training:.2f} s a round. A block has {4 * BLOCK / 1e3:.0f} kB, and a round moves "
          f"{moved / 1e3:.0f} kB.\n")
    print("| C / T_c | block_coordinate, s a round | parablock, s a round | formula, s | off by | faster |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for ratio in map(float, options.ratios.split(",")):
        rate = moved / (ratio * training)
        waits, _, same = measure(options, "block_coordinate", rate)
        overlaps, _, also = measure(options, "parablock", rate)
        if not models == same == also:
            sys.exit("the models of the runs differ")
        communication = waits - training
        formula = max(training, communication)
        print(f"| {communication / training:.2f} | {waits:.2f} | {overlaps:.2f} | {formula:.2f} | "
              f"{100 * (overlaps / formula - 1):+.1f} % | {waits / overlaps:.2f} |", flush=True)


if __name__ == "__main__":
    main()
