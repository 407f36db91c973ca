#!/usr/bin/env python3
"""Measures how much memory two client daemons take on one machine, with and without --share-base.

  bench/daemons/shared_base.py MODEL [--rounds 3] [--steps 4] [--types float32,bfloat16,int8]

MODEL is a file of `fedge model import`. A coordinator and two clients over TLS fine-tune adapters of rank 8 on its
queries and values, with recompute and batches of 256 tokens, for each type of the base. Every 20 ms the memory of both
clients is added up (PSS: a page that processes share counts once). Prints Markdown: the largest sum, and the processor
time of both clients. All models must be the same with and without the option. Needs a built release (BIN names another
directory of programs).
"""
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("BIN", str(ROOT / "build/release/bin"))


def fedge(*arguments):
    done = subprocess.run([os.path.join(BIN, arguments[0]), *map(str, arguments[1:])], text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return done.stdout.strip()


def write_run(directory, options, dtype):
    (directory / "texts").mkdir()
    for name in "ab":
        (directory / "texts" / f"{name}.txt").write_text(f"The sea was cold, and {name} went home. " * 400)
    file = directory / "run.toml"
    file.write_text(f"""[run]
name = "shared"
rounds = {options.rounds}
evaluate_every = 1000
chunk_size = 262144
[data]
dataset = "text"
directory = "{directory}/texts"
context = 64
partition = {{kind = "natural", clients = 2}}
[model]
base = "{options.model}"
base_dtype = "{dtype}"
adapter = {{rank = 8, targets = ["q", "v"]}}
[sampling]
clients_per_round = 2
[strategy]
kind = "fedit"
[training]
batch_size = 4
local_steps = {options.steps}
recompute = true
optimizer = {{kind = "adamw", learning_rate = 0.001}}
""", encoding="utf-8")
    return file


def memory(process):
    """Bytes of the process, each shared page divided by the number of processes that share it."""
    try:
        text = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def measure(options, dtype, shares):
    """Returns the largest sum of both clients' memory in bytes, their processor seconds, and the model's hash."""
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        directory = pathlib.Path(name)
        data, out = directory / "coordinator", directory / "out"
        read, write = os.pipe()
        with open(directory / "log", "w", encoding="utf-8") as log:
            coordinator = subprocess.Popen(
                [os.path.join(BIN, "fedge-coordinator"), "--data-dir", data, "--listen", "127.0.0.1:0", "--run",
                 write_run(directory, options, dtype), "--out", out, "--ready-fd", str(write)], pass_fds=[write],
                stdout=log, stderr=log)
            os.close(write)
            with os.fdopen(read) as ready:
                address = ready.readline().split()
            if not address:
                sys.exit((directory / "log").read_text())
            clients = []
            for index in range(2):
                state = directory / f"device{index}"
                fedge("fedge-client", "join", fedge("fedge", "token", "create", "--data-dir", data, "--address",
                                                    address[-1]), "--state-dir", state)
                more = ["--share-base", directory / "bases"] if shares else []
                clients.append(subprocess.Popen(
                    [os.path.join(BIN, "fedge-client"), "run", "--once", "--state-dir", state, "--cache-mb", "4096",
                     "--data", f"text={directory}/texts", *more], stdout=log, stderr=log))
            most = 0
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            while any(client.poll() is None for client in clients):
                # Read twice: a file that a client maps between two readings counts in different shares.
                sums = [sum(map(memory, order)) for order in (clients, clients[::-1])]
                most = max(most, min(sums))
                time.sleep(0.02)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if coordinator.wait(timeout=60) != 0 or any(client.returncode != 0 for client in clients):
                sys.exit((directory / "log").read_text()[-4000:])
        last = (out / "metrics.jsonl").read_text().splitlines()[-1]
        return most, used, json.loads(last)["model_hash"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--types", default="float32,bfloat16,int8")
    parser.add_argument("--directory", help="for the files; not a tmpfs, which would be memory too")
    options = parser.parse_args()
    print("| base | MB, each its own | MB, shared | processor s, own | processor s, shared |")
    print("| --- | --- | --- | --- | --- |")
    for dtype in options.types.split(","):
        own, own_time, own_model = measure(options, dtype, False)
        shared, shared_time, shared_model = measure(options, dtype, True)
        if own_model != shared_model:
            sys.exit(f"{dtype}: the option changes the model")
        print(f"| {dtype} | {own / 1e6:.0f} | {shared / 1e6:.0f} | {own_time:.1f} | {shared_time:.1f} |", flush=True)


if __name__ == "__main__":
    main()
