"""Backups of a coordinator, restored elsewhere, with real daemons: python3 backup_test.py BIN CASE.

rounds   backups in the middle of rounds; the restored coordinator's run comes to the model of the undisturbed run
ended    a backup while runs end: it has no run without its model
damage   a flipped byte, a missing, a surplus, a linked file: each is refused by name, and nothing is written
attacks  paths that leave the directory, newer versions, targets in use, copies by hand
private  what must not happen twice: privacy, sums, tokens, client numbers, noise
full     a disk that fills up while a backup is made or restored leaves nothing behind
killed   a backup and a restore, killed at any write, sync or rename
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys

from coordinator_process import BIN, DEVICES, RUN, Coordinator, run_case, start_device, wait_for

SKIPPED = 77


def works_here(tool):
    """Returns the path of strace, or None where it is missing or may not trace."""
    path = shutil.which(tool)
    return path if path and subprocess.run([path, "-qq", "true"], capture_output=True, check=False).returncode == 0 else None


def csv_of(place, name, first):
    path = place / name
    path.write_text("temperature,ok\n" + "".join(
        f"{70 + (first * 7 + i * 13) % 30},{'yes' if i % 3 else 'no'}\n" for i in range(400)))
    return ("--data", f"machines={path}")


def run_text(rounds, clients=2, more=""):
    return (RUN.replace("clients = 3", f"clients = {clients}").replace("rounds = 2", f"rounds = {rounds}\n{more}")
            + f"[sampling]\nmin_available = {clients}\nclients_per_round = {clients}\n")


def join_devices(coordinator, count=2):
    """Devices whose numbers and data are the same in every federation."""
    devices = []
    for number in range(count):
        data = csv_of(coordinator.data.parent, f"machines{number}.csv", number)
        devices.append(start_device(coordinator, f"device{number}", coordinator.here("token", "create").strip(), *data))
        wait_for(lambda: len(json.loads(coordinator.here("client", "ls", "--online", "--format", "json")))
                 == number + 1, coordinator)
    return devices


def submit(coordinator, text, name="run.toml"):
    path = coordinator.data.parent / name
    path.write_text(text)
    coordinator.here("run", "submit", path)


def shown(coordinator, run=1):
    return json.loads(coordinator.here("run", "show", run, "--format", "json"))


def model_hash(data, run=1):
    with open(data / "runs" / str(run) / "results" / "model.safetensors", "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return head["__metadata__"]["model_hash"]


def backup(coordinator, name, **more):
    place = coordinator.data.parent / name
    out = coordinator.fedge("backup", "--data-dir", coordinator.data, "--out", place, "--format", "json", **more)
    return place, json.loads(out[out.index("{"):out.rindex("}") + 1])


def restore(coordinator, place, name, *more, code=0):
    target = coordinator.data.parent / name / "data"
    target.parent.mkdir(exist_ok=True)
    return target, coordinator.fedge("restore", place, "--data-dir", target, *more, code=code)


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*"))
            if path.is_file() and not path.is_symlink()}


def audit(coordinator):
    return json.loads(coordinator.here("audit", "ls", "--format", "json"))


def rounds(coordinator):
    devices = join_devices(coordinator)
    address = (coordinator.data / "address").read_text().strip()
    submit(coordinator, run_text(600) + "[training]\nlocal_epochs = 20\n")
    wait_for(lambda: shown(coordinator)["rounds"] >= 3, coordinator)
    copies = []
    for number in range(2):  # in the middle of rounds that take milliseconds
        place, summary = backup(coordinator, f"backup{number}")
        assert summary["running"] and summary["notes"] == [], summary
        copies.append(place)
    if strace := works_here("strace"):
        # On a slow disk, rounds end between the copy of the database and the copies of its models.
        before = shown(coordinator)["rounds"]
        slow = coordinator.data.parent / "slow"
        done = subprocess.run([strace, "-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync:delay_enter=40000", BIN / "fedge",
                               "backup", "--data-dir", coordinator.data, "--out", slow], capture_output=True, text=True,
                              timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("copying the databases") == 1, done.stderr  # nothing had vanished
        assert shown(coordinator)["rounds"] >= before + 4, before
        copies.append(slow)
    behind = shown(coordinator)["rounds"]
    assert behind < 600, behind
    assert "OK" in coordinator.fedge("backup", "--verify", copies[0])
    # Nobody else can read it.
    for path in [copies[0], *copies[0].rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    # The coordinator that was copied goes on as if nothing had happened, and its objects do not stay for ever.
    wait_for(lambda: shown(coordinator)["state"] == "finished", coordinator)
    undisturbed = model_hash(coordinator.data)
    assert coordinator.log().count("update.lost") == 0
    coordinator.stop()
    for number, place in enumerate(copies):
        target, _ = restore(coordinator, place, f"other{number}")
        copied = sqlite3.connect(f"file:{place / 'data' / 'runs.db'}?mode=ro&immutable=1", uri=True)
        done = copied.execute("SELECT max(round) FROM rounds").fetchone()[0]
        assert 3 <= done <= behind, done
        # The same devices connect to the restored coordinator, and repeat the rounds since the backup.
        other = Coordinator(target.parent, listen=address)
        try:
            wait_for(lambda: shown(other)["state"] == "finished", other)
            log = other.log()
            assert f"rounds_done={done}" in log, log
            assert "update.lost" not in log and "run.paused" not in log and "repaired" not in log, log
            assert model_hash(other.data) == undisturbed
            assert "OK" in other.here("audit", "verify")
            entry = [one for one in audit(other) if one["action"] == "backup.restored"]
            assert len(entry) == 1 and entry[0]["details"]["nothing_since"] == "no", entry
            other.stop()
        finally:
            other.process.kill()
            other.process.wait()
    for device in devices:
        device.terminate()
        device.wait(60)
    print("ok")


def ended(coordinator):
    join_devices(coordinator)
    for number in range(8):
        submit(coordinator, run_text(3 + number), f"run{number}.toml")
    made = 0
    while True:
        over = len([one for one in json.loads(coordinator.here("run", "ls", "--format", "json"))
                    if one["state"] == "finished"])
        place, _ = backup(coordinator, f"backup{made}")
        copied = sqlite3.connect(f"file:{place / 'data' / 'runs.db'}?mode=ro&immutable=1", uri=True)
        for number, is_over, checkpoint in copied.execute(
                "SELECT number, ended != 0, checkpoints.rounds FROM runs LEFT JOIN checkpoints ON run = number"):
            models = list((place / "data" / "runs" / str(number) / "chunks" / "models").glob("*"))
            results = place / "data" / "runs" / str(number) / "results" / "model.safetensors"
            assert results.exists() if is_over else bool(models) == bool(checkpoint), (number, checkpoint)
        made += 1
        shutil.rmtree(place)
        if over == 8:
            break
    assert made >= 2, made
    # What the coordinator kept for the backups is removed with its run.
    wait_for(lambda: not list((coordinator.data / "runs").glob("*/chunks")), coordinator)
    print("ok")


def damaged(coordinator, place, change, *said, code=1):
    """Changes a copy of the backup, which is then refused in these words, and nothing is written."""
    copy = place.parent / "changed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place, copy, symlinks=True)
    change(copy)
    before = files_of(copy)
    for text in (coordinator.fedge("backup", "--verify", copy, code=code),
                 restore(coordinator, copy, "refused", code=code)[1]):
        for words in said:
            assert words in text, (words, text)
    assert not (place.parent / "refused" / "data").exists()
    assert files_of(copy) == before


def flip(path, at=None):
    data = bytearray(path.read_bytes())
    at = len(data) // 2 if at is None else at
    data[at] ^= 1
    path.write_bytes(bytes(data))


def damage(coordinator):
    join_devices(coordinator)
    submit(coordinator, run_text(1000000))
    wait_for(lambda: shown(coordinator)["rounds"] >= 2, coordinator)
    place, _ = backup(coordinator, "backup")
    data = place / "data"
    names = sorted(path.relative_to(data) for path in data.rglob("*") if path.is_file())
    assert {"node.key", "enrolment.db", "runs.db", "audit.log", "audit.head", "fleet.db", "address"} <= set(map(str, names))
    assert any(str(name).startswith("runs/1/chunks/models/") for name in names), names
    for name in names:
        damaged(coordinator, place, lambda copy, name=name: flip(copy / "data" / name), f"{name}: is damaged: its SHA-256")
        damaged(coordinator, place, lambda copy, name=name: (copy / "data" / name).unlink(), f"{name}: is missing")
    some = names[len(names) // 2]

    def cut(copy):
        with open(copy / "data" / "runs.db", "r+b") as file:
            file.truncate(4096)

    damaged(coordinator, place, cut, "runs.db: is damaged: it has 4096 bytes instead of")
    damaged(coordinator, place, lambda copy: (copy / "data" / "more").write_text(""), "more: is surplus")
    damaged(coordinator, place, lambda copy: (copy / "more").write_text(""), "more: is surplus")
    damaged(coordinator, place, lambda copy: os.mkfifo(copy / "data" / "pipe"), "pipe: is not a regular file")

    def link(copy):
        (copy / "data" / some).rename(copy.parent / "elsewhere")
        (copy / "data" / some).symlink_to(copy.parent / "elsewhere")

    damaged(coordinator, place, link, f"{some}: is a symbolic link")

    def link_folder(copy):
        shutil.rmtree(copy.parent / "folder", ignore_errors=True)
        (copy / "data" / "runs").rename(copy.parent / "folder")
        (copy / "data" / "runs").symlink_to(copy.parent / "folder")

    damaged(coordinator, place, link_folder, "runs: is a symbolic link", f"{some}: is missing" if str(some).startswith("runs")
            else "is missing")
    # Every finding is named, not only the first.
    damaged(coordinator, place, lambda copy: (flip(copy / "data" / "node.key"), (copy / "data" / "address").unlink()),
            "node.key: is damaged", "address: is missing")
    size = (place / "manifest.json").stat().st_size
    for at in range(0, size, max(1, size // 60)):
        damaged(coordinator, place, lambda copy, at=at: flip(copy / "manifest.json", at), "manifest.json is damaged")
    damaged(coordinator, place, lambda copy: (copy / "manifest.json").unlink(), "is not a backup")

    def link_manifest(copy):
        (copy / "manifest.json").rename(copy.parent / "manifest")
        (copy / "manifest.json").symlink_to(copy.parent / "manifest")

    damaged(coordinator, place, link_manifest, "manifest.json is a symbolic link")
    print("ok")


def forged(change):
    """A change of the manifest by somebody who computes its hash anew."""
    def rewrite(copy):
        path = copy / "manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["sha256"]
        change(manifest, copy)
        manifest["sha256"] = hashlib.sha256(json.dumps(manifest, indent=1).encode()).hexdigest()
        path.write_text(json.dumps(manifest, indent=1) + "\n")
    return rewrite


def attacks(coordinator):
    submit(coordinator, RUN)
    place, summary = backup(coordinator, "backup")
    files = json.loads((place / "manifest.json").read_text())["files"]
    # The test computes the hash of a manifest as the program does.
    copy = place.parent / "same"
    shutil.copytree(place, copy)
    forged(lambda manifest, _: None)(copy)
    assert (copy / "manifest.json").read_bytes() == (place / "manifest.json").read_bytes()

    def renamed(path):
        def change(manifest, copy):
            entry = {"path": path, "size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
            manifest["files"] = sorted([*manifest["files"], entry], key=lambda file: file["path"].encode())
        return forged(change)

    for path in ("../evil", "/etc/evil", "runs/../../evil", "runs/1/../../../evil", "runs//1", "./evil", "", "runs/1",
                 "runs/x/evil", "admin.sock", "lock", "runs/1/a\\b", "runs/1/\nb", "runs/1/.", "evil"):
        damaged(coordinator, place, renamed(path), "a backup must not contain the file")
    assert not list(place.parent.rglob("*evil*"))
    damaged(coordinator, place, forged(lambda manifest, _: manifest["files"].append(files[0])), "is not in order, or twice")
    damaged(coordinator, place, forged(lambda manifest, _: manifest["files"].reverse()), "is not in order, or twice")
    damaged(coordinator, place, forged(lambda manifest, _: manifest.update(more=1)), "its hash does not match")
    damaged(coordinator, place, forged(lambda manifest, _: manifest["files"][0].update(size=-1)), "is not a file")
    damaged(coordinator, place, forged(lambda manifest, _: manifest["files"].clear()), "is surplus")
    damaged(coordinator, place, lambda copy: (copy / "manifest.json").write_text("[" * 100000), "it is not JSON")
    damaged(coordinator, place, forged(lambda manifest, _: manifest.update(version="0.1.1")), "newer version (0.1.1)")
    damaged(coordinator, place, forged(lambda manifest, _: manifest.update(version="99.0.0")), "newer version (99.0.0)")
    damaged(coordinator, place, forged(lambda manifest, _: manifest.update(format=2)), "newer version (format 2)")

    # A backup overwrites nothing, and is not made inside of what it copies.
    text = coordinator.fedge("backup", "--data-dir", coordinator.data, "--out", place, code=1)
    assert "exists already; a backup never overwrites anything" in text, text
    (place.parent / "link").symlink_to(place.parent / "nowhere")
    assert "exists already" in coordinator.fedge("backup", "--data-dir", coordinator.data, "--out",
                                                 place.parent / "link", code=1)
    assert "is in the data directory" in coordinator.fedge("backup", "--data-dir", coordinator.data, "--out",
                                                           coordinator.data / "backup", code=1)
    assert "has no coordinator's data" in coordinator.fedge("backup", "--data-dir", place.parent / "same", "--out",
                                                            place.parent / "none", code=1)
    # Targets: in use, not empty, a file, in the backup.
    before = files_of(coordinator.data)
    text = coordinator.fedge("restore", place, "--data-dir", coordinator.data, code=1)
    assert f"{coordinator.data} is in use by another process" in text, text
    assert before.keys() <= files_of(coordinator.data).keys()
    target = place.parent / "full"
    target.mkdir()
    (target / ".hidden").write_text("")
    assert f"{target} is not empty" in coordinator.fedge("restore", place, "--data-dir", target, code=1)
    assert list(target.iterdir()) == [target / ".hidden"]
    (target / ".hidden").unlink()
    assert "is in the backup" in coordinator.fedge("restore", place, "--data-dir", place / "data" / "x", code=1)
    (place.parent / "file").write_text("")
    assert str(place.parent / "file") in coordinator.fedge("restore", place, "--data-dir", place.parent / "file", code=1)
    coordinator.fedge("restore", place, "--data-dir", target)
    # The coordinator went on after this backup: nobody can say that nothing happened.
    text = coordinator.fedge("restore", place, "--data-dir", place.parent / "sure", "--nothing-since", code=1)
    assert "went on afterwards" in text and not (place.parent / "sure").exists(), text

    # A copy by hand does not start, nor does any command change it.
    hand = place.parent / "hand" / "data"
    shutil.copytree(place / "data", hand)
    done = subprocess.run([BIN / "fedge-coordinator", "--data-dir", hand, "--listen", "127.0.0.1:0"], timeout=60,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "use 'fedge restore BACKUP" in done.stderr, done.stderr
    for command in (("token", "create", "--no-address"), ("audit", "ls"), ("client", "ls")):
        assert "use 'fedge restore BACKUP" in coordinator.fedge(*command, "--data-dir", hand, code=1)
    assert "use 'fedge restore BACKUP" in coordinator.fedge("backup", "--data-dir", hand, "--out",
                                                            place.parent / "again", code=1)
    # A missing key beside an existing book stays an error.
    (target / "node.key").unlink()
    done = subprocess.run([BIN / "fedge-coordinator", "--data-dir", target, "--listen", "127.0.0.1:0"], timeout=60,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "node.key is missing" in done.stderr, done.stderr
    # What is not whole is not backed up.
    coordinator.stop()
    for name in ("node.key", "enrolment.db", "runs.db"):
        (coordinator.data / name).rename(place.parent / "away")
        text = coordinator.fedge("backup", "--data-dir", coordinator.data, "--out", place.parent / "part", code=1)
        assert name in text and not (place.parent / "part").exists(), text
        (place.parent / "away").rename(coordinator.data / name)
    results = coordinator.data / "runs" / "1" / "results"
    results.mkdir(parents=True, exist_ok=True)
    os.mkfifo(results / "pipe")
    (results / "secret").symlink_to("/etc/passwd")
    copied, summary = backup(coordinator, "links")
    assert sorted(note.split()[0] for note in summary["notes"]) == [str(results / "pipe"), str(results / "secret")], summary
    assert not list((copied / "data").rglob("secret")) and not list((copied / "data").rglob("pipe"))
    results.rename(place.parent / "results")
    results.symlink_to(place.parent / "results")
    text = coordinator.fedge("backup", "--data-dir", coordinator.data, "--out", place.parent / "part", code=1)
    assert "symbolic links are not followed" in text and not (place.parent / "part").exists(), text
    results.unlink()
    database = sqlite3.connect(coordinator.data / "runs.db")
    database.execute("UPDATE runs SET name = 'another'")
    database.commit()
    database.close()
    text = coordinator.fedge("backup", "--data-dir", coordinator.data, "--out", place.parent / "part", code=1)
    assert "the row of run 1 does not match its checksum" in text and not (place.parent / "part").exists(), text
    assert not [path for path in place.parent.iterdir() if "unfinished" in path.name]
    print("ok")


PRIVATE = """
[differential_privacy]
kind = "central"
epsilon = 1000
delta = 1e-5
noise_multiplier = 1.0
"""


def private(coordinator):
    devices = join_devices(coordinator)
    address = (coordinator.data / "address").read_text().strip()
    used = coordinator.here("token", "create", "--uses", 2).strip()  # open in the backup
    access = coordinator.token("ann", "viewer")
    submit(coordinator, run_text(1000000, more="round_deadline = 1000").replace("[sampling]", PRIVATE + "[sampling]"),
           "private.toml")
    wait_for(lambda: shown(coordinator)["rounds"] >= 2, coordinator)
    place, _ = backup(coordinator, "backup")
    released = shown(coordinator)["rounds"]
    # After the backup: rounds are released, a device joins, a user goes.
    wait_for(lambda: shown(coordinator)["rounds"] >= released + 2, coordinator)
    late = start_device(coordinator, "late", used, *csv_of(coordinator.data.parent, "late.csv", 9))
    wait_for(lambda: len(json.loads(coordinator.here("client", "ls", "--online", "--format", "json"))) == 3, coordinator)
    coordinator.here("user", "remove", "ann")
    noise = (coordinator.data / "noise.key").read_bytes()
    coordinator.process.kill()
    coordinator.process.wait()

    target, text = restore(coordinator, place, "other")
    assert "stopped   run 1" in text and "revoked   1 join tokens, 1 access tokens" in text, text
    other = Coordinator(target.parent, listen=address)
    try:
        # The private run stays stopped, its models are gone, and its noise is never drawn again.
        run = shown(other)
        assert run["state"] == "stopped" and "differential privacy" in run["reason"], run
        assert not (target / "runs" / "1" / "chunks").exists()
        assert "is stopped, not paused" in other.here("run", "resume", 1, code=1)
        submit(other, run_text(2, more="round_deadline = 1000").replace("[sampling]", PRIVATE + "[sampling]"), "next.toml")
        wait_for(lambda: shown(other, 2)["state"] == "finished", other)
        assert (target / "noise.key").read_bytes() != noise
        assert shown(other)["state"] == "stopped" and "noise.key_lost" not in other.log()
        # The used token, the removed user's token and the number given since are not given again.
        newcomer = start_device(other, "newcomer", used, *csv_of(other.data.parent, "late.csv", 9))
        assert newcomer.wait(60) != 0
        assert "revoked" in (other.data.parent / "newcomer.log").read_text()
        assert other.call("GET", "/runs", access)[0].status == 401
        fresh = start_device(other, "fresh", other.here("token", "create").strip(), *csv_of(other.data.parent, "f.csv", 5))
        wait_for(lambda: len(json.loads(other.here("client", "ls", "--format", "json"))) == 3, other)
        numbers = [one["client"] for one in json.loads(other.here("client", "ls", "--format", "json"))]
        assert numbers == [0, 1, 1002], numbers
        actions = [one["action"] for one in audit(other)]
        assert actions.count("backup.restored") == 1 and "run.stopped" in actions, actions
        assert "OK" in other.here("audit", "verify")
        # An older book beside the newer log gives nothing back either.
        other.stop()
        shutil.copy(place / "data" / "enrolment.db", target / "enrolment.db")
        other.start()
        assert other.call("GET", "/runs", access)[0].status == 401
        states = {one["state"] for one in json.loads(other.here("token", "ls", "--format", "json"))}
        assert "open" not in states, states
        for device in (fresh, newcomer):
            device.kill()
            device.wait()
        # Stopped, copied and moved, everything goes on as it was.
        submit(other, run_text(1000000, more="round_deadline = 1000").replace("[sampling]", PRIVATE + "[sampling]"),
               "third.toml")
        wait_for(lambda: shown(other, 3)["rounds"] >= 2, other)
        other.here("token", "create")
        other.stop()
        moved, summary = backup(other, "moved")
        assert not summary["running"], summary
        third, text = restore(other, moved, "third", "--nothing-since")
        assert "stopped" not in text and "revoked" not in text, text
        assert (third / "noise.key").read_bytes() == (target / "noise.key").read_bytes()
        last = Coordinator(third.parent, listen=address)
        DEVICES.append(last.process)
        done = shown(last, 3)["rounds"]
        wait_for(lambda: shown(last, 3)["rounds"] >= done + 2, last)
        assert "open" in {one["state"] for one in json.loads(last.here("token", "ls", "--format", "json"))}
        last.stop()
    finally:
        other.process.kill()
        other.process.wait()
    for device in (*devices, late):
        device.kill()
    print("ok")


def on_small_disk(directory, size, *command):
    """Runs the command with a disk of this size at the directory, and returns it with what is there afterwards."""
    directory.mkdir(exist_ok=True)
    line = (f'mount -t tmpfs -o size={size},mode=0700 none "$0" || exit {SKIPPED}; "$@"; code=$?; '
            'echo "left: $(ls -A "$0" | tr "\\n" " ")"; exit $code')
    return subprocess.run(["unshare", "-m", "sh", "-c", line, directory, *map(str, command)], capture_output=True,
                          text=True, timeout=100, check=False)


def full(coordinator):
    place, summary = backup(coordinator, "backup")
    disk = place.parent / "disk"
    probe = on_small_disk(disk, "1m", "true")
    if probe.returncode != 0:
        print("skipped: no permission to mount a file system (package util-linux)")
        sys.exit(SKIPPED)
    assert summary["bytes"] > 100000, summary
    sizes = [f"{kib}k" for kib in range(8, summary["bytes"] // 1024 + 8, 24)]
    for size in sizes:
        done = on_small_disk(disk, size, BIN / "fedge", "backup", "--data-dir", coordinator.data, "--out", disk / "full")
        assert done.returncode == 1 and "left: \n" in done.stdout, (size, done)
        done = on_small_disk(disk, size, BIN / "fedge", "restore", place, "--data-dir", disk / "data")
        assert done.returncode == 1 and "left: \n" in done.stdout, (size, done)
    done = on_small_disk(disk, "16m", BIN / "fedge", "backup", "--data-dir", coordinator.data, "--out", disk / "full")
    assert done.returncode == 0 and "left: full" in done.stdout, done
    done = on_small_disk(disk, "16m", BIN / "fedge", "restore", place, "--data-dir", disk)  # a mount point
    assert done.returncode == 0 and "node.key" in done.stdout and "restore.unfinished" not in done.stdout, done
    print("ok")


def killed(coordinator):
    place, _ = backup(coordinator, "backup")
    strace = works_here("strace")
    if strace is None:
        print("skipped: strace does not work here (package strace)")
        sys.exit(SKIPPED)
    out, target = place.parent / "new", place.parent / "restored"
    kills = [0, 0]
    for call, steps in (("write", (1, 5, 9)), ("pwrite64", (1, 9, 30)), ("fsync", (1, 4, 12, 24)),
                        ("unlink,unlinkat", (1, 2)), ("rename,renameat2", (1, 2, 3))):
        for when in steps:
            inject = [strace, "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={when}"]
            for place_of, command in ((0, ["backup", "--data-dir", coordinator.data, "--out", out]),
                                      (1, ["restore", place, "--data-dir", target])):
                shutil.rmtree(out, ignore_errors=True)
                shutil.rmtree(target, ignore_errors=True)
                done = subprocess.run([*inject, BIN / "fedge", *command], capture_output=True, timeout=100, check=False)
                kills[place_of] += done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
                if place_of == 0 and out.exists():
                    assert "OK" in coordinator.fedge("backup", "--verify", out)
                if place_of == 1 and target.exists() and done.returncode != 0 and any(target.iterdir()):
                    # Either whole, or no coordinator starts with it.
                    whole = not (target / "restore.unfinished").exists() and (target / "node.key").exists()
                    if not whole and len(list(target.iterdir())) > 2:
                        assert "use 'fedge restore" in coordinator.fedge("client", "ls", "--data-dir", target, code=1)
                    if whole:
                        assert "OK" in coordinator.fedge("audit", "verify", "--data-dir", target)
    assert kills[0] >= 8 and kills[1] >= 6, kills
    # A killed backup does not keep the next one from being made.
    backup(coordinator, "last")
    print("ok")


if __name__ == "__main__":
    run_case({"rounds": rounds, "ended": ended, "damage": damage, "attacks": attacks, "private": private, "full": full,
              "killed": killed})
