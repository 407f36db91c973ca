"""A coordinator, clients and streams of events as processes and threads, for the tests of the admin API."""

import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(sys.argv[1])
DEVICES = []  # processes of start_device(), which run_case() ends

# A run that waits for clients with data of their own.
RUN = """
[run]
name = "machines"
rounds = 2
[data]
dataset = "csv"
name = "machines"
numeric = ["temperature"]
mean = [70]
deviation = [12]
target = "ok"
classes = ["no", "yes"]
partition = { kind = "own", clients = 3 }
[model]
kind = "softmax"
"""


class Coordinator:
    """fedge-coordinator with HTTPS on a free port, in a directory of its own."""

    def __init__(self, directory, listen="127.0.0.1:0"):
        self.data = pathlib.Path(directory) / "data"
        self.environment = dict(os.environ, XDG_CONFIG_HOME=str(pathlib.Path(directory) / "config"))
        self.environment.pop("FEDGE_DATA_DIR", None)
        self.log_path = pathlib.Path(directory) / "log"
        self.listen = listen
        self.start()

    def start(self, *more):
        address = self.data / "api-address"
        address.unlink(missing_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [BIN / "fedge-coordinator", "--data-dir", self.data, "--listen", self.listen, "--api-listen",
                 "127.0.0.1:0", *more], stdout=subprocess.DEVNULL, stderr=log, env=self.environment)
        until = time.monotonic() + 60
        while not address.exists() or not address.read_text().endswith("\n"):
            assert self.process.poll() is None and time.monotonic() < until, self.log()
            time.sleep(0.02)
        self.host, port = address.read_text().strip().rsplit(":", 1)
        self.port = int(port)

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def fingerprint(self):
        return re.findall(r'api\.listening .*fingerprint="([0-9a-f]{64})"', self.log())[-1]

    def fedge(self, *arguments, code=0, stdin=""):
        done = subprocess.run([BIN / "fedge", *map(str, arguments)], input=stdin, capture_output=True, text=True,
                              env=self.environment, timeout=100, check=False)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def here(self, *arguments, **more):
        return self.fedge(*arguments, "--data-dir", self.data, **more)

    def token(self, name, grants, *more):
        self.here("user", "add", name, "--role", grants)
        return self.here("user", "token", "create", name, *more).strip()

    def connection(self):
        context = ssl.create_default_context(cafile=str(self.data / "api-cert.pem"))
        assert context.minimum_version
        return http.client.HTTPSConnection(self.host, self.port, context=context, timeout=60)

    def call(self, method, path, token=None, body=None, headers=None):
        connection = self.connection()
        fields = dict(headers or {})
        if token is not None:
            fields["Authorization"] = "Bearer " + token
        data = None if body is None else json.dumps(body)
        if data is not None:
            fields.setdefault("Content-Type", "application/json")
        connection.request(method, "/api/v1" + path, data, fields)
        answer = connection.getresponse()
        kind = answer.getheader("Content-Type") or ""
        # A stream of events has no end, and a model is no text.
        text = answer.read().decode() if "json" in kind else ""
        connection.close()
        return answer, json.loads(text) if text else None


def wait_for(until_true, coordinator):
    until = time.monotonic() + 60
    while not until_true():
        assert time.monotonic() < until, coordinator.log()
        time.sleep(0.05)


def start_device(coordinator, name, join="", *more):
    """Starts fedge-client in a state directory of this name; with a token if it has not joined yet."""
    place = coordinator.data.parent
    process = subprocess.Popen(
        [BIN / "fedge-client", "--state-dir", place / name, "run", *(["--token-file", "-"] if join else []), *more],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=open(place / (name + ".log"), "ab"), text=True)
    DEVICES.append(process)
    process.stdin.write(join)
    process.stdin.close()
    return process


class Events(threading.Thread):
    """Reads a stream of events until it ends."""

    def __init__(self, coordinator, token, query="", last=None):
        super().__init__(daemon=True)
        self.link = coordinator.connection()
        fields = {"Authorization": "Bearer " + token} | ({"Last-Event-ID": last} if last else {})
        self.link.request("GET", "/api/v1/events" + query, headers=fields)
        self.answer = self.link.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.seen, self.ended = [], False  # seen: (id, name, data)
        self.start()

    def run(self):
        fields = {}
        while line := self.answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name and value:
                fields[name] = value
            elif not name and "event" in fields:
                self.seen.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
                fields = {}
        self.ended = True

    def names(self):
        return {name for _, name, _ in self.seen}

    def wait(self, holds):
        until = time.monotonic() + 60
        while not holds(self):
            assert time.monotonic() < until, self.seen
            time.sleep(0.02)


def run_case(cases):
    """Runs the case that the command line names, with a coordinator of its own."""
    with tempfile.TemporaryDirectory() as directory:
        coordinator = Coordinator(directory)
        try:
            cases[sys.argv[2]](coordinator)
        finally:
            for process in [coordinator.process, *DEVICES]:
                process.kill()
                process.wait()
