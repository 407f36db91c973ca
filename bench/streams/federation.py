#!/usr/bin/env python3
"""Five daemons that screen live streams at 100 Hz and train on them; one of them is killed and restarted.

    federation.py BIN OUT [SECONDS]
BIN has the programs of Fedge; OUT is created. A player writes each daemon's stream to a FIFO, 100 samples a
second. For SECONDS (default 120) the daemons only screen: processor time and memory of this part are printed.
Then a run of ten rounds is submitted, and daemon 2 is killed (SIGKILL) after round 3 and restarted.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

CLIENTS = 5
ROUNDS = 10
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


class Player(threading.Thread):
    """Writes a recorded stream to a FIFO in real time, in pieces of a tenth of a second."""

    def __init__(self, stream: pathlib.Path, fifo: pathlib.Path):
        super().__init__(daemon=True)
        self.names, *self.lines = stream.read_text(encoding="utf-8").splitlines(keepends=True)
        self.fifo = fifo
        os.mkfifo(fifo)

    def run(self) -> None:
        start = time.monotonic()
        at = 0
        while at < len(self.lines):
            try:
                with open(self.fifo, "w", encoding="utf-8") as out:
                    out.write(self.names)
                    while at < len(self.lines):
                        due = int((time.monotonic() - start) * 100)
                        out.write("".join(self.lines[at:due]))
                        out.flush()
                        at = max(at, due)
                        time.sleep(0.1)
            except BrokenPipeError:
                time.sleep(0.1)


def usage(process: subprocess.Popen) -> tuple[float, float]:
    """Processor seconds and resident MiB."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text(encoding="utf-8").split()[1])
    return (int(fields[11]) + int(fields[12])) / TICKS, pages * os.sysconf("SC_PAGESIZE") / 2**20


def segments(out: pathlib.Path, client: int) -> set[str]:
    place = out / f"client{client}" / "streams" / "road"
    return {path.name for path in place.glob("*.safetensors")}


def await_text(log: pathlib.Path, text: str) -> None:
    while text not in log.read_text(encoding="utf-8"):
        time.sleep(0.05)


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bin_dir, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 120
    out.mkdir(parents=True)

    def fedge(*arguments: str) -> str:
        return subprocess.run([bin_dir / "fedge", *arguments], check=True, capture_output=True, text=True).stdout

    fedge("data", "synthesize", "road", "--vehicles", str(CLIENTS), "--seconds", str(seconds + 300), "--out",
          str(out / "drives"), "--mix", "5")
    coordinator_log = out / "coordinator.log"
    coordinator = subprocess.Popen(
        [bin_dir / "fedge-coordinator", "--data-dir", out / "coordinator", "--listen", "127.0.0.1:0"],
        stdout=open(coordinator_log, "w", encoding="utf-8"), stderr=subprocess.STDOUT)
    await_text(coordinator_log, "coordinator.listening")
    players = [Player(out / "drives" / f"synthetic-vehicle-{i:02}.csv", out / f"sensor{i}")
               for i in range(CLIENTS)]

    def start(i: int) -> subprocess.Popen:
        state = out / f"client{i}"
        command = [bin_dir / "fedge-client", "--state-dir", state, "run", "--stream",
                   f"road={out / f'sensor{i}'}"]
        if not (state / "membership").exists() and not any(state.glob("*")):
            token = fedge("token", "create", "--data-dir", str(out / "coordinator")).strip()
            command += ["--token", token]
        return subprocess.Popen(command, stdout=open(out / f"client{i}.log", "a", encoding="utf-8"),
                                stderr=subprocess.STDOUT)

    daemons = [start(i) for i in range(CLIENTS)]
    for player in players:
        player.start()
    time.sleep(5)  # joining is not part of streaming
    before = [usage(daemon) for daemon in daemons]
    begun = time.monotonic()
    time.sleep(seconds)
    spent = time.monotonic() - begun
    after = [usage(daemon) for daemon in daemons]
    for i in range(CLIENTS):
        share = 100 * (after[i][0] - before[i][0]) / spent
        print(f"daemon {i}: {share:.3f} % of a core, {after[i][1]:.1f} MiB, {len(segments(out, i))} segments")

    fedge("run", "submit", str(SOURCE / "examples/models/event_unet.toml"), "--data-dir",
          str(out / "coordinator"), "--set", f"run.rounds={ROUNDS}", "--set", f"data.partition.clients={CLIENTS}",
          "--set", f"sampling.clients_per_round={CLIENTS}", "--set", "run.evaluate_every=1")
    await_text(coordinator_log, "round.closed round=3 ")
    daemons[2].send_signal(signal.SIGKILL)
    daemons[2].wait()
    kept = segments(out, 2)
    time.sleep(10)
    daemons[2] = start(2)
    results = out / "coordinator" / "runs" / "1"
    await_text(coordinator_log, "run.ended")
    lost = kept - segments(out, 2)
    print(f"daemon 2 was killed with {len(kept)} segments; {len(lost)} of them are lost")
    for path in sorted(results.rglob("metrics.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            evaluation = row.get("evaluation", {})
            print(f"round {row['round']}: {row['clients_completed']} clients, "
                  f"{evaluation.get('samples')} test samples, event F1 {evaluation.get('event_f1')}")
    for daemon in [*daemons, coordinator]:
        daemon.terminate()
        daemon.wait()


if __name__ == "__main__":
    main()
