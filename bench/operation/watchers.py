#!/usr/bin/env python3
"""Measures what people and programs that watch a coordinator cost its runs, and how fast its admin API answers.

  bench/operation/watchers.py rounds [--windows 6] [--seconds 12] [--watchers 100] [--rate 50]
  bench/operation/watchers.py latency [--clients 10000] [--seconds 30] [--rate 50]

rounds   A federation of four processes trains without a pause. Windows with and without watchers take turns: streams of
         events over HTTPS, and requests at a fixed rate (runs, clients, progress in turn). The watchers are a process
         of the lowest priority on the same machine. Prints the mean time of a
         round in both, and the ratio with its 95 % confidence interval over pairs of neighbouring windows.
latency  Thousands of idle clients are connected (swarm_clients). Prints percentiles of the time of an answer.

Needs a built release with -DFEDGE_BUILD_BENCH=ON for latency (BIN names another directory of programs).
"""
import argparse
import asyncio
import json
import math
import os
import pathlib
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("BIN", ROOT / "build/release/bin"))
RUN = """
[run]
name = "watched"
rounds = 1000000
wait_for_clients = {clients}
evaluate_every = 1000000
[data]
dataset = "fashion-mnist"
partition = {{ kind = "iid", clients = {clients} }}
[model]
kind = "mlp"
hidden = [256, 256]
[training]
local_epochs = {epochs}
[sampling]
clients_per_round = {clients}
"""


class Site:
    def __init__(self, place):
        self.place, self.data, self.processes = pathlib.Path(place), pathlib.Path(place) / "data", []

    def start(self):
        log = open(self.place / "log", "wb")
        self.coordinator = self.run("fedge-coordinator", "--data-dir", self.data, "--listen", "127.0.0.1:0",
                                    "--api-listen", "127.0.0.1:0", stderr=log)
        address = self.data / "api-address"
        while not address.exists() or not address.read_text().endswith("\n"):
            assert self.coordinator.poll() is None, (self.place / "log").read_text()
            time.sleep(0.05)
        self.host, port = address.read_text().strip().rsplit(":", 1)
        self.port = int(port)
        self.fedge("user", "add", "watcher", "--role", "viewer")
        self.token = self.fedge("user", "token", "create", "watcher").strip()
        self.tls = ssl.create_default_context(cafile=str(self.data / "api-cert.pem"))

    def run(self, program, *arguments, **more):
        more.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen([BIN / program, *map(str, arguments)], stdout=subprocess.DEVNULL, **more)
        self.processes.append(process)
        return process

    def fedge(self, *arguments):
        return subprocess.run([BIN / "fedge", *map(str, arguments), "--data-dir", self.data], capture_output=True,
                              text=True, check=True).stdout

    def submit(self, clients, epochs):
        file = self.place / "run.toml"
        file.write_text(RUN.format(clients=clients, epochs=epochs))
        self.fedge("run", "submit", file)

    def rounds(self):
        return json.loads(self.fedge("run", "show", 1, "--format", "json"))["rounds"]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


async def connect(site):
    return await asyncio.open_connection(site.host, site.port, ssl=site.tls, server_hostname="localhost")


def head(site, target):
    return (f"GET /api/v1{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token}\r\n\r\n").encode()


async def watch(site, counts):
    reader, writer = await connect(site)
    try:
        writer.write(head(site, "/events"))
        while line := await reader.readline():
            counts["events"] += line.startswith(b"event: ")
    finally:
        writer.close()


async def answer(reader):
    length = 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    await reader.readexactly(length)


async def poll(site, rate, targets, times):
    """Sends requests at a fixed rate on four connections, whether the answers are late or not."""
    links = [await connect(site) for _ in range(4)]
    locks = [asyncio.Lock() for _ in links]
    waiting = set()

    async def one(number, due):
        reader, writer = links[number % 4]
        async with locks[number % 4]:
            writer.write(head(site, targets[number % len(targets)]))
            await answer(reader)
        times.append(time.monotonic() - due)

    start, number = time.monotonic(), 0
    try:
        while True:
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            task = asyncio.create_task(one(number, due))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            number += 1
    finally:
        for task in waiting:
            task.cancel()
        for _, writer in links:
            writer.close()


TARGETS = ["/runs", "/clients?limit=100", "/runs/1/progress", "/runs/1", "/runs/1/rounds?after=0&limit=100"]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def tell(times):
    print(f"answers: {len(times)}, median {percentile(times, .5) * 1e3:.1f} ms, 95 % {percentile(times, .95) * 1e3:.1f} ms, "
          f"99 % {percentile(times, .99) * 1e3:.1f} ms, longest {max(times) * 1e3:.1f} ms", flush=True)


