"""The coordinator's key and addresses change, with real daemons: python3 key_test.py BIN CASE.

rotation  a key is announced and replaced in the middle of a run, and the former one is worthless to a thief
unaware   a device that was away: the rotation waits for it, and after a forced one its owner moves it
moved     devices follow the coordinator to a new address by themselves
move      what fedge-client move refuses, and leaves unchanged
directory a device that only the directory tells where the coordinator is, after both have changed
restored  a backup from before the rotation
killed    a coordinator that is killed while it replaces its key
"""

import base64
import json
import shutil
import socket
import subprocess
import sys

from backup_test import backup, join_devices, model_hash, restore, run_text, shown, submit, works_here
from coordinator_process import BIN, DEVICES, Coordinator, run_case, start_device, wait_for


ROUNDS = 500


def key_of(coordinator):
    return json.loads(coordinator.here("key", "show", "--format", "json"))


def address_of(coordinator):
    return (coordinator.data / "address").read_text().strip()


def membership(coordinator, name):
    return json.loads((coordinator.data.parent / name / "membership.json").read_text())


def device_log(coordinator, name):
    return (coordinator.data.parent / f"{name}.log").read_text()


def online(coordinator):
    return [one["client"] for one in json.loads(coordinator.here("client", "ls", "--online", "--format", "json"))]


def end(process):
    process.terminate()
    assert process.wait(60) == 0


