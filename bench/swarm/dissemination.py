#!/usr/bin/env python3
"""Measures how long a model takes to reach its clients, all on loopback, each a separate process:

  swarm       a federation whose clients exchange the model: fedge-coordinator and fedge-client, as installed
  direct      the same federation with [dissemination] kind = "direct"
  libtorrent  one seed and as many leeches as clients (Debian: python3-libtorrent), all connected to each other
  super       the same with a super-seeding seed

  bench/swarm/dissemination.py [--clients 15] [--megabytes 256] [--mbit 20] [--only swarm,libtorrent] [--runs 1]

--mbit limits the upload rate of each process, including the coordinator or seed; 0 is no limit. A time begins when the
coordinator starts the round (or the seed may connect) and ends when the last client has the whole model. The lower bound
that the links allow is max(F/u, N F/((N+1) u)). Prints Markdown. Needs a built release (BIN names another directory of
programs).
"""
import argparse
import hashlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "build", "release", "bin"))
HERE = os.path.dirname(os.path.abspath(__file__))


def hidden_for(megabytes):
    """Returns the width h for which the network 784-h-h-10 has about `megabytes` * 2^20 bytes of parameters."""
    h = 1
    while 4 * (h * h + 796 * h + 10) < megabytes << 20:
        h += 1
    return h


class Federation:
    def __init__(self, work, arguments, kind):
        self.work, self.arguments, self.kind = work, arguments, kind
        self.processes = []
        self.begun = None
        self.done = {}
        self.changed = threading.Condition()

    def program(self, name, *options, **more):
        process = subprocess.Popen([os.path.join(BIN, name), *options], text=True, **more)
        self.processes.append(process)
        return process

    def run_file(self):
        hidden = hidden_for(self.arguments.megabytes)
        self.bytes = 4 * (hidden * hidden + 796 * hidden + 10)
        clients = self.arguments.clients
        swarm = '[dissemination]\nkind = "swarm"\n' if self.kind == "swarm" else ""
        path = os.path.join(self.work, "run.toml")
        with open(path, "w") as file:
            file.write(f'[run]\nname = "bench"\nrounds = 1\nseed = 1\nwait_for_clients = {clients}\n'
                       f'round_deadline = 100000\nevaluate_every = 1000000\n'
                       f'[data]\npartition = {{ kind = "iid", clients = {clients}, samples_per_client = 1 }}\n'
                       f'[model]\nkind = "mlp"\nhidden = [{hidden}, {hidden}]\n'
                       f'[sampling]\nclients_per_round = {clients}\n{swarm}')
        return path

    def start(self):
        mbit = self.arguments.mbit
        config = os.path.join(self.work, "coordinator.toml")
        with open(config, "w") as file:
            file.write(f"[limits]\nswarm_upload_mbit = {mbit}\n")
        data = os.path.join(self.work, "coordinator")
        read, write = os.pipe()
        coordinator = self.program("fedge-coordinator", "--config", config, "--data-dir", data, "--listen",
                                   "127.0.0.1:0", "--run", self.run_file(), "--out", os.path.join(self.work, "out"),
                                   "--ready-fd", str(write), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   pass_fds=[write])
        os.close(write)
        os.fdopen(read).readline()
        self.follow(coordinator, self.coordinator_says)
        clients = self.arguments.clients
        token = subprocess.run([os.path.join(BIN, "fedge"), "token", "create", "--data-dir", data, "--uses",
                                str(clients)], text=True, check=True, capture_output=True).stdout.strip()
        for i in range(clients):
            state = os.path.join(self.work, f"client-{i}")
            os.mkdir(state, 0o700)
            subprocess.run([os.path.join(BIN, "fedge-client"), "join", token, "--state-dir", state], check=True,
                           stdout=subprocess.DEVNULL)
            client = self.program("fedge-client", "run", "--state-dir", state, "--peer-listen", "127.0.0.1:0",
                                  "--upload-mbit", str(mbit), "--log-level", "debug", stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            self.follow(client, lambda line, i=i: self.client_says(i, line))

    def follow(self, process, heed):
        def read():
            for line in process.stdout:
                heed(line)
        threading.Thread(target=read, daemon=True).start()

    def coordinator_says(self, line):
        if "round.started" in line:
            with self.changed:
                self.begun = time.monotonic()

    def client_says(self, i, line):
        if "model.fetched" not in line:
            if "peer.dropped" in line:
                print(line, file=sys.stderr)
            return
        figures = {key: float(value) for key, value in re.findall(r"(\w+)=([0-9.]+)", line)}
        with self.changed:
            self.done[i] = (time.monotonic(), figures)
            self.changed.notify()

    def measure(self):
        self.start()
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.done) == self.arguments.clients, timeout=3600):
                sys.exit("the clients have not got the model within an hour")
        times = sorted(when - self.begun for when, _ in self.done.values())
        copies = float(self.arguments.clients)
        if self.kind == "swarm":
            copies = sum(figures["swarm_from_coordinator"] for _, figures in self.done.values()) / self.bytes
        return self.bytes, times, copies

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


