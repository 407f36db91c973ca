#!/usr/bin/env python3
"""Tests secure sums with real daemons over TLS on Fashion-MNIST when a client is killed: which models result.

  bench/secure_aggregation/killed.py [--clients 8] [--stages keys,shares,...] [--only fedavg,fedplt]

For each strategy, a federation of coordinator and client processes trains three rounds. Three plain runs, without secure
sums, give the reference models: without a kill, with a client killed (SIGKILL) at the start of round 2, and at the start of
round 3. The runs with secure sums follow: one without a kill, and one for each stage of each secure sum of round 2 (one
sum for each track). In these the client is killed as soon as its log, or the coordinator's, shows that stage. Each track
must then have the models of one of the plain runs, bit for bit: without the client's update if it was killed before it
masked one, with the update if it delivered one, otherwise either. Prints Markdown and exits with 1 if a model is wrong.
Needs a built release (BIN names another directory of programs).
"""
import argparse
import json
import os
import re
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
}
WITHOUT, WITH, EVERYBODYS = "without its update", "with its update", "everybody's"
# For each stage: the log line that shows it, and which models are right if the client is killed there. Before the
# client has consented, its update may still be in transit, so both models are right.
STAGES = {
    "keys": ('secure.message_sent message="secure_keys"', [WITHOUT]),
    "shares": ('secure.message_sent message="secure_shares"', [WITHOUT]),
    "agreed": ("secure.keys_exchanged", [WITHOUT, WITH]),
    "masked": ("secure.update_masked", [WITHOUT, WITH]),
    "consent": ('secure.message_sent message="secure_consent"', [WITH]),
    "unmask": ('secure.message_sent message="secure_unmask"', [WITH]),
}


class Federation:
    """One run of real processes; its last client may be killed."""

    def __init__(self, work, options, strategy, secure):
        self.work, self.options = work, options
        self.lines, self.changed = [], threading.Condition()
        self.file = os.path.join(work, "run.toml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write('[run]\nname = "killed"\nrounds = 3\nseed = 7\nround_deadline = 20\n'
                       f'[data]\npartition = {{ kind = "dirichlet", clients = {options.clients}, alpha = 0.5 }}\n'
                       '[model]\nkind = "mlp"\nhidden = [100]\n[training]\nbatch_size = 32\n'
                       f'[sampling]\nclients_per_round = {options.clients}\nmin_available = {options.clients - 1}\n')
            file.write(STRATEGIES[strategy] + (SECURE if secure else ""))

    def says(self, text, number, track):
        def is_it(line):
            of_another = "track=" in line and f"track={track}" not in line.split()
            return text in line and f"round={number}" in line.split() and not of_another

        return lambda: any(is_it(line) for line in self.lines)

    def run(self, kill_in_round=None, at="round.started", track=0):
        data, out = os.path.join(self.work, "coordinator"), os.path.join(self.work, "out")
        read, write = os.pipe()
        coordinator = subprocess.Popen(
            [os.path.join(BIN, "fedge-coordinator"), "--data-dir", data, "--listen", "127.0.0.1:0", "--run", self.file, "--out",
             out, "--ready-fd", str(write)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[write])
        os.close(write)
        os.fdopen(read).readline()
        threading.Thread(target=self.follow, args=[coordinator.stdout], daemon=True).start()
        token = subprocess.run([os.path.join(BIN, "fedge"), "token", "create", "--data-dir", data, "--uses",
                                str(self.options.clients)], text=True, check=True, capture_output=True).stdout.strip()
        clients = []
        for i in range(self.options.clients):
            state = os.path.join(self.work, f"client-{i}")
            os.mkdir(state, 0o700)
            # Clients join one after the other, so that client i gets number i; the last one is killed.
            subprocess.run([os.path.join(BIN, "fedge-client"), "join", token, "--state-dir", state], check=True,
                           stdout=subprocess.DEVNULL)
            clients.append(subprocess.Popen(
                [os.path.join(BIN, "fedge-client"), "--log-level", "debug", "run", "--once", "--state-dir", state], text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
            follower = self.follow if i + 1 == self.options.clients else self.drain
            threading.Thread(target=follower, args=[clients[-1].stderr], daemon=True).start()
        if kill_in_round:
            with self.changed:
                if not self.changed.wait_for(self.says(at, kill_in_round, track), timeout=60):
                    sys.exit(f"nobody said {at} in round {kill_in_round}:\n" + "".join(self.lines[-5:]))
            clients[-1].kill()
        code = coordinator.wait(timeout=600)
        for client in clients:
            client.kill()
            client.wait()
        if code != 0:
            sys.exit("the coordinator failed:\n" + "".join(self.lines[-5:]))
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            rounds = [json.loads(line) for line in file]
        tracks = [[track["model_hash"] for track in r.get("tracks", [])] or [r["model_hash"]] for r in rounds]
        return list(zip(*tracks))  # for each track, its models by round

    @staticmethod
    def drain(log):
        for _ in log:
            pass

    def follow(self, log):
        for line in log:
            with self.changed:
                self.lines.append(line)
                self.changed.notify()


def models(options, strategy, secure, **how):
    """Returns each track's models, and the client's last log message of round 2 about secure sums."""
    with tempfile.TemporaryDirectory() as work:
        federation = Federation(work, options, strategy, secure)
        tracks = federation.run(**how)
        words = [re.search(r'debug secure\.(message_sent message="secure_)?(\w+).* round=2 track=(\d+)', line) for line in federation.lines]
        words = [f"{word.group(2)} (track {word.group(3)})" for word in words if word]
    return tracks, words[-1] if words else ""


def check(options, strategy):
    plain = {EVERYBODYS: models(options, strategy, False)[0], WITHOUT: models(options, strategy, False, kill_in_round=2)[0],
             WITH: models(options, strategy, False, kill_in_round=3)[0]}
    print(f"\n{strategy}, last models without secure sums:\n")
    for name, tracks in plain.items():
        print(f"- {name}: {' '.join(models[-1][:12] for models in tracks)}")
    print("\n| killed in round 2 at | its last word | last models | they are those |\n| --- | --- | --- | --- |", flush=True)

    def try_one(what, allowed, **how):
        tracks, last = models(options, strategy, True, **how)
        found = [next((name for name in names if plain[name][i] == track), "WRONG")
                 for i, (track, names) in enumerate(zip(tracks, allowed))]
        print(f"| {what} | {last} | {' '.join(track[-1][:12] for track in tracks)} | {', '.join(found)} |", flush=True)
        return "WRONG" not in found

    count = len(plain[WITH])
    good = [try_one("nobody", [[EVERYBODYS]] * count)]
    for killed in range(count):
        for stage in options.stages.split(","):
            at, allowed = STAGES[stage]
            good.append(try_one(f"{stage}, track {killed}" if count > 1 else stage,
                                [[WITH]] * killed + [allowed] + [[WITHOUT]] * (count - killed - 1),
                                kill_in_round=2, at=at, track=killed))
    return all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--only", default=",".join(STRATEGIES))
    options = parser.parse_args()
    good = [check(options, strategy) for strategy in options.only.split(",")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