def measured(site, seconds):
    """The mean time of a round, over whole rounds of about so many seconds."""
    times = {}
    log = site.place / "log"

    def closed():
        return [line for line in log.read_text().splitlines() if " round.completed " in line]

    def moment(line):
        text = line.split()[0]
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + text[19:-1])

    begin = len(closed())
    time.sleep(seconds)
    lines = closed()[begin:]
    times = [moment(line) for line in lines]
    return (times[-1] - times[0]) / (len(times) - 1)


def rounds(options):
    with tempfile.TemporaryDirectory() as place:
        site = Site(place)
        try:
            site.start()
            for number, join in enumerate(site.fedge("token", "create", "--count", 4).split()):
                (site.place / f"token{number}").write_text(join)
                site.run("fedge-client", "--state-dir", site.place / f"device{number}", "run", "--token-file",
                         site.place / f"token{number}")
            site.submit(4, options.epochs)
            while site.rounds() < 5:
                time.sleep(0.2)
            alone, watched = [], []
            watcher = None
            for window in range(2 * options.windows):
                # Alone and watched in turn.
                if window % 2 == 1:
                    watcher = subprocess.Popen([sys.executable, __file__, "watch", "--place", place, "--watchers",
                                                str(options.watchers), "--rate", str(options.rate)], stdout=subprocess.PIPE,
                                               text=True, env=dict(os.environ, TOKEN=site.token))
                    watcher.stdout.readline()  # all are connected
                (watched if window % 2 == 1 else alone).append(measured(site, options.seconds))
                if watcher is not None:
                    watcher.terminate()
                    print(watcher.communicate(timeout=60)[0].strip(), flush=True)
                    watcher = None
            ratios = [b / a for a, b in zip(alone, watched)]
            spread = 1.96 * statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else float("nan")
            print(f"round alone {statistics.mean(alone) * 1e3:.1f} ms, with {options.watchers} watchers and {options.rate} "
                  f"requests a second {statistics.mean(watched) * 1e3:.1f} ms")
            print(f"ratio {statistics.mean(ratios):.4f} +- {spread:.4f}")
        finally:
            site.stop()


async def watch_all(options):
    # In reality they are other machines: here they get what nobody else wants of the processors.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    site = Site(options.place)
    site.host, port = (site.data / "api-address").read_text().strip().rsplit(":", 1)
    site.port, site.token = int(port), os.environ["TOKEN"]
    site.tls = ssl.create_default_context(cafile=str(site.data / "api-cert.pem"))
    counts, times = {"events": 0}, []
    tasks = [asyncio.create_task(watch(site, counts)) for _ in range(options.watchers)]
    tasks.append(asyncio.create_task(poll(site, options.rate, TARGETS, times)))
    await asyncio.sleep(1)
    print("connected", flush=True)
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_signal_handler(15, done.set)
    await done.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(f"{counts['events']} events, {len(times)} answers, 99 % within {percentile(times, .99) * 1e3:.1f} ms", flush=True)


def latency(options):
    with tempfile.TemporaryDirectory() as place:
        site = Site(place)
        try:
            # They enrol before the coordinator starts.
            (site.data).mkdir(mode=0o700)
            subprocess.run([BIN / "swarm_clients", "enrol", site.data, str(options.clients + 1)], check=True,
                           stdout=subprocess.DEVNULL)
            site.start()
            site.submit(options.clients + 1, 1)
            swarm = subprocess.Popen([BIN / "swarm_clients", "measure", str(site.data), str(site.coordinator.pid),
                                      str(options.clients), "600"], stdout=subprocess.PIPE, text=True)
            site.processes.append(swarm)
            while True:
                online = json.loads(site.fedge("run", "show", 1, "--format", "json"))["waiting"]
                if online and online["ready"] >= options.clients:
                    break
                assert swarm.poll() is None, "swarm_clients ended"
                time.sleep(1)

            async def ask():
                times = []
                task = asyncio.create_task(poll(site, options.rate, TARGETS, times))
                await asyncio.sleep(options.seconds)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return times

            print(f"{options.clients} clients are connected; {options.rate} requests a second for {options.seconds} s")
            tell(asyncio.run(ask()))
        finally:
            site.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rounds", "latency", "watch"])
    parser.add_argument("--windows", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--clients", type=int, default=10000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what == "watch":
        asyncio.run(watch_all(options))
    else:
        {"rounds": rounds, "latency": latency}[options.what](options)


main()
