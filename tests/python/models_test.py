"""Models, old runs, and which clients a run is for, with real daemons: python3 models_test.py BIN CASE.

models     the model of a run at any time: last, best, of a round; running, paused, ended, without a coordinator
removed    runs that have ended are removed by hand or by retention.keep_days, and what others may not remove
verified   a run is replayed at an operator's request: equal, different after its record was changed, refused
wards      runs select clients by label; with data of their own, clients have any number
"""

import datetime
import hashlib
import json
import pathlib
import re
import struct
import time

from coordinator_process import RUN, run_case, start_device, wait_for


def machines(coordinator, name="machines"):
    """Writes data for a device and returns the option that names it."""
    path = coordinator.data.parent / (name + ".csv")
    path.write_text("temperature,ok\n" + "70,yes\n90,no\n50,yes\n" * 40)
    return ("--data", f"machines={path}")


def shown(coordinator, *what):
    return json.loads(coordinator.here(*what, "--format", "json"))


def rounds(coordinator, run=1):
    return shown(coordinator, "run", "show", run)["rounds"]


def submit(coordinator, text, *more):
    path = coordinator.data.parent / "run.toml"
    path.write_text(text)
    return shown(coordinator, "run", "submit", path, *more)["run"]


def read(path):
    """Returns what a model's file says, and the hash of its values."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    return header["__metadata__"], hashlib.sha256(content[8 + length:]).hexdigest()


def hashes(coordinator, run=1):
    lines = coordinator.here("run", "log", run, "--format", "json").splitlines()
    return {json.loads(line)["round"]: json.loads(line)["model_hash"] for line in lines}


def models(coordinator):
    place = coordinator.data.parent
    joins = coordinator.here("token", "create", "--count", 2).split()
    devices = [start_device(coordinator, f"device {i}", join, *machines(coordinator)) for i, join in enumerate(joins)]
    text = RUN.replace("clients = 3", "clients = 2").replace("rounds = 2", "rounds = 100000")
    text = text.replace("[data]\n", 'keep_models = 3\nkeep_models_every = 2\nkeep_best = "loss"\n[data]\nvalidation = 0.2\n', 1)
    run = submit(coordinator, text + "[training.optimizer]\nlearning_rate = 0.0001\n")
    model = place / "a.safetensors"
    early = coordinator.here("run", "model", run, "--out", model, code=1 if rounds(coordinator) == 0 else 0)
    assert "no round is complete yet" in early or "the model after round" in early, early
    wait_for(lambda: rounds(coordinator) >= 9, coordinator)

    # While the run goes on: each file is the model of the round that it names, bit by bit.
    for _ in range(20):
        coordinator.here("run", "model", run, "--out", model, "--force")
        facts, digest = read(model)
        assert digest == facts["model_hash"] == hashes(coordinator)[int(facts["round"])], facts
    assert "exists" in coordinator.here("run", "model", run, "--out", model, code=1)
    kept = shown(coordinator, "run", "models", run)
    # The newest may belong to a round that is not complete yet, and is not listed then.
    assert len(kept["rounds"]) in (2, 3) and all(one % 2 == 0 for one in kept["rounds"]), kept
    assert kept["best"] is not None and kept["last"] >= 9, kept
    best = place / "best.safetensors"
    coordinator.here("run", "model", run, "--best", "--out", best)
    facts, digest = read(best)
    assert digest == hashes(coordinator)[int(facts["round"])] == facts["model_hash"], facts

    # Paused, the same run has the same models, also while no coordinator runs, and after a restart.
    coordinator.here("run", "pause", run)
    wait_for(lambda: shown(coordinator, "run", "show", run)["state"] == "paused"
             and "run.paused" in coordinator.log(), coordinator)
    last = rounds(coordinator)
    kept = shown(coordinator, "run", "models", run)
    assert kept["last"] == last and len(kept["rounds"]) in (2, 3), kept
    coordinator.stop()
    for how in ("stopped", "running"):
        coordinator.here("run", "model", run, "--out", model, "--force")
        facts, digest = read(model)
        assert int(facts["round"]) == last and digest == hashes(coordinator)[last], (how, facts)
        for one in kept["rounds"]:
            coordinator.here("run", "model", run, "--round", one, "--out", model, "--force")
            facts, digest = read(model)
            assert int(facts["round"]) == one and digest == hashes(coordinator)[one], (how, facts)
        missing = kept["rounds"][-1] - 1
        answer = coordinator.here("run", "model", run, "--round", missing, "--out", place / "none", code=1)
        assert f"the model of round {missing} is not kept" in answer and "run.keep_models" in answer, answer
        assert not (place / "none").exists() and not (place / "none.part").exists()
        if how == "stopped":
            coordinator.start()

    # A remote viewer of the project gets it, with a name; others do not learn that the run exists.
    viewer = coordinator.token("vera", "default=viewer")
    link = coordinator.connection()
    link.request("GET", f"/api/v1/runs/{run}/model", headers={"Authorization": "Bearer " + viewer})
    answer = link.getresponse()
    body = answer.read()
    assert answer.status == 200 and answer.getheader("Content-Type") == "application/octet-stream"
    assert "round-" in answer.getheader("Content-Disposition") and len(body) == int(answer.getheader("Content-Length"))
    coordinator.here("project", "add", "card")
    other = coordinator.token("otto", "card=admin")
    for path in (f"/runs/{run}/model", f"/runs/{run}/models", f"/runs/{run}/model?round={kept['rounds'][0]}"):
        assert coordinator.call("GET", path, other)[0].status == 404
    for query in ("round=x", "round=-1", "which=worst", "round=2&which=best", "exclude=nobody", "round=../../x"):
        assert coordinator.call("GET", f"/runs/{run}/model?{query}", viewer)[0].status in (400, 404), query

    # Ended: its result, and the models that were kept.
    coordinator.here("run", "stop", run)
    wait_for(lambda: shown(coordinator, "run", "show", run)["ended"] is not None, coordinator)
    results = pathlib.Path(shown(coordinator, "run", "show", run)["results"])
    coordinator.here("run", "model", run, "--out", model, "--force")
    assert model.read_bytes() == (results / "model.safetensors").read_bytes()
    for one in kept["rounds"]:
        coordinator.here("run", "model", run, "--round", one, "--out", model, "--force")
        assert read(model)[1] == hashes(coordinator)[one]
    for one in devices:
        one.terminate()
        one.wait(60)
    print("ok")


def removed(coordinator):
    text = RUN
    for _ in range(3):
        submit(coordinator, text)
    refused = coordinator.here("run", "rm", 1, code=1)
    assert "stop it first" in refused, refused
    for run in (1, 3):
        coordinator.here("run", "stop", run)
        wait_for(lambda run=run: shown(coordinator, "run", "show", run)["ended"] is not None, coordinator)
    # A submitter may stop a run, but not remove it.
    coordinator.here("project", "add", "card")
    submitter = coordinator.token("sue", "default=submitter")
    assert coordinator.call("DELETE", "/runs/1", submitter)[0].status == 403
    assert coordinator.call("DELETE", "/runs/1", coordinator.token("otto", "card=admin"))[0].status == 404
    operator = coordinator.token("olga", "default=operator")
    assert coordinator.call("DELETE", "/runs/3", operator)[0].status == 200
    assert [one["run"] for one in shown(coordinator, "run", "ls")] == [1, 2]
    assert coordinator.call("DELETE", "/runs/3", operator)[0].status == 404
    audit = [(one["actor"], one["details"]["run"]) for one in shown(coordinator, "audit", "ls")
             if one["action"] == "run.removed"]
    assert audit == [("user olga", "3")], audit
    # A late repetition of a submission does not start a removed run again.
    text_body = {"document": text}
    first = coordinator.call("POST", "/runs", operator, text_body, {"Idempotency-Key": "k"})
    number = first[1]["run"]["run"]
    coordinator.here("run", "stop", number)
    wait_for(lambda: shown(coordinator, "run", "show", number)["ended"] is not None, coordinator)
    coordinator.here("run", "rm", number)
    again = coordinator.call("POST", "/runs", operator, text_body, {"Idempotency-Key": "k"})
    assert again[0].status == 409 and "has been removed" in again[1]["detail"], again
    # The last number is not used again, and the coordinator does not miss the run.
    coordinator.stop()
    coordinator.start()
    assert submit(coordinator, text) == 5
    assert [one["run"] for one in shown(coordinator, "run", "ls")] == [1, 2, 5]

    # A link leads to files that are not the run's: the run is not removed, and says so.
    precious = coordinator.data.parent / "precious"
    precious.mkdir()
    (coordinator.data / "runs/1").mkdir(exist_ok=True)
    (coordinator.data / "runs/1/results").symlink_to(precious)
    refused = coordinator.here("run", "rm", 1, code=1)
    assert "is a symbolic link to" in refused and str(precious) in refused, refused
    # What ended long ago is removed by the coordinator itself, and nothing else; one run that cannot be removed
    # does not keep the others.
    sixth = submit(coordinator, text)
    coordinator.here("run", "stop", sixth)
    wait_for(lambda: shown(coordinator, "run", "show", sixth)["ended"] is not None, coordinator)
    settings = coordinator.data.parent / "coordinator.toml"
    settings.write_text("[retention]\nkeep_days = 0.00001\n")
    wait_for(lambda: time.time() - ended_at(coordinator, sixth) > 3, coordinator)
    coordinator.stop()
    coordinator.start("--config", settings)
    wait_for(lambda: [one["run"] for one in shown(coordinator, "run", "ls")] == [1, 2, 5], coordinator)
    wait_for(lambda: "retention.failed" in coordinator.log(), coordinator)
    (coordinator.data / "runs/1/results").unlink()
    coordinator.stop()
    coordinator.start("--config", settings)
    wait_for(lambda: [one["run"] for one in shown(coordinator, "run", "ls")] == [2, 5], coordinator)
    assert precious.exists()
    last = [one for one in shown(coordinator, "audit", "ls") if one["action"] == "run.removed"][-1]
    assert last["actor"] == "coordinator" and "retention.keep_days" in last["details"]["reason"], last
    assert not list(coordinator.data.glob("runs/1/*"))
    coordinator.here("audit", "verify")
    print("ok")


def ended_at(coordinator, run):
    text = shown(coordinator, "run", "show", run)["ended"].replace("Z", "+00:00")
    return datetime.datetime.fromisoformat(text).timestamp()


def tiny_images(directory):
    """Forty training and ten test samples in the form of Fashion-MNIST."""
    directory.mkdir()
    for prefix, samples in (("train", 40), ("t10k", 10)):
        labels = bytes(i % 10 for i in range(samples))
        pixels = bytes(250 if p % 10 == i % 10 else i for i in range(samples) for p in range(784))
        (directory / f"{prefix}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, samples, 28, 28) + pixels)
        (directory / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, samples) + labels)


def verified(coordinator):
    images = coordinator.data.parent / "images"
    tiny_images(images)
    joins = coordinator.here("token", "create", "--count", 2).split()
    devices = [start_device(coordinator, f"device {i}", join, "--data-directory", str(images))
               for i, join in enumerate(joins)]
    run = submit(coordinator, f"""[run]
