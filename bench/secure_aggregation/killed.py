#!/usr/bin/env python3
"""Secure sums with real daemons over TLS on Fashion-MNIST, with and without a client that is killed: which models come out.

  bench/secure_aggregation/killed.py [--clients 8] [--delays 0,30,60,...] [--only fedavg,fedplt,tracks]

For each strategy a federation of coordinator and client processes trains three rounds without secure sums: with everybody, with
one client killed (SIGKILL) as round 2 begins, and with that one killed as round 3 begins. Then with secure sums: with
everybody, and once for each delay with the client killed so many milliseconds after round 2 has begun, at whatever stage of the
session that is. Every such run must have the models of one of the plain ones, bit for bit: of that without the
client's update, or of that with it. Prints Markdown and exits with 1 if one has neither. Needs a built release (BIN names
another directory of programs).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "build", "release", "bin"))
SECURE = '[secure_aggregation]\nkind = "exact"\nmin_clients = 2\ndropout = 0.1\n'
STRATEGIES = {
    "fedavg": "",
    "fedplt": '[strategy]\nkind = "fedplt"\nplanner = { shares = [0.5, 1.0] }\n',
    # Of the others; the client that is killed is in every track.
    "tracks": '[[tracks.disagreement]]\nkind = "inbound"\nclients = ["0", "1", "2"]\nagainst = ["3"]\n',
}


class Federation:
    """One run; `kill` is called with the last client's process, in a thread of its own, at a round's beginning."""

    def __init__(self, work, options, strategy, secure):
        self.work, self.options = work, options
        self.lines, self.changed = [], threading.Condition()
        self.file = os.path.join(work, "run.toml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write('[run]\nname = "killed"\nrounds = 3\nseed = 7\nround_deadline = 60\n'
                       f'[data]\npartition = {{ kind = "dirichlet", clients = {options.clients}, alpha = 0.5 }}\n'
                       '[model]\nkind = "mlp"\nhidden = [100]\n[training]\nbatch_size = 32\n'
                       f'[sampling]\nclients_per_round = {options.clients}\nmin_available = {options.clients - 1}\n')
            file.write(STRATEGIES[strategy] + (SECURE if secure else ""))

    def begins(self, number):
        return lambda: any("round.started" in line and f"round={number} " in line + " " for line in self.lines)

    def run(self, kill_in_round=None, delay=0.0):
        data, out = os.path.join(self.work, "coordinator"), os.path.join(self.work, "out")
        read, write = os.pipe()
        coordinator = subprocess.Popen(
            [os.path.join(BIN, "fedge-coordinator"), "--data-dir", data, "--listen", "127.0.0.1:0", "--run", self.file, "--out",
             out, "--ready-fd", str(write)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[write])
        os.close(write)
        os.fdopen(read).readline()
        threading.Thread(target=self.follow, args=[coordinator], daemon=True).start()
        token = subprocess.run([os.path.join(BIN, "fedge"), "token", "create", "--data-dir", data, "--uses",
                                str(self.options.clients)], text=True, check=True, capture_output=True).stdout.strip()
        clients = []
        for i in range(self.options.clients):
            state = os.path.join(self.work, f"client-{i}")
            os.mkdir(state, 0o700)
            # One after the other: each has the number of its turn, and the last one is killed.
            subprocess.run([os.path.join(BIN, "fedge-client"), "join", token, "--state-dir", state], check=True,
                           stdout=subprocess.DEVNULL)
            clients.append(subprocess.Popen([os.path.join(BIN, "fedge-client"), "run", "--once", "--state-dir", state],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if kill_in_round:
            with self.changed:
                if not self.changed.wait_for(self.begins(kill_in_round), timeout=300):
                    sys.exit("the round never began:\n" + "".join(self.lines[-5:]))
            threading.Event().wait(delay)
            clients[-1].kill()
        code = coordinator.wait(timeout=600)
        for client in clients:
            client.kill()
            client.wait()
        if code != 0:
            sys.exit("the coordinator failed:\n" + "".join(self.lines[-5:]))
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            rounds = [json.loads(line) for line in file]
        return [tuple([r["model_hash"]] + [t["model_hash"] for t in r.get("tracks", [])]) for r in rounds]

    def follow(self, process):
        for line in process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify()


def models(options, strategy, secure, **how):
    with tempfile.TemporaryDirectory() as work:
        federation = Federation(work, options, strategy, secure)
        rounds = federation.run(**how)
        wrong = [line.strip() for line in federation.lines if "not_aggregated" in line]
    return rounds, wrong


def check(options, strategy):
    everybody, _ = models(options, strategy, False)
    without, _ = models(options, strategy, False, kill_in_round=2)
    delivered, _ = models(options, strategy, False, kill_in_round=3)
    plain = {"everybody's": everybody, "without its update": without, "with its update": delivered}
    print(f"\n{strategy}: last models without secure sums: " +
          ", ".join(f"{name} {rounds[-1][0][:12]}" for name, rounds in plain.items()) + "\n")
    print("| killed, ms into round 2 | last model | models are those |\n| --- | --- | --- |", flush=True)
    good = True
    for delay in [None] + options.delays:
        how = {} if delay is None else {"kill_in_round": 2, "delay": delay / 1000}
        rounds, wrong = models(options, strategy, True, **how)
        found = [name for name, same in plain.items() if same == rounds]
        good = good and bool(found)
        print(f"| {'nobody' if delay is None else f'{delay:.0f}'} | {rounds[-1][0][:12]} | "
              f"{found[0] if found else 'OF NO PLAIN RUN ' + ' '.join(wrong)} |", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--delays", default="0,20,50,100,200,300,500,700,900,1100,1300,1500", help="milliseconds")
    parser.add_argument("--only", default=",".join(STRATEGIES))
    options = parser.parse_args()
    options.delays = [float(delay) for delay in options.delays.split(",")]
    good = [check(options, strategy) for strategy in options.only.split(",")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
