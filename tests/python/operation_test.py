"""Clients and runs as an operator sees and drives them, with real daemons: python3 operation_test.py BIN CASE.

stolen  a laptop is stolen in the middle of a round: revoked, replaced, and its run goes on, all from another machine
waits   a run that waits for clients for longer than wait_limit_hours is paused
rotation  the audit log is closed again and again, also by a coordinator that is killed meanwhile
live    what clients and runs do at present: events as they happen, the timeline of rounds, after restarts too
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess

from coordinator_process import BIN, RUN, Events, run_case, start_device, wait_for


def stolen(coordinator):
    place = coordinator.data.parent
    (place / "machines.csv").write_text("temperature,ok\n" + "70,yes\n90,no\n" * 40)
    data = ("--data", f"machines={place / 'machines.csv'}")
    # The operator works on another machine: no command below names the data directory.
    boss = coordinator.token("boss", "operator")
    coordinator.fedge("login", f"https://localhost:{coordinator.port}", "--fingerprint", coordinator.fingerprint(),
                      stdin=boss)
    fedge = coordinator.fedge

    def shown(*what):
        return json.loads(fedge(*what, "--format", "json"))

    def rounds():
        return shown("run", "show", 1)["rounds"]

    joins = fedge("token", "create", "--count", 2, "--labels", "ward-3").split()
    desk = start_device(coordinator, "desk", joins[0], *data)
    laptop = start_device(coordinator, "laptop", joins[1], *data)
    wait_for(lambda: [one["online"] for one in shown("client", "ls")] == [True, True], coordinator)
    thief = next(one["client"] for one in shown("client", "ls") if one["token"] == 2)
    fedge("client", "set", thief, "--name", "laptop of ward 3")
    text = RUN.replace("clients = 3", "clients = 2").replace("rounds = 2", "rounds = 100000\nround_deadline = 100000")
    (place / "run.toml").write_text(text + "[sampling]\nmin_available = 2\nclients_per_round = 2\n")
    fedge("run", "submit", place / "run.toml")
    wait_for(lambda: rounds() >= 2, coordinator)

    # The laptop vanishes in the middle of a round, which would wait for it until its deadline, for a day.
    os.kill(laptop.pid, signal.SIGSTOP)
    wait_for(lambda: [one["stage"] for one in shown("run", "progress", 1)["tasks"] if one["client"] == thief]
             == ["training"], coordinator)
    laptop.kill()
    laptop.wait(60)
    wait_for(lambda: [one["stage"] for one in shown("run", "progress", 1)["tasks"] if one["client"] == thief]
             == ["lost"], coordinator)
    table = fedge("client", "ls")
    assert re.search(r"laptop of ward 3 .* \d+ s ago|laptop of ward 3 .* now", table), table
    # The round closes as soon as the laptop is revoked, although it is not connected, and the next one waits.
    fedge("client", "revoke", thief)
    wait_for(lambda: "waits for clients: it needs 2, and 1 is ready" in fedge("run", "progress", 1), coordinator)
    done = rounds()
    # Its replacement takes over the number, the name and the labels, and the run goes on.
    device = start_device(coordinator, "new laptop", fedge("token", "create", "--replaces", thief).strip(), *data)
    wait_for(lambda: rounds() >= done + 2, coordinator)
    now = shown("client", "show", thief)
    assert now["name"] == "laptop of ward 3" and now["labels"] == ["ward-3"] and now["state"] == "enrolled", now
    assert now["accepted"] >= 4 and now["failures"]["lost"] == 1, now
    # The thief's device is refused for ever.
    old = start_device(coordinator, "laptop")
    wait_for(lambda: "another device has taken over this client's number" in (place / "laptop.log").read_text(),
             coordinator)
    # The audit log tells later readers who did all that, and from where.
    audit = [(one["actor"], one["action"]) for one in json.loads(coordinator.here("audit", "ls", "--format", "json"))
             if one["subject"] == f"client {thief}"]
    assert [action for _, action in audit] == ["client.enrolled", "client.described", "client.revoked",
                                               "client.replaced"], audit
    assert audit[2][0] == "user boss" and audit[3][0] == "key " + now["key"], audit
    fedge("run", "stop", 1)
    for one in (desk, device, old):
        one.terminate()
        one.wait(60)
    print("ok")


def waits(coordinator):
    """A run that waits for clients for too long is paused, and continues when an operator resumes it."""
    coordinator.stop()
    settings = coordinator.data.parent / "coordinator.toml"
    settings.write_text("wait_limit_hours = 0.0003\n")  # a second
    coordinator.start("--config", settings)
    run = coordinator.data.parent / "run.toml"
    run.write_text(RUN)
    coordinator.here("run", "submit", run)

    def shown():
        return json.loads(coordinator.here("run", "show", "1", "--format", "json"))

    wait_for(lambda: shown()["state"] == "paused", coordinator)
    assert shown()["reason"] == ("it waited for clients for longer than wait_limit_hours: 0 of 3 were ready"), shown()
    paused = [one for one in json.loads(coordinator.here("audit", "ls", "--format", "json")) if one["action"] == "run.paused"]
    assert len(paused) == 1 and paused[0]["details"]["reason"] == shown()["reason"], paused
    # It waits once more, and is paused once more.
    coordinator.here("run", "resume", "1")
    wait_for(lambda: coordinator.log().count("run.paused") == 2, coordinator)
    assert shown()["state"] == "paused"
    print("ok")


def rotation(coordinator):
    """audit.log is closed at its size; whatever is killed when, the files stay one log."""
    coordinator.stop()
    settings = coordinator.data.parent / "coordinator.toml"
    settings.write_text("[audit]\nrotate_mib = 0.002\n")

    def closed():
        return sorted((path for path in coordinator.data.glob("audit.*.log")), key=lambda path: int(path.name.split(".")[1]))

    def work_until(holds):
        def step():
            coordinator.here("token", "create", "--no-address")
            return holds()
        wait_for(step, coordinator)

    coordinator.start("--config", settings)
    work_until(lambda: len(closed()) >= 3)
    assert [path.name for path in closed()][:3] == ["audit.1.log", "audit.2.log", "audit.3.log"]
    boss = coordinator.token("boss", "admin")
    # Every reader sees all files.
    listed = json.loads(coordinator.here("audit", "ls", "--format", "json"))
    assert [one["seq"] for one in listed] == list(range(1, len(listed) + 1)), listed
    assert sum(one["action"] == "log.rotated" for one in listed) == len(closed())
    pages, after = [], 0
    while True:
        page = coordinator.call("GET", f"/audit?after={after}&limit=7", boss)[1]
        pages += page["items"]
        if page["next"] is None:
            break
        after = page["next"]
    assert [one["seq"] for one in pages][:len(listed)] == [one["seq"] for one in listed]
    assert coordinator.call("GET", f"/audit/verification?expect={listed[0]['hash']}", boss)[0].status == 200
    # Killed at any moment.
    for _ in range(4):
        number = len(closed())
        work_until(lambda: len(closed()) > number)
        coordinator.process.kill()
        coordinator.process.wait()
        assert "OK" in coordinator.here("audit", "verify")
        coordinator.here("token", "create", "--no-address")  # without a coordinator
        coordinator.start("--config", settings)
    coordinator.stop()
    # Killed before the file is renamed, and after that, before the new file is there.
    if shutil.which("strace"):
        for fault in ("signal=KILL", "delay_exit=60000000"):
            number = len(closed())
            before = (coordinator.data / "audit.log").read_bytes()
            process = subprocess.Popen(
                ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject=renameat2:{fault}", BIN / "fedge-coordinator",
                 "--config", settings, "--data-dir", coordinator.data, "--listen", "127.0.0.1:0"],
                stdout=subprocess.DEVNULL, stderr=open(coordinator.log_path, "ab"), start_new_session=True)
            try:
                work = ["token", "create", "--no-address", "--data-dir", coordinator.data]
                wait_for(lambda: subprocess.run([BIN / "fedge", *work], capture_output=True, check=False).returncode < 9
                         and (process.poll() is not None or len(closed()) > number), coordinator)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            # The coordinator may outlive its tracer for a moment.
            with open(coordinator.data / "lock", "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
            assert (len(closed()) > number) == (fault != "signal=KILL")
            if fault == "signal=KILL":
                assert (coordinator.data / "audit.log").read_bytes().startswith(before)
            assert "OK" in coordinator.here("audit", "verify")
            coordinator.here("token", "create", "--no-address")
            assert "OK" in coordinator.here("audit", "verify")
    coordinator.start("--config", settings)
    # A closed file that is gone is named.
    closed()[1].rename(coordinator.data.parent / "away")
    text = coordinator.here("audit", "verify", code=1)
    assert "audit.2.log is missing, but audit.3.log continues it" in text, text
    (coordinator.data.parent / "away").rename(coordinator.data / "audit.2.log")
    assert "OK" in coordinator.here("audit", "verify")
    # A backup has all files, and the restored log continues them.
    place = coordinator.data.parent / "backup"
    coordinator.fedge("backup", "--data-dir", coordinator.data, "--out", place)
    target = coordinator.data.parent / "other"
    coordinator.fedge("restore", place, "--data-dir", target)
    assert len(list(target.glob("audit.*.log"))) == len(list((place / "data").glob("audit.*.log"))) >= 7
    assert "OK" in coordinator.fedge("audit", "verify", "--data-dir", target)
    print("ok")


def live(coordinator):
    coordinator.here("project", "add", "card")
    coordinator.here("project", "add", "onco")
    place = coordinator.data.parent
    (place / "machines.csv").write_text("temperature,ok\n" + "70,yes\n90,no\n" * 40)
    ann = coordinator.token("ann", "card=submitter")
    events = Events(coordinator, ann)
    stranger = Events(coordinator, coordinator.token("bob", "onco=viewer"))
    everywhere = Events(coordinator, coordinator.token("root", "viewer"), "?names=client.connected,run.ended")
    revoked = Events(coordinator, coordinator.token("eve", "card=viewer"))
    number = next(one["token"] for one in json.loads(coordinator.here("user", "token", "ls", "--format", "json"))
                  if one["user"] == "eve")

    run = place / "run.toml"
    run.write_text(RUN.replace("[data]", "wait_for_clients = 2\n[data]", 1))
    submitted = coordinator.call("POST", "/runs", ann, {"document": run.read_text(), "project": "card"})
    assert submitted[0].status == 201, submitted

    def device(name, *more):
        join = coordinator.here("token", "create", "--project", "card", "--name", name).strip()
        return start_device(coordinator, name, join, *more)

    data = ("--data", f"machines={place / 'machines.csv'}")
    # A device without the data declines, and the run waits: both are said, with the reason.
    devices = [device("with data", *data), device("without data")]
    events.wait(lambda one: "client.declined" in one.names())
    events.wait(lambda one: any(data.get("needed") == 2 for _, name, data in one.seen if name == "progress"))
    progress = coordinator.call("GET", "/runs/1/progress", ann)[1]
    assert progress["led"] and progress["ready"] == 1 and progress["tasks"] == [], progress
    assert progress["waiting"]["needed"] == 2 and progress["waiting"]["ready"] == 1, progress
    declined = [one["client"] for one in progress["declined"]]
    text = coordinator.here("run", "progress", "1")
    assert "round 1 waits for clients: it needs 2, and 1 is ready" in text and "declined" in text, text
    shown = json.loads(coordinator.here("client", "show", str(declined[0]), "--format", "json"))
    assert shown["name"] == "without data" and shown["online"], shown
    assert [(one["run"], one["state"]) for one in shown["runs"]] == [(1, "declined")], shown
    assert coordinator.call("GET", "/runs/1", ann)[1]["run"]["waiting"]["needed"] == 2

    # Another process follows the run to its end.
    follower = subprocess.Popen([BIN / "fedge", "run", "log", "1", "--follow", "--data-dir", coordinator.data],
                                stdout=subprocess.PIPE, text=True, env=coordinator.environment)
    devices.append(device("late", *data))
    events.wait(lambda one: "run.ended" in one.names())
    rounds = [data["metrics"]["round"] for _, name, data in events.seen if name == "round" and data["run"] == 1]
    assert rounds == [1, 2], events.seen
    stages = [data["tasks"] for _, name, data in events.seen if name == "progress"]
    assert stages, events.seen
    out = follower.communicate(timeout=60)[0]
    assert out.splitlines()[-1] == "run 1 is finished" and len(out.splitlines()) == 4, out

    # A viewer of another project saw nothing; a viewer who asked for names got only those.
    everywhere.wait(lambda one: "run.ended" in one.names())
    assert everywhere.names() == {"client.connected", "run.ended"}, everywhere.names()
    assert stranger.seen == [], stranger.seen
    # A reader that was cut off goes on where it was, and learns that it cannot.
    middle = [one[0] for one in events.seen if one[1] == "round"][0]
    again = Events(coordinator, ann, "", middle)
    after = events.seen[[one[0] for one in events.seen].index(middle) + 1:]
    again.wait(lambda one: len(one.seen) >= len(after))
    assert again.seen[:len(after)] == after, (again.seen, after)
    lost = Events(coordinator, ann, "", "00000000-7")
    lost.wait(lambda one: "gap" in one.names())

    # A revoked token's stream ends, whether anything happens or not.
    coordinator.here("user", "token", "revoke", number)
    revoked.wait(lambda one: one.ended)
    assert not events.ended
    devices[2].terminate()
    assert devices[2].wait(60) == 0
    late = json.loads(coordinator.here("client", "ls", "--format", "json"))[-1]
    assert late["name"] == "late", late
    seen = lambda: json.loads(coordinator.here("client", "show", str(late["client"]), "--format", "json"))
    events.wait(lambda one: not seen()["online"])
    gone = seen()
    assert gone["accepted"] >= 2 and gone["last_task"]["outcome"] == "accepted" and gone["failures"] == {}, gone
    assert gone["received"] > 0 and gone["sent"] > 0 and gone["last_seen"], gone
    assert gone["software"].startswith("fedge-client ") and gone["platform"] == f"{os.uname().sysname} {os.uname().machine}"
    assert "accepted" in coordinator.here("client", "show", str(late["client"]))
    online = coordinator.here("client", "ls", "--online")
    assert "with data" in online and "late" not in online, online

    assert {"client.enrolled", "client.connected", "client.disconnected"} <= events.names(), events.names()
    # A client that is moved while it is offline: its events and its tasks are the new project's alone.
    coordinator.here("client", "set", late["client"], "--project", "onco")
    before = len(events.seen)
    devices.append(start_device(coordinator, "late", "", *data))
    stranger.wait(lambda one: "client.connected" in one.names())
    assert [data for _, _, data in events.seen[before:] if data.get("client") == late["client"]] == [], events.seen[before:]
    moved = seen()
    assert moved["project"] == "onco" and moved["accepted"] == 0 and moved["last_task"] is None, moved

    # The record of what clients did outlives the coordinator; it is shown also while none runs.
    first = next(one["client"] for one in json.loads(coordinator.here("client", "ls", "--format", "json"))
                 if one["name"] == "with data")

    def kept():
        shown = json.loads(coordinator.here("client", "show", first, "--format", "json"))
        return shown["accepted"], shown["last_task"]

    before = kept()
    assert before[0] >= 2, before
    coordinator.stop()
    events.wait(lambda one: one.ended)
    assert kept() == before
    assert "no coordinator executes this run" in coordinator.here("run", "progress", "1")
    coordinator.start()
    assert kept() == before
    for one in devices:
        one.terminate()
        one.wait(60)
    # A damaged file is set aside; the coordinator starts.
    coordinator.stop()
    (coordinator.data / "fleet.db").write_bytes(b"nonsense" * 1000)
    for rest in ("-wal", "-shm"):
        (coordinator.data / ("fleet.db" + rest)).unlink(missing_ok=True)
    coordinator.start()
    assert "fleet.unreadable" in coordinator.log() and (coordinator.data / "fleet.db.damaged").exists()
    assert kept() == (0, None)
    print("ok")


run_case({"stolen": stolen, "waits": waits, "rotation": rotation, "live": live})