rounds = 4
[data]
directory = "{images}"
partition = {{ clients = 2 }}
[model]
kind = "softmax"
[sampling]
clients_per_round = 2
""")
    wait_for(lambda: shown(coordinator, "run", "show", run)["ended"] is not None, coordinator)
    recorded = hashes(coordinator)
    table = coordinator.here("run", "verify", run)
    assert "8 updates and 4 rounds: all equal" in table and recorded[4][:16] in table, table
    first = shown(coordinator, "run", "verify", run, "--until", "2")
    assert first["state"] == "equal" and [one["replayed"] for one in first["rounds"]] == [recorded[1], recorded[2]], first
    wrong = coordinator.here("run", "verify", run, "--until", 9, code=1)
    assert "from 1 to 4" in wrong, wrong
    # Viewers see the result and start nothing; who starts it is in the audit log.
    viewer = coordinator.token("vera", "viewer")
    assert coordinator.call("POST", f"/runs/{run}/verification", viewer, {})[0].status == 403
    assert coordinator.call("GET", f"/runs/{run}/verification", viewer)[1]["state"] == "equal"
    audit = [one["actor"] for one in shown(coordinator, "audit", "ls") if one["action"] == "run.verification_started"]
    assert len(audit) == 2, audit
    # The clients' data is other than it was: the replay says where it differs.
    path = images / "train-images-idx3-ubyte"
    original = path.read_bytes()
    path.write_bytes(original[:-784 * 20] + bytes(784 * 20))
    answer = coordinator.here("run", "verify", run, code=1)
    assert "update of round 1 differs" in answer, answer
    assert coordinator.call("GET", f"/runs/{run}/verification", viewer)[1]["state"] == "different"
    path.unlink()
    answer = coordinator.here("run", "verify", run, code=1)
    assert str(path) in answer, answer
    assert coordinator.call("GET", f"/runs/{run}/verification", viewer)[1]["state"] == "failed"
    path.write_bytes(original)
    # A coordinator that stops ends the replay with it, and leaves nothing behind.
    asked = coordinator.call("POST", f"/runs/{run}/verification", coordinator.token("sue", "submitter"), {})
    assert asked[0].status == 202, asked
    coordinator.stop()
    assert not (coordinator.data / "replay.json").exists()
    offline = coordinator.here("run", "verify", run, code=1)
    assert "fedge-sim replay" in offline, offline
    for one in devices:
        one.terminate()
        one.wait(60)
    print("ok")


def wards(coordinator):
    # Five clients; the run is for two of them, with numbers above data.partition.clients.
    coordinator.here("token", "create", "--count", 3)
    joins = coordinator.here("token", "create", "--count", 2, "--labels", "ward-3").split()
    devices = [start_device(coordinator, f"ward {i}", join, *machines(coordinator)) for i, join in enumerate(joins)]
    third = start_device(coordinator, "ward 4", coordinator.here("token", "create", "--labels", "ward-4").strip(),
                         *machines(coordinator))
    text = RUN.replace("clients = 3", "clients = 2").replace("rounds = 2", "rounds = 100000")
    run = submit(coordinator, text + "[sampling]\nwhere = \"label == 'ward-3'\"\nclients_per_round = 2\n")
    wait_for(lambda: rounds(coordinator, run) >= 3, coordinator)

    def taking_part():
        tasks = shown(coordinator, "run", "progress", run)
        return {one["client"] for one in tasks["tasks"] + tasks["last_tasks"]}

    assert taking_part() == {3, 4}, taking_part()
    declined = {one["client"]: one["reason"] for one in shown(coordinator, "run", "progress", run)["declined"]}
    assert list(declined) == [5] and "label == 'ward-3'" in declined[5], declined
    log = (coordinator.data.parent / "ward 4.log").read_text()
    assert "client.connected" in coordinator.log() and not re.search(r" (run|task)\.", log), log
    # A label changes: one client leaves in the middle of a round, another comes, and nobody connects again.
    connections = coordinator.log().count("client.connected")
    coordinator.here("client", "set", 5, "--labels", "icu,ward-3")
    coordinator.here("client", "set", 3, "--labels", "icu")
    wait_for(lambda: taking_part() == {4, 5}, coordinator)
    assert coordinator.log().count("client.connected") == connections
    declined = [one["client"] for one in shown(coordinator, "run", "progress", run)["declined"]]
    assert declined == [3], declined
    # Clients with high numbers took part, so clients cannot disagree any more: an operator is told at once.
    refused = coordinator.here("tracks", "add", "--run", run, "--kind", "inbound", "--clients", "0", "--against", "1", code=1)
    assert "clients can disagree only if" in refused, refused
    assert "inbound" not in coordinator.here("tracks", "ls", "--run", run)
    coordinator.here("run", "stop", run)
    wrong = coordinator.here("run", "submit", coordinator.data.parent / "run.toml", "--set",
                             "sampling.where=label is 'ward-3'", code=1)
    assert "sampling.where" in wrong and "expected == or !=" in wrong, wrong
    for one in [*devices, third]:
        one.terminate()
        one.wait(60)
    print("ok")


if __name__ == "__main__":
    run_case({"models": models, "removed": removed, "verified": verified, "wards": wards})
