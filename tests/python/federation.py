"""Runs federations of real processes with the examples' trainer programs, for the tests in this folder."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = "/usr/bin/python3"
SECONDS = 200


def program(bin_directory, name, *arguments, **options):
    return subprocess.Popen([os.path.join(bin_directory, name), *map(str, arguments)], **options)


def output_of(bin_directory, name, *arguments):
    return subprocess.run([os.path.join(bin_directory, name), *map(str, arguments)], check=True,
                          capture_output=True, text=True, timeout=SECONDS).stdout


def trainer(kind, data):
    return f"{PYTHON} {ROOT}/examples/{kind}/train.py {data}"


class Federation:
    """One complete run. `trainers` has, for each client, an example's name, or None for the built-in trainer."""

    def __init__(self, bin_directory, directory, settings, trainers):
        self.out = pathlib.Path(directory) / "results"
        data = pathlib.Path(directory) / "coordinator"
        clients = len(trainers)
        assignments = []
        for setting in [f"sampling.clients_per_round={clients}", *settings]:
            assignments += ["--set", setting]
        run = ROOT / "examples/python/run.toml"
        output_of(bin_directory, "fedge", "data", "partition", run, *assignments, "--out", f"{directory}/parts")
        read, write = os.pipe()
        coordinator = program(bin_directory, "fedge-coordinator", "--data-dir", data, "--listen", "127.0.0.1:0",
                              "--run", run, *assignments, "--out", self.out, "--ready-fd", write, pass_fds=[write],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        os.close(write)
        processes = [coordinator]
        try:
            with os.fdopen(read) as ready:
                if not ready.readline():
                    raise RuntimeError("the coordinator did not start: " + coordinator.communicate()[0])
            self.logs = []
            tokens = output_of(bin_directory, "fedge", "token", "create", "--data-dir", data, "--count", clients).split()
            for number, (token, kind) in enumerate(zip(tokens, trainers)):
                # Clients join in turn, so that client i of the run has part i of the data.
                state = pathlib.Path(directory) / f"device{number}"
                output_of(bin_directory, "fedge-client", "--state-dir", state, "join", token)
                more = ["--trainer", trainer(kind, f"{directory}/parts/client-{number}.safetensors")] if kind else []
                log = open(f"{directory}/device{number}.log", "w+", encoding="utf-8")
                self.logs.append(log)
                processes.append(program(bin_directory, "fedge-client", "--state-dir", state, "run", "--once", *more,
                                         stdout=log, stderr=log))
            self.coordinator_log = coordinator.communicate(timeout=SECONDS)[0]
            codes = [process.wait(timeout=SECONDS) for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
        if any(codes):
            raise RuntimeError(f"exit codes {codes}\n{self.coordinator_log}\n" + "\n".join(map(self.log, range(clients))))
        with open(self.out / "metrics.jsonl", encoding="utf-8") as metrics:
            self.rounds = [json.loads(line) for line in metrics]

    def log(self, client):
        self.logs[client].seek(0)
        return self.logs[client].read()

    def accuracy(self):
        return self.rounds[-1]["test_accuracy"]

    def model(self):
        return self.out / "model.safetensors"
