"""Traces of rounds, from real daemons to a stub of a collector: python3 traces_test.py BIN CASE.

rounds  the trace of each round arrives, nested; the clients' logs name its id; a killed coordinator continues
dead    with a collector that is not there, or that hangs, a run trains as without one
"""

import hashlib
import http.server
import json
import re
import socket
import subprocess
import sys
import threading
import time

try:
    import jsonschema
except ImportError:
    print("skipped: jsonschema not found (package python3-jsonschema)")
    sys.exit(77)
from coordinator_process import BIN, DEVICES, RUN, run_case, start_device, wait_for

STAGES = ("training", "evaluation", "upload")
NUMBER = {"type": "string", "pattern": "^[0-9]+$"}


def record(required, **fields):
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def many(items):
    return {"type": "array", "items": items}


def ids(digits):
    return {"type": "string", "pattern": "^[0-9a-f]{%d}$" % digits}


TEXT = {"type": "string"}
ATTRIBUTES = many(record(["key", "value"], key=TEXT,
                         value={"oneOf": [record(["stringValue"], stringValue=TEXT),
                                          record(["intValue"], intValue=NUMBER)]}))
SPAN = record(["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes"],
              traceId=ids(32), spanId=ids(16), parentSpanId=ids(16), name=TEXT, kind={"const": 1},
              startTimeUnixNano=NUMBER, endTimeUnixNano=NUMBER, attributes=ATTRIBUTES,
              links=many(record(["traceId", "spanId"], traceId=ids(32), spanId=ids(16))),
              status=record(["code"], code={"enum": [0, 1, 2]}, message=TEXT))
# ExportTraceServiceRequest of OTLP 1, as far as the coordinator uses it.
REQUEST = record(["resourceSpans"], resourceSpans=many(record(
    ["resource", "scopeSpans"], resource=record(["attributes"], attributes=ATTRIBUTES),
    scopeSpans=many(record(["scope", "spans"], scope=record(["name", "version"], name=TEXT, version=TEXT),
                           spans=many(SPAN))))))


