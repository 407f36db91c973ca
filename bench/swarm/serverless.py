#!/usr/bin/env python3
"""Measures a serverless run with real daemons on loopback: the time of a round, and the loss when clients are killed.

  bench/swarm/serverless.py [--clients 20] [--rounds 10] [--kill 3 --in-round 4] [--warmup] [--data DIRECTORY]

The same run file is executed three times: by fedge-sim with aggregation at the coordinator, by daemons that send their
updates to the coordinator, and by daemons that exchange and aggregate them. --kill N sends SIGKILL to N clients of the
third run while the updates of round --in-round are in transit. --warmup uses chunks of 4 KiB, so that an update has enough
chunks for the warm-up to hide their owner, and prints a second table about the warm-ups. Prints Markdown: for each round,
whether the models' hashes are equal, how many clients aggregated the model, and how many updates it contains. Needs a
built release (BIN names another directory of programs).
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "build", "release", "bin"))


def run_file(path, options, kind):
    with open(path, "w") as file:
        file.write(f'[run]\nname = "serverless"\nrounds = {options.rounds}\nseed = 7\nround_deadline = {options.deadline}\n'
                   f'chunk_size = {4096 if options.warmup else 262144}\n'
                   f'[data]\npartition = {{ kind = "dirichlet", clients = {options.clients}, alpha = 0.5 }}\n'
                   f'[model]\nkind = "mlp"\nhidden = [{options.hidden}]\n'
                   f'[training]\nbatch_size = 32\noptimizer = {{ learning_rate = 0.05 }}\n'
                   f'[sampling]\nclients_per_round = {options.clients}\nmin_available = {options.clients - options.kill}\n')
        if kind != "direct":
            file.write(f'[dissemination]\nkind = "{kind}"\n')
        if kind == "serverless" and options.warmup:
            file.write('[dissemination.warmup]\nscheduler = "greedy_fastest_first"\n')
    return path


def metrics(directory):
    with open(os.path.join(directory, "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "model_hash" in line]


def simulated(work, options):
    out = os.path.join(work, "simulated")
    subprocess.run([os.path.join(BIN, "fedge-sim"), "run", run_file(os.path.join(work, "direct.toml"), options, "direct"),
                    "--out", out], check=True, stdout=subprocess.DEVNULL)
    return metrics(out)


class Daemons:
    def __init__(self, work, options, kind):
        self.work, self.options, self.kind = os.path.join(work, kind), options, kind
        os.mkdir(self.work)
        self.clients, self.events = [], []
        self.changed = threading.Condition()

    def follow(self, process, who):
        def read():
            for line in process.stdout:
                with self.changed:
                    self.events.append((time.monotonic(), who, line))
                    self.changed.notify()
        threading.Thread(target=read, daemon=True).start()

    def run(self):
        data, out = os.path.join(self.work, "coordinator"), os.path.join(self.work, "out")
        read, write = os.pipe()
        coordinator = subprocess.Popen(
            [os.path.join(BIN, "fedge-coordinator"), "--data-dir", data, "--listen", "127.0.0.1:0", "--run",
             run_file(os.path.join(self.work, "run.toml"), self.options, self.kind), "--out", out, "--ready-fd", str(write),
             "--log-level", "info"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[write])
        os.close(write)
        os.fdopen(read).readline()
        self.follow(coordinator, "coordinator")
        token = subprocess.run([os.path.join(BIN, "fedge"), "token", "create", "--data-dir", data, "--uses",
                                str(self.options.clients)], text=True, check=True, capture_output=True).stdout.strip()
        for i in range(self.options.clients):
            state = os.path.join(self.work, f"client-{i}")
            os.mkdir(state, 0o700)
            subprocess.run([os.path.join(BIN, "fedge-client"), "join", token, "--state-dir", state], check=True,
                           stdout=subprocess.DEVNULL)
            data_option = ["--data-directory", self.options.data] if self.options.data else []
            client = subprocess.Popen([os.path.join(BIN, "fedge-client"), "run", "--once", "--state-dir", state,
                                       "--peer-listen", "127.0.0.1:0", "--log-level", "debug", *data_option], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.follow(client, i)
            self.clients.append(client)
        if self.kind == "serverless" and self.options.kill:
            self.kill_some()
        coordinator.wait(timeout=3600)
        for client in self.clients:
            client.kill()
            client.wait()
        return metrics(out)

    def count(self, what):
        return sum(what in line for _, _, line in self.events)

    # Kills clients when a tenth of the round's transfers of updates to clients are complete.
    def kill_some(self):
        begun = self.options.clients * self.options.clients // 10
        with self.changed:
            if not self.changed.wait_for(
                    lambda: self.count(f"update.checked round={self.options.in_round} ") > begun, timeout=600):
                sys.exit("the round never began")
        for client in self.clients[:self.options.kill]:
            client.send_signal(signal.SIGKILL)

    def of_round(self, name, number):
        return [(when, line) for when, _, line in self.events if re.search(rf"{name} .*\bround={number}\b|{name} round={number}\b", line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=64, help="units of the MLP's one hidden layer")
    parser.add_argument("--deadline", type=float, default=20, help="seconds of a round")
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--in-round", type=int, default=4)
    parser.add_argument("--warmup", action="store_true")
    parser.add_argument("--data", default="", help="NAME=DIRECTORY of the data set, for the clients")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        reference = simulated(work, options)
        direct = Daemons(work, options, "direct").run()
        daemons = Daemons(work, options, "serverless")
        rounds = daemons.run()
        print("| round | models alike | made by | reconstructable | participants | lost | seconds | with a coordinator, seconds |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        before = [0.0, 0.0]
        for number, line in enumerate(rounds, 1):
            made = daemons.of_round("model.aggregated", number)
            objects = {re.search(r'object="(\w+)"', text).group(1) for _, text in made}
            figures = dict(re.findall(r"(\w+)=(\d+)", daemons.of_round("round.updates_exchanged", number)[0][1]))
            alike = line["model_hash"] == reference[number - 1]["model_hash"] == direct[number - 1]["model_hash"]
            now = [line["wall_seconds"], direct[number - 1]["wall_seconds"]]
            print(f"| {number} | {'yes' if alike else 'no'} | {len(made)} clients, {len(objects)} model"
                  f"{'s' if len(objects) > 1 else ''} | {figures['reconstructable']} | {figures['participants']} |"
                  f" {figures['lost']} | {now[0] - before[0]:.2f} | {now[1] - before[1]:.2f} |")
            before = now
        if options.warmup:
            names = ["members", "slots", "seconds", "transfers", "owner_transfers", "blended", "sprayed", "not_sprayed", "excluded"]
            print("\n| round | " + " | ".join(names) + " | failed open |\n|" + " --- |" * (len(names) + 2))
            for number in range(1, len(rounds) + 1):
                text = daemons.of_round("round.warmup_ended", number)[0][1]
                figures = dict(re.findall(r"(\w+)=([\d.]+)", text))
                failure = re.search(r'failed_open="([^"]*)"', text)
                print(f"| {number} | " + " | ".join(figures.get(name, "") for name in names) +
                      f" | {failure.group(1) if failure else 'no'} |")
        print(f"\nLast model: {rounds[-1]['model_hash'][:12]}, simulated {reference[-1]['model_hash'][:12]}; "
              f"model.mismatch: {daemons.count('model.mismatch')}; accuracy {rounds[-1]['test_accuracy']:.4f}")


if __name__ == "__main__":
    main()