class Torrent:
    def __init__(self, work, arguments, kind):
        self.work, self.arguments, self.kind = work, arguments, kind
        self.processes = []

    def make(self):
        hidden = hidden_for(self.arguments.megabytes)
        self.bytes = 4 * (hidden * hidden + 796 * hidden + 10)
        directory = os.path.join(self.work, "seed")
        os.mkdir(directory)
        piece, pieces = 256 << 10, []
        with open(os.path.join(directory, "model"), "wb") as file:
            left = self.bytes
            while left > 0:
                block = os.urandom(min(piece, left))
                pieces.append(hashlib.sha1(block).digest())
                file.write(block)
                left -= len(block)
        hashes = b"".join(pieces)
        info = (b"d6:lengthi%de4:name5:model12:piece lengthi%de6:pieces%d:" % (self.bytes, piece, len(hashes)) + hashes +
                b"e")
        path = os.path.join(self.work, "model.torrent")
        with open(path, "wb") as file:
            file.write(b"d4:info" + info + b"e")
        return path

    def measure(self):
        torrent = self.make()
        ports = free_ports(self.arguments.clients + 1)
        for i, port in enumerate(ports):
            role = "leech" if i else "seed"
            directory = os.path.join(self.work, role if i == 0 else f"leech-{i}")
            os.makedirs(directory, exist_ok=True)
            others = ",".join(str(other) for other in ports if other != port)
            self.processes.append(subprocess.Popen(
                ["/usr/bin/python3", os.path.join(HERE, "torrent_peer.py"), role, torrent, directory, str(port), others,
                 str(self.arguments.mbit), "super" if self.kind == "super" else "plain"],
                text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for process in self.processes:
            if process.stdout.readline() != "ready\n":
                sys.exit("libtorrent: a peer has not started; is python3-libtorrent installed?")
        for process in reversed(self.processes):
            process.stdin.write("go\n")
            process.stdin.flush()
        times = sorted(float(process.stdout.readline().split()[0]) for process in self.processes[1:])
        self.processes[0].stdin.write("end\n")
        self.processes[0].stdin.flush()
        sent = float(self.processes[0].stdout.readline().split()[1])
        return self.bytes, times, sent / self.bytes

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = sorted(one.getsockname()[1] for one in sockets)
    for one in sockets:
        one.close()
    return ports


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--mbit", type=float, default=20)
    parser.add_argument("--only", default="swarm,libtorrent,super")
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    print("| | first, median, last client | bound | last / bound | sent by the source, copies | delivered |")
    print("| --- | --- | --- | --- | --- | --- |")
    for _ in range(arguments.runs):
        for kind in arguments.only.split(","):
            with tempfile.TemporaryDirectory(dir=os.environ.get("WORK")) as work:
                made = (Federation if kind in ("swarm", "direct") else Torrent)(work, arguments, kind)
                try:
                    size, times, copies = made.measure()
                finally:
                    made.end()
            n, rate = arguments.clients, arguments.mbit * 1e6 / 8
            bound = max(size / rate, n * size / ((n + 1) * rate)) if rate else 0
            times_text = ", ".join(f"{t:.1f}" for t in (times[0], times[n // 2], times[-1]))
            print(f"| {kind} | {times_text} s | {f'{bound:.1f} s' if rate else '-'} | "
                  f"{f'{times[-1] / bound:.2f}' if rate else '-'} | {copies:.2f} | "
                  f"{n * size / times[-1] / 1e6:.0f} MB/s |", flush=True)


main()