def move(coordinator, name, *arguments, code=0):
    done = subprocess.run([BIN / "fedge-client", "--state-dir", coordinator.data.parent / name, "move", *arguments],
                          capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def announce(coordinator):
    """Announces a key and waits until every client has stored it. Returns the former and the next key."""
    coordinator.here("key", "announce")
    wait_for(lambda: key_of(coordinator)["unaware_clients"] == 0, coordinator)
    key = key_of(coordinator)
    assert key["key"] != key["next_key"] and key["announced"], key
    return key["key"], key["next_key"]


def rotation(coordinator):
    coordinator.stop()
    coordinator.listen = address_of(coordinator)
    coordinator.start()
    devices = join_devices(coordinator)
    submit(coordinator, run_text(ROUNDS) + "[training]\nlocal_epochs = 20\n")
    wait_for(lambda: shown(coordinator)["rounds"] >= 2, coordinator)
    stolen = coordinator.data.parent / "stolen" / "data"
    coordinator.stop()
    shutil.copytree(coordinator.data, stolen)
    coordinator.start()
    wait_for(lambda: online(coordinator) == [0, 1], coordinator)
    former, following = announce(coordinator)
    for number in range(2):
        assert membership(coordinator, f"device{number}")["next_key"] == following
    # Over HTTPS, by an administrator; others may at most look.
    for role, routes in (("viewer", {"GET": 403, "POST": 403}), ("operator", {"GET": 200, "POST": 403})):
        token = coordinator.token(role, role)
        assert coordinator.call("GET", "/key", token)[0].status == routes["GET"]
        assert coordinator.call("POST", "/key/rotation", token, {})[0].status == routes["POST"]
    done = shown(coordinator)["rounds"]
    assert done < ROUNDS, done
    admin = coordinator.token("root", "admin")
    answer, key = coordinator.call("POST", "/key/rotation", admin, {})
    assert answer.status == 200 and key["key"] == following and key["next_key"] is None, key
    wait_for(lambda: online(coordinator) == [0, 1], coordinator)
    wait_for(lambda: all(membership(coordinator, f"device{number}")["coordinator_key"] == following
                         for number in range(2)), coordinator)
    assert "next_key" not in membership(coordinator, "device0")
    wait_for(lambda: shown(coordinator)["state"] == "finished", coordinator)
    entry = [one for one in json.loads(coordinator.here("audit", "ls", "--format", "json"))
             if one["action"] == "key.rotated"]
    assert len(entry) == 1 and entry[0]["actor"] == "user root", entry
    assert entry[0]["details"]["former"] == former and entry[0]["details"]["unaware"] == "0", entry
    assert "OK" in coordinator.here("audit", "verify")
    rotated = model_hash(coordinator.data)
    # A run that nobody disturbs comes to the same model.
    submit(coordinator, run_text(ROUNDS) + "[training]\nlocal_epochs = 20\n")
    wait_for(lambda: shown(coordinator, 2)["state"] == "finished", coordinator)
    assert model_hash(coordinator.data, 2) == rotated
    coordinator.stop()
    # A thief with the former key, at the coordinator's address: the devices do not even greet it.
    thief = Coordinator(stolen.parent, listen=coordinator.listen)
    try:
        wait_for(lambda: all(f"the public key of the peer is {former}; expected {following}"
                             in device_log(coordinator, f"device{number}") for number in range(2)), thief)
        assert online(thief) == []
        assert "client.connected" not in thief.log()
    finally:
        thief.process.kill()
        thief.process.wait()
    coordinator.start()
    wait_for(lambda: online(coordinator) == [0, 1], coordinator)
    assert all(device.poll() is None for device in devices)
    # A device that joins again as another client still knows the coordinator as the one that it joined at first.
    end(devices[1])
    place = coordinator.data.parent / "device1"
    for name in ("membership.json", "node.key"):
        (place / name).unlink()
    subprocess.run([BIN / "fedge-client", "--state-dir", place, "join", coordinator.here("token", "create").strip()],
                   timeout=100, check=True, capture_output=True)
    again = membership(coordinator, "device1")
    assert again["client"] == 2 and again["coordinator_key"] == following and again["first_key"] == former, again


def unaware(coordinator):
    coordinator.stop()
    coordinator.listen = address_of(coordinator)
    coordinator.start()
    devices = join_devices(coordinator, 3)
    end(devices[1])
    old_token = coordinator.here("token", "create").strip()
    coordinator.here("key", "announce")
    wait_for(lambda: key_of(coordinator)["unaware_clients"] == 1, coordinator)
    key = key_of(coordinator)
    assert [one["client"] for one in key["unaware"]] == [1] and key["unaware"][0]["last_seen"], key
    assert "stored by  2 of 3 clients; not by:\n  client 1, last seen" in coordinator.here("key", "show")
    refused = coordinator.here("key", "rotate", code=1)
    assert "1 of 3 clients did not report that they have stored the announced key: 1; after the rotation" in refused, refused
    assert "a next key is announced already" in coordinator.here("key", "announce", code=1)
    # Another administrator has announced another key since: that one is not meant.
    admin = coordinator.token("root", "admin")
    answer, text = coordinator.call("POST", "/key/rotation", admin, {"force": True, "next_key": key["key"]})
    assert answer.status == 409 and text["code"] == "stale", text
    assert key_of(coordinator)["key"] == key["key"]
    # What clients have stored is known after a restart, too.
    coordinator.stop()
    coordinator.start()
    assert key_of(coordinator)["unaware_clients"] == 1, key_of(coordinator)
    # A withdrawn key is forgotten.
    coordinator.here("key", "withdraw")
    wait_for(lambda: all("next_key" not in membership(coordinator, name) for name in ("device0", "device2")), coordinator)
    assert "no next key is announced" in coordinator.here("key", "withdraw", code=1)
    assert "no next key is announced" in coordinator.here("key", "rotate", code=1)
    coordinator.here("key", "announce")
    wait_for(lambda: key_of(coordinator)["unaware_clients"] == 1, coordinator)
    following = key_of(coordinator)["next_key"]
    forced = coordinator.here("key", "rotate", "--force")
    assert f"the coordinator's key is now {following}" in forced
    assert "1 open join token names a former key" in forced, forced
    wait_for(lambda: f'key.rotated key="{following}"' in coordinator.log() and online(coordinator) == [0, 2], coordinator)
    # The device that was away refuses the new key until its owner says so.
    device = start_device(coordinator, "device1")
    wait_for(lambda: f"the public key of the peer is {following}; expected {key['key']}"
             in device_log(coordinator, "device1"), coordinator)
    end(device)
    assert "client 1 connects to" in move(coordinator, "device1", "--key", following)
    start_device(coordinator, "device1")
    wait_for(lambda: online(coordinator) == [0, 1, 2], coordinator)
    # A device that waits for approval was told nothing, and is moved like the others.
    join = coordinator.here("token", "create", "--approve").strip()
    waiting = start_device(coordinator, "waiting", join)
    wait_for(lambda: "waits for approval" in device_log(coordinator, "waiting"), coordinator)
    # A device in the place of another does not have what that one had stored.
    coordinator.here("key", "announce")
    wait_for(lambda: [one["client"] for one in key_of(coordinator)["unaware"]] == [4], coordinator)
    assert key_of(coordinator)["unaware"][0]["state"] == "pending"
    assert "client 4, waits for approval, never connected" in coordinator.here("key", "show")
    end(devices[2])
    replacement = coordinator.here("token", "create", "--replaces", 2).strip()
    subprocess.run([BIN / "fedge-client", "--state-dir", coordinator.data.parent / "replacement", "join", replacement],
                   timeout=100, check=True, capture_output=True)
    assert [one["client"] for one in key_of(coordinator)["unaware"]] == [2, 4], key_of(coordinator)
    coordinator.here("key", "rotate", "--force")
    third = key_of(coordinator)["key"]
    end(waiting)
    assert "client 4 connects to" in move(coordinator, "waiting", "--key", third)
    coordinator.here("client", "approve", 4)
    start_device(coordinator, "waiting")
    wait_for(lambda: 4 in online(coordinator), coordinator)
    # A token from before names the former key.
    late = subprocess.run([BIN / "fedge-client", "--state-dir", coordinator.data.parent / "late", "join", old_token],
                          capture_output=True, text=True, timeout=100, check=False)
    assert late.returncode == 1 and f"expected {key['key']}" in late.stderr, late


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def moved(coordinator):
    join_devices(coordinator)
    before, after = address_of(coordinator), free_address()
    coordinator.stop()
    config = coordinator.data.parent / "coordinator.toml"
    config.write_text(f'addresses = ["{after}"]\n')
    coordinator.listen = before
    coordinator.start("--config", config)
    wait_for(lambda: all(membership(coordinator, f"device{number}")["coordinators"] == [before, after]
                         or membership(coordinator, f"device{number}")["coordinators"] == [after, before]
                         for number in range(2)), coordinator)
    # Join tokens name it without being told, while the coordinator runs and while it does not.
    for running in (True, False):
        if not running:
            coordinator.stop()
        token = coordinator.here("token", "create").strip()
        raw = base64.urlsafe_b64decode(token.split(".")[1] + "==")
        assert raw[0] == 1 and raw[2:2 + raw[1]] == b"127.0.0.1", raw
        assert int.from_bytes(raw[2 + raw[1]:4 + raw[1]], "little") == int(after.rsplit(":", 1)[1])
    coordinator.listen = after
    coordinator.start("--config", config)
    wait_for(lambda: online(coordinator) == [0, 1], coordinator)
    wait_for(lambda: all(membership(coordinator, f"device{number}")["coordinators"] == [after]
                         for number in range(2)), coordinator)
    # A file that somebody has changed is an error that names it, and ends nothing.
    for text, reason in (("a.example:1\n" * 5, "line 5: there are more than 4 addresses"), ("x\n", "line 1: ")):
        (coordinator.data / "addresses").write_text(text)
        said = coordinator.here("token", "create", code=1)
        assert str(coordinator.data / "addresses") in said and reason in said, said
    assert coordinator.process.poll() is None
    wrong = coordinator.data.parent / "wrong.toml"
    for value, reason in ((["fedge.example.org:0"], "the port must not be 0"), (["x"], "addresses"),
                          (["0.0.0.0:7433"], "at which nobody can be reached"), (["[::]:7433"], "at which nobody can be"),
                          (["a.example:1", "b.example:1", "a.example:1"], "a.example:1 twice"),
                          ([f"fedge.example.org:{port}" for port in range(1, 6)], "has more than 4 addresses")):
        wrong.write_text(f"addresses = {json.dumps(value)}\n")
        done = subprocess.run([BIN / "fedge-coordinator", "--config", wrong, "--check-config"], capture_output=True,
                              text=True, check=False)
        assert done.returncode != 0 and reason in done.stderr, done


def move_refusals(coordinator):
    device = join_devices(coordinator, 1)[0]
    before = membership(coordinator, "device0")
    here = address_of(coordinator)
    (coordinator.data.parent / "other").mkdir()
    other = Coordinator(coordinator.data.parent / "other")
    try:
        assert "a client daemon runs in" in move(coordinator, "device0", here, code=1)
        end(device)
        for arguments, reason, code in (
                ((address_of(other),), "the public key of the peer is", 1),
                ((free_address(),), "nothing was changed: cannot connect to", 1),
                ((address_of(other), "--key", key_of(other)["key"]), "nothing was changed", 1),
                ((here, "--key", "12ab"), "--key: ", 1),
                (("nowhere",), "nowhere", 2),
                ((), "give ADDRESS, --key KEY, or both", 2),
                ((here,) * 5, "", 2)):
            said = move(coordinator, "device0", *arguments, code=code)
            assert reason in said, said
            assert membership(coordinator, "device0") == before, said
        # The first address that answers counts; unchecked ones are taken as they are.
        nowhere = free_address()
        move(coordinator, "device0", nowhere, here)
        assert membership(coordinator, "device0")["coordinators"] == [nowhere, here]
        assert "not checked" in move(coordinator, "device0", nowhere, "--unchecked")
        assert membership(coordinator, "device0")["coordinators"] == [nowhere]
        move(coordinator, "device0", here)
        start_device(coordinator, "device0")
        wait_for(lambda: online(coordinator) == [0], coordinator)
    finally:
        other.process.kill()
        other.process.wait()


def directory(coordinator):
    coordinator.stop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        node = f"127.0.0.1:{probe.getsockname()[1]}"
    with open(coordinator.data.parent / "node.log", "w") as log:
        DEVICES.append(subprocess.Popen([BIN / "fedge", "dht", "node", "--listen", node], stdout=log, stderr=log))
    config = coordinator.data.parent / "coordinator.toml"
    config.write_text(f'[directory]\nlisten = "127.0.0.1:0"\nbootstrap = ["{node}"]\n')
    coordinator.start("--config", config)
    start_device(coordinator, "device0", coordinator.here("token", "create").strip(), "--bootstrap", node,
                 "--directory-listen", "127.0.0.1:0")
    wait_for(lambda: online(coordinator) == [0], coordinator)
    former, following = announce(coordinator)
    before = address_of(coordinator)
    coordinator.stop()
    coordinator.here("key", "rotate")  # while no coordinator runs
    coordinator.start("--config", config)  # at another port
    assert address_of(coordinator) != before
    assert key_of(coordinator)["key"] == following
    # The directory still has the former key's record, with an address where nobody is.
    wait_for(lambda: online(coordinator) == [0], coordinator)
    wait_for(lambda: membership(coordinator, "device0")["coordinator_key"] == following, coordinator)
    assert membership(coordinator, "device0")["first_key"] == former
    # And in a running coordinator the announcement changes hands.
    former, following = announce(coordinator)
    coordinator.here("key", "rotate")
    wait_for(lambda: membership(coordinator, "device0")["coordinator_key"] == following, coordinator)
    wait_for(lambda: online(coordinator) == [0], coordinator)
    wait_for(lambda: address_of(coordinator) in subprocess.run(
        [BIN / "fedge", "dht", "get", "--bootstrap", node, "--listen", "127.0.0.1:0", "coordinator", following],
        capture_output=True, text=True, timeout=100, check=False).stdout, coordinator)
    # The former key's records are taken back.
    wait_for(lambda: address_of(coordinator) not in subprocess.run(
        [BIN / "fedge", "dht", "get", "--bootstrap", node, "--listen", "127.0.0.1:0", "--wait", "1", "coordinator", former],
        capture_output=True, text=True, timeout=100, check=False).stdout, coordinator)


def restored(coordinator):
    devices = join_devices(coordinator)
    address = address_of(coordinator)
    announce(coordinator)
    place, _ = backup(coordinator, "backup")
    following = key_of(coordinator)["next_key"]
    coordinator.here("key", "rotate")
    wait_for(lambda: all(membership(coordinator, f"device{number}")["coordinator_key"] == following
                         for number in range(2)), coordinator)
    coordinator.stop()
    # The backup has the former key in force: the devices refuse it, until the operator rotates the key again.
    target, said = restore(coordinator, place, "restored")
    assert "run 'fedge key rotate --force'" in said, said
    other = Coordinator(target.parent, listen=address)
    try:
        wait_for(lambda: f"expected {following}" in device_log(coordinator, "device0"), other)
        assert online(other) == []
        # What the clients had stored when the backup was made says nothing of now.
        assert key_of(other)["next_key"] == following and key_of(other)["unaware_clients"] == 2
        other.here("key", "rotate", "--force")
        wait_for(lambda: online(other) == [0, 1], other)
    finally:
        other.process.kill()
        other.process.wait()
    assert all(device.poll() is None for device in devices)


def killed(coordinator):
    strace = works_here("strace")
    if not strace:
        print("skipped: strace is not here, or may not trace")
        sys.exit(77)
    coordinator.stop()
    coordinator.listen = address_of(coordinator)
    coordinator.start()
    join_devices(coordinator, 1)
    coordinator.stop()
    done, begun = 0, 0
    orders = [(), ("key", "withdraw"), ("key", "announce"), ("token", "create"), ("key", "show")]
    for call in ("fsync", "fdatasync", "rename", "pwrite64", "write"):
        for number in range(1, 40):
            # While no coordinator runs, the command-line tool does it: the same code, without other threads.
            if key_of(coordinator)["next_key"] is None:
                coordinator.here("key", "announce")
            before = key_of(coordinator)
            trial = subprocess.run([strace, "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={number}",
                                    BIN / "fedge", "key", "rotate", "--force", "--data-dir", coordinator.data],
                                   capture_output=True, text=True, timeout=100, check=False)
            # Whatever an operator does next, the key in force is not lost.
            order = orders[number % len(orders)]
            if order:
                subprocess.run([BIN / "fedge", *order, "--data-dir", coordinator.data], capture_output=True, check=False)
            coordinator.start()
            after = key_of(coordinator)["key"]
            assert after in (before["key"], before["next_key"]), (call, number, before, after)
            assert "OK" in coordinator.here("audit", "verify")
            if trial.returncode != 0:
                begun += 1
                done += after == before["next_key"]
            else:
                assert after == before["next_key"], (call, number)
            coordinator.stop()
            if trial.returncode == 0:
                break
        else:
            raise AssertionError(f"{call}: more than 40 calls")
    # Some kills came before the rotation was recorded, and some after.
    assert 0 < done < begun, (done, begun)


if __name__ == "__main__":
    run_case({"rotation": rotation, "unaware": unaware, "moved": moved, "move": move_refusals, "directory": directory,
              "restored": restored, "killed": killed})
