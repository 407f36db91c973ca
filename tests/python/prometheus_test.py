"""The files in deploy/, with Prometheus itself: python3 prometheus_test.py SOURCE BIN CASE.

rules   promtool checks the configuration and the rules, and runs the rules' unit tests
names   every metric that a rule or the Grafana dashboard uses is one of the coordinator's, and every alert is explained
scrape  Prometheus scrapes a coordinator: the page has no fault, and the rules can be evaluated
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

SOURCE, BIN = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
DEPLOY = SOURCE / "deploy"
SKIPPED = 77


def tool(*arguments, **more):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules():
    here = DEPLOY / "prometheus"
    tool("check", "config", here / "prometheus.yml")
    tool("test", "rules", here / "alerts_test.yml")
    # A test for each rule.
    alerts = set(re.findall(r"- alert: (\w+)", (here / "alerts.yml").read_text()))
    fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n\s+- ", (here / "alerts_test.yml").read_text()))
    assert alerts == fired, alerts ^ fired


def names():
    reference = (SOURCE / "docs/reference/metrics.md").read_text()
    known = set(re.findall(r"^\| `((?:fedge|process)_\w+)`", reference, re.MULTILINE))
    used = set()
    for file in ("prometheus/alerts.yml", "grafana/fedge.json"):
        text = (DEPLOY / file).read_text()
        found = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"\b(?:fedge|process)_\w+", text)}
        assert found and found <= known, (file, found - known)
        used |= found
    events = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", (SOURCE / "docs/reference/events.md").read_text(), re.MULTILINE))
    for file in ("prometheus/alerts.yml", "grafana/fedge.json"):
        for list_of in re.findall(r'event=~?\\?"([a-z_.|]+)', (DEPLOY / file).read_text()):
            assert set(list_of.split("|")) <= events, list_of
    explained = set(re.findall(r"^\| `(Fedge\w+)`", (SOURCE / "docs/operate/alerts.md").read_text(), re.MULTILINE))
    alerts = set(re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus/alerts.yml").read_text()))
    assert explained == alerts, explained ^ alerts
    panels = json.loads((DEPLOY / "grafana/fedge.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 10


def wait_for(condition, what):
    until = time.monotonic() + 60
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < until, what
        time.sleep(0.1)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def scrape():
    with tempfile.TemporaryDirectory() as place:
        data = pathlib.Path(place) / "data"
        coordinator = subprocess.Popen(
            [BIN / "fedge-coordinator", "--data-dir", data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"],
            stderr=subprocess.DEVNULL)
        processes = [coordinator]
        try:
            file = data / "admin-address"
            address = wait_for(lambda: file.exists() and file.read_text().strip(), "the coordinator starts")
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                page = answer.read().decode()
            tool("check", "metrics", input=page)
            configuration = (DEPLOY / "prometheus/prometheus.yml").read_text()
            configuration = configuration.replace("127.0.0.1:9464", address).replace("15s", "1s")
            shutil.copy(DEPLOY / "prometheus/alerts.yml", place)
            (pathlib.Path(place) / "prometheus.yml").write_text(configuration)
            port = free_port()
            processes.append(subprocess.Popen(
                ["prometheus", f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/db",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

            def api(path, **query):
                text = urllib.parse.urlencode(query)
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{text}", timeout=10) as answer:
                        return json.load(answer)["data"]
                except (urllib.error.URLError, ConnectionError):
                    return None

            def value(name):
                found = api("query", query=name)
                return found["result"][0]["value"][1] if found and found["result"] else None

            wait_for(lambda: value('up{job="fedge"}') == "1", "Prometheus scrapes the coordinator")
            assert value("fedge_clients_connected") == "0" and float(value("fedge_data_directory_free_bytes")) > 0
            def healthy():
                groups = api("rules")
                found = [rule["health"] for group in groups["groups"] for rule in group["rules"]] if groups else []
                assert "err" not in found, groups
                return found and all(one == "ok" for one in found)
            wait_for(healthy, "the rules are evaluated")
            os.kill(coordinator.pid, signal.SIGKILL)
            wait_for(lambda: value('up{job="fedge"}') == "0", "Prometheus notices that the coordinator is gone")
        finally:
            for process in processes:
                process.kill()
                process.wait()


if not shutil.which("promtool"):
    print("skipped: promtool not found (package prometheus)")
    sys.exit(SKIPPED)
{"rules": rules, "names": names, "scrape": scrape}[sys.argv[3]]()
print("ok")