class Collector(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans, self.resources, self.faults = [], [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def roots(self):
        return [one for one in list(self.spans) if one["name"].startswith("round ")]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            assert self.path == "/otlp/v1/traces" and self.headers["Content-Type"] == "application/json"
            jsonschema.validate(body, REQUEST)
            for part in body["resourceSpans"]:
                self.server.resources.append(facts(part["resource"]))
                self.server.spans.extend(span for scope in part["scopeSpans"] for span in scope["spans"])
        except (AssertionError, jsonschema.ValidationError) as fault:
            self.server.faults.append(str(fault))
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        except ConnectionError:  # the coordinator was killed
            pass

    def log_message(self, *_):
        pass


def facts(holder):
    return {one["key"]: next(iter(one["value"].values())) for one in holder["attributes"]}


def trace_of(run_id, number):
    """The documented derivation, written a second time."""
    return hashlib.sha256(f"fedge trace\nround\n{run_id}\n{number}".encode()).hexdigest()[:32]


def span_of(trace, name):
    return hashlib.sha256(f"fedge span\n{trace}\n{name}\n0\n0\n\n0".encode()).hexdigest()[:16]


def restart(coordinator, endpoint):
    settings = coordinator.data.parent / "coordinator.toml"
    settings.write_text(f'[traces]\nendpoint = "{endpoint}"\n[admin]\nlisten = "127.0.0.1:0"\n' if endpoint else "")
    coordinator.listen = (coordinator.data / "address").read_text().strip()  # where clients return to
    coordinator.stop()
    coordinator.start("--config", settings)


def submit(coordinator, rounds):
    run = coordinator.data.parent / "run.toml"
    text = RUN.replace("clients = 3", "clients = 2").replace("rounds = 2", f"rounds = {rounds}\nwait_for_clients = 2")
    run.write_text(text + "[sampling]\nmin_available = 2\nclients_per_round = 2\n")
    coordinator.here("run", "submit", run)


def start_json_device(coordinator, name, join, data):
    place = coordinator.data.parent
    process = subprocess.Popen([BIN / "fedge-client", "--log-format", "json", "--log-level", "debug", "--state-dir",
                                place / name, "run", "--token-file", "-", *data], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=open(place / (name + ".log"), "ab"), text=True)
    DEVICES.append(process)
    process.stdin.write(join)
    process.stdin.close()
    return process


def start_devices(coordinator):
    place = coordinator.data.parent
    (place / "machines.csv").write_text("temperature,ok\n" + "70,yes\n90,no\n" * 40)
    data = ("--data", f"machines={place / 'machines.csv'}")
    joins = [coordinator.here("token", "create", "--name", name).strip() for name in ("Anna Meier", "Bert Huber")]
    return [start_device(coordinator, "text", joins[0], *data), start_json_device(coordinator, "json", joins[1], data)]


def check_round(collector, number, trace):
    """All spans of this round: one root, two trainings and evaluations with their stages, each inside its parent."""
    spans = {one["spanId"]: one for one in collector.spans if one["traceId"] == trace}
    root = spans[span_of(trace, "round")]
    assert root["name"] == f"round {number}" and "parentSpanId" not in root, root
    known = facts(root)
    assert known["fedge.run.number"] == "1" and known["fedge.run.name"] == "machines", known
    assert known["fedge.selected"] == known["fedge.completed"] == "2" and known["fedge.status"] == "completed", known
    names = sorted(one["name"] for one in spans.values())
    assert names == sorted([f"round {number}"] + 2 * ["aggregation", "evaluation", "task", "task", "training", "upload"])
    for one in spans.values():
        if one is root:
            continue
        parent = spans[one["parentSpanId"]]
        assert parent["name"] == ("task" if one["name"] in STAGES else root["name"]), (one, parent)
        begin, end = int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"])
        assert int(parent["startTimeUnixNano"]) <= begin <= end <= int(parent["endTimeUnixNano"]), (one, parent)
    tasks = [facts(one) for one in spans.values() if one["name"] == "task"]
    assert sorted((one["fedge.client"], one["fedge.kind"]) for one in tasks) == [
        ("0", "evaluation"), ("0", "training"), ("1", "evaluation"), ("1", "training")], tasks
    assert all(one["fedge.outcome"] == "accepted" for one in tasks), tasks
    assert all(int(one["fedge.bytes"]) > 0 for one in tasks if one["fedge.kind"] == "training"), tasks
    return root


def rounds(coordinator):
    collector = Collector()
    base = f"http://localhost:{collector.server_port}/otlp"
    restart(coordinator, base)
    began = time.time_ns()
    submit(coordinator, 100000)
    devices = start_devices(coordinator)
    audit = json.loads(coordinator.here("audit", "ls", "--format", "json"))
    run_id = next(one["details"]["run_id"] for one in audit if one["action"] == "run.submitted")
    wait_for(lambda: len(collector.roots()) >= 3, coordinator)
    for number in (1, 2, 3):
        root = check_round(collector, number, trace_of(run_id, number))
        assert facts(root)["fedge.run.id"] == run_id, root
        assert began <= int(root["startTimeUnixNano"]) <= int(root["endTimeUnixNano"]) <= time.time_ns(), root
    service = collector.resources[0]
    assert service["service.name"] == "fedge-coordinator", service
    assert re.fullmatch("[0-9a-f]{32}", service["service.instance.id"]), service
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", service["service.version"]), service
    assert "Meier" not in json.dumps(collector.spans)

    # The logs of the clients name the same traces, as text and as JSON.
    logs = {name: coordinator.data.parent / (name + ".log") for name in ("text", "json")}
    wait_for(lambda: all("update.accepted" in log.read_text() for log in logs.values()), coordinator)
    assert f'update.accepted round=1 run="machines" trace="{trace_of(run_id, 1)}"' in logs["text"].read_text()
    lines = [json.loads(line) for line in logs["json"].read_text().splitlines() if line.endswith("}")]
    for event in ("model.fetched", "update.accepted"):
        found = [one for one in lines if one["event"] == event]
        assert found and all(one["trace"] == trace_of(run_id, one["round"]) for one in found), found

    # A coordinator that was killed repeats its journal: it exports no round under other ids, and goes on.
    coordinator.process.kill()
    coordinator.process.wait(60)
    before = len(collector.roots())
    last = max(int(one["name"].split()[1]) for one in collector.roots())
    coordinator.start("--config", coordinator.data.parent / "coordinator.toml")
    wait_for(lambda: max(int(one["name"].split()[1]) for one in collector.roots()) >= last + 3, coordinator)
    coordinator.here("run", "stop", "1")
    seen = {}
    for one in collector.roots():
        assert one["traceId"] == trace_of(run_id, int(one["name"].split()[1])), one
        assert one["spanId"] == span_of(one["traceId"], "round"), one
        seen[one["name"]] = seen.get(one["name"], 0) + 1
    repeated = [name for name, count in seen.items() if count > 1]
    assert before >= 3 and all(int(name.split()[1]) >= last for name in repeated), repeated
    assert len({one["service.instance.id"] for one in collector.resources}) == 1
    assert collector.faults == [], collector.faults
    for one in devices:
        one.terminate()
        one.wait(60)
    # Without an endpoint, nothing is sent.
    count = len(collector.spans)
    restart(coordinator, "")
    assert len(collector.spans) >= count
    print("ok")


def dead(coordinator):
    # One port where nobody listens, and one where nobody answers.
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(64)
    devices = []
    models = []
    for number, port in enumerate((None, closed.getsockname()[1], silent.getsockname()[1]), 1):
        restart(coordinator, f"http://127.0.0.1:{port}" if port else "")
        submit(coordinator, 3)
        if not devices:
            devices = start_devices(coordinator)
        wait_for(lambda: '"finished"' in coordinator.here("run", "show", str(number), "--format", "json"), coordinator)
        metrics = coordinator.data / "runs" / str(number) / "results" / "metrics.jsonl"
        models.append([json.loads(line)["model_hash"] for line in metrics.read_text().splitlines()])
    assert len(models[0]) == 3 and len(set(models[0])) == 3, models
    assert models[0] == models[1] == models[2], models
    assert "traces.unavailable" in coordinator.log(), coordinator.log()
    # An endpoint that cannot work is refused at the start, with its place.
    settings = coordinator.data.parent / "coordinator.toml"
    settings.write_text('[traces]\nendpoint = "https://collector.example.org:4318"\n')
    said = subprocess.run([BIN / "fedge-coordinator", "--config", settings, "--check-config"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert said.returncode == 2 or said.returncode == 1, said
    assert "coordinator.toml:2: traces.endpoint: " in said.stderr and "only over http://" in said.stderr, said
    for one in devices:
        one.terminate()
        one.wait(60)
    coordinator.stop()
    print("ok")


run_case({"rounds": rounds, "dead": dead})
