"""The admin API of a real coordinator, by raw requests: python3 api_test.py BIN CASE.

document  every answer has the form that /api/v1/openapi.json describes (python3-jsonschema)
roles     each role may use the routes of POLICY and no others; a policy of our own, not the program's table
attacks   tokens, limits, other sites, oversized and unfinished requests
parameters  every parameter of every request, with values that nobody expects
schemathesis  requests made from the OpenAPI document, where schemathesis is installed
queue     a removed user's requests that were already sent
projects  a run and the clients of another project
ending    a coordinator that stops while requests and streams come in
story     a remote operator admits, names and revokes a client with the command line alone
"""

import http.client
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

from coordinator_process import BIN, RUN, Events, run_case, wait_for

SKIPPED = 77

# operation: the lowest role, and whether it is needed in all projects
POLICY = {
    "showIdentity": ("viewer", False), "listProjects": ("viewer", False),
    "listClients": ("viewer", False), "showClient": ("viewer", False),
    "listRuns": ("viewer", False), "showRun": ("viewer", False), "listRounds": ("viewer", False),
    "showStatistics": ("viewer", False), "listModels": ("viewer", False), "getModel": ("viewer", False), "showVerification": ("viewer", False), "listDisagreements": ("viewer", False),
    "showProgress": ("viewer", False), "listTransfers": ("viewer", False), "watchEvents": ("viewer", False),
    "submitRun": ("submitter", False), "pauseRun": ("submitter", False), "resumeRun": ("submitter", False),
    "stopRun": ("submitter", False), "removeRun": ("operator", False), "startVerification": ("submitter", False),
    "addClient": ("operator", False), "describeClient": ("operator", False), "approveClient": ("operator", False),
    "readmitClient": ("operator", False),
    "revokeClient": ("operator", False), "listJoinTokens": ("operator", False),
    "createJoinTokens": ("operator", False), "revokeJoinToken": ("operator", False),
    "addDisagreement": ("operator", False), "liftDisagreement": ("operator", False),
    "listUsers": ("admin", True), "addUser": ("admin", True), "showUser": ("admin", True),
    "grantRoles": ("admin", True), "removeUser": ("admin", True), "createAccessToken": ("admin", True),
    "listAccessTokens": ("admin", True), "revokeAccessToken": ("admin", True), "addProject": ("admin", True),
    "showKey": ("operator", True), "announceKey": ("admin", True), "withdrawKey": ("admin", True), "rotateKey": ("admin", True),
    "listAudit": ("admin", True), "verifyAudit": ("admin", True),
}
ROLES = ["viewer", "submitter", "operator", "admin"]
BODIES = {
    "addClient": {"key": "ab" * 32}, "describeClient": {"name": "bed 7"}, "revokeClient": {"keep_token": True},
    "createJoinTokens": {"count": 2, "labels": ["icu"]}, "submitRun": {"document": "[run]\nrounds = 0\n"},
    "addDisagreement": {"kind": "full", "clients": ["0"]}, "addUser": {"name": "zoe", "grants": []},
    "grantRoles": {"grants": ["default=viewer"]}, "createAccessToken": {"days": 1}, "rotateKey": {"force": False},
    "addProject": {"name": "new"},
}


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def filled(path):
    for name, value in {"{client}": "0", "{token}": "1", "{run}": "1", "{user}": "alice",
                        "{disagreement}": "1"}.items():
        path = path.replace(name, value)
    return path


def document(coordinator):
    try:
        import jsonschema
    except ImportError:
        print("skipped: jsonschema not found (package python3-jsonschema)")
        sys.exit(SKIPPED)
    coordinator.token("alice", "viewer")  # access token 1, which the test revokes
    admin = coordinator.token("root", "admin")
    answer, openapi = coordinator.call("GET", "/openapi.json")
    assert answer.status == 200

    def check(instance, schema, what):
        schema = {**schema, "components": openapi["components"]}
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(instance, schema)
        print("ok", what)

    coordinator.here("client", "add", "cd" * 32)
    run = pathlib.Path(coordinator.data).parent / "run.toml"
    run.write_text(RUN)
    coordinator.here("run", "submit", run)
    seen = set()
    order = {"GET": 0, "POST": 1, "PATCH": 2, "PUT": 3, "DELETE": 4}
    for path, method, operation in sorted(operations(openapi), key=lambda one: order[one[1]]):
        name = operation["operationId"]
        answer, body = coordinator.call(method, filled(path), admin, BODIES.get(name))
        expected = operation["responses"].get(str(answer.status), operation["responses"]["default"])
        kind = answer.getheader("Content-Type")
        assert kind in expected["content"], (name, answer.status, kind)
        if kind == "text/event-stream":
            seen.add(name)
            continue
        check(body, expected["content"][kind]["schema"], f"{name} {answer.status}")
        if "requestBody" in operation and name in BODIES:
            check(BODIES[name], operation["requestBody"]["content"]["application/json"]["schema"], name + " body")
        seen.add(name)
    assert seen == set(POLICY), seen ^ set(POLICY)


def roles(coordinator):
    _, openapi = coordinator.call("GET", "/openapi.json")
    coordinator.token("alice", "viewer")  # access token 1, which the test revokes
    coordinator.here("project", "add", "lab")
    coordinator.here("client", "add", "cd" * 32, "--project", "lab")
    tokens = {}
    for role in ROLES:
        tokens[role, True] = coordinator.token(role, role)
        tokens[role, False] = coordinator.token(role + "-lab", "lab=" + role)
    tried = 0
    for path, method, operation in operations(openapi):
        name = operation["operationId"]
        least, everywhere = POLICY[name]
        for (role, in_all), token in tokens.items():
            body = BODIES.get(name)
            if body is not None and name in ("addClient", "createJoinTokens", "submitRun"):
                body = dict(body, project="lab")
            if name in ("removeUser", "grantRoles"):
                continue  # tried below: they change who may do what
            answer, text = coordinator.call(method, filled(path), token, body)
            allowed = ROLES.index(role) >= ROLES.index(least) and (in_all or not everywhere)
            assert (answer.status != 403) == allowed, (name, role, in_all, answer.status, text)
            tried += 1
        answer, _ = coordinator.call(method, filled(path))
        assert answer.status == 401 and answer.getheader("WWW-Authenticate"), name
    for role in ROLES[:3]:
        for method, path, body in (("DELETE", "/users/viewer", None),
                                   ("PUT", "/users/viewer/grants", {"grants": ["*=admin"]})):
            assert coordinator.call(method, path, tokens[role, True], body)[0].status == 403
    assert coordinator.call("PUT", "/users/viewer/grants", tokens["admin", True], {"grants": []})[0].status == 200
    assert coordinator.call("GET", "/clients", tokens["viewer", True])[0].status == 403
    assert coordinator.call("DELETE", "/users/operator", tokens["admin", True])[0].status == 200
    assert coordinator.call("GET", "/clients", tokens["operator", True])[0].status == 401
    print(f"ok {tried} calls")


def raw(coordinator, text):
    """Sends bytes over TLS and returns everything that comes back."""
    context = ssl.create_default_context(cafile=str(coordinator.data / "api-cert.pem"))
    with socket.create_connection((coordinator.host, coordinator.port), 60) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as link:
            link.sendall(text.encode())
            received = b""
            while piece := link.recv(65536):
                received += piece
    return received.decode(errors="replace")


def attacks(coordinator):
    admin = coordinator.token("root", "admin")
    call = coordinator.call
    assert call("GET", "/identity", admin)[0].status == 200
    # A token counts only in its header: not in the URL, a cookie, or with another scheme.
    for path, headers in ((f"/identity?token={admin}", {}), (f"/identity?access_token={admin}", {}),
                          ("/identity", {"Cookie": f"token={admin}"}),
                          ("/identity", {"Authorization": "Basic " + admin}),
                          ("/identity", {"Authorization": "bearer"}), ("/identity", {"Authorization": ""})):
        assert call("GET", path, headers=headers)[0].status == 401, path
    # A form of another site can send neither the header nor JSON.
    answer, _ = call("POST", "/clients", admin, {"key": "ab" * 32}, {"Content-Type": "text/plain"})
    assert answer.status == 415
    for header in ("Access-Control-Allow-Origin", "Set-Cookie"):
        assert call("GET", "/identity", admin, headers={"Origin": "https://evil.example"})[0].getheader(header) is None
    answer, _ = call("GET", "/identity", admin)
    assert answer.getheader("Content-Security-Policy") == "default-src 'none'; frame-ancestors 'none'"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Cache-Control") == "no-store"
    assert call("OPTIONS", "/clients", admin, headers={"Origin": "https://evil.example"})[0].status == 405
    # A body is refused from its length, before it is read, and for a stranger before anything else.
    for token, status in ((admin, "413"), ("none", "401")):
        reply = raw(coordinator, f"POST /api/v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
                                 "Content-Type: application/json\r\nContent-Length: 99999999999\r\n"
                                 "Connection: close\r\n\r\n{")
        assert reply.startswith("HTTP/1.1 " + status), reply
    two = raw(coordinator, f"GET /api/v1/identity HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {admin}\r\n"
                           "Authorization: Bearer none\r\nConnection: close\r\n\r\n")
    assert two.startswith("HTTP/1.1 401"), two
    reply = raw(coordinator, f"POST /api/v1/clients HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {admin}\r\n"
                             "Content-Type: application/json\r\nContent-Length: 65537\r\nConnection: close\r\n\r\n[")
    assert reply.startswith("HTTP/1.1 413"), reply
    # Deep and wrong JSON.
    for text, status in (("[" * 60000, 400), ("{" + '"a":' * 50 + "1" + "}" * 50, 400), ("\xff", 400)):
        connection = coordinator.connection()
        connection.request("POST", "/api/v1/clients", text.encode("latin-1"),
                           {"Authorization": "Bearer " + admin, "Content-Type": "application/json"})
        assert connection.getresponse().status == status, text[:20]
    # Names are data, in every direction.
    call("POST", "/clients", admin, {"key": "ab" * 32})
    for name in ("<script>alert(1)</script>", "'; DROP TABLE clients; --", "${jndi:ldap://x}", "名前"):
        answer, body = call("PATCH", "/clients/0", admin, {"name": name})
        assert answer.status == 200 and body["name"] == name, body
    for name in ("a\u0000b", "a\u202eb", "a\nb"):  # U+202E turns the direction of what follows
        assert call("PATCH", "/clients/0", admin, {"name": name})[0].status == 400
    # Wrong tokens: after ten in a minute, the address is refused even with a right one.
    statuses = [call("GET", "/identity", "fedge_" + "0" * 64)[0].status for _ in range(12)]
    assert statuses.count(401) >= 1 and statuses[-1] == 429, statuses
    assert call("GET", "/identity", admin)[0].status == 429
    # The socket of this machine is not affected.
    assert "uid" in coordinator.here("whoami")
    # The token is in no file of the coordinator and in no log.
    secret = admin.removeprefix("fedge_")
    for path in [coordinator.log_path, *coordinator.data.rglob("*")]:
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    print("ok")


def story(coordinator):
    boss = coordinator.token("boss", "operator")
    url = f"https://localhost:{coordinator.port}"
    # A self-signed certificate is trusted only if its fingerprint is given, and no other afterwards.
    refused = coordinator.fedge("login", url, "--token-file", "-", stdin=boss, code=1)
    assert coordinator.fingerprint() in refused, refused
    wrong = coordinator.fedge("login", url, "--fingerprint", "0" * 64, stdin=boss, code=1)
    assert "has the fingerprint " + coordinator.fingerprint() in wrong, wrong
    bad = coordinator.fedge("login", url, "--fingerprint", coordinator.fingerprint(), stdin="fedge_nonsense", code=1)
    assert "does not know the access token" in bad, bad
    assert "user boss" in coordinator.fedge("login", url, "--fingerprint", coordinator.fingerprint(), stdin=boss)
    logins = pathlib.Path(coordinator.environment["XDG_CONFIG_HOME"]) / "fedge" / "logins.json"
    assert logins.stat().st_mode & 0o777 == 0o600
    # The same commands, without --data-dir.
    join = coordinator.fedge("token", "create", "--name", "laptop of ward 3", "--labels", "ward-3,laptop").strip()
    assert join.startswith("fedge1.")
    state = coordinator.data.parent / "device"
    device = subprocess.Popen([BIN / "fedge-client", "--state-dir", state, "run", "--token-file", "-"],
                              stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    device.stdin.write(join)
    device.stdin.close()
    until = time.monotonic() + 60
    while json.loads(coordinator.fedge("client", "ls", "--label", "ward-3", "--format", "json"))[0]["state"] != "enrolled":
        assert time.monotonic() < until
        time.sleep(0.1)
    shown = json.loads(coordinator.fedge("client", "set", "0", "--labels", "ward-4", "--format", "json"))
    assert shown["labels"] == ["ward-4"] and shown["name"] == "laptop of ward 3", shown
    assert coordinator.fedge("client", "revoke", "0").startswith("client 0 is revoked")
    device.terminate()
    device.wait(60)
    entries = json.loads(coordinator.here("audit", "ls", "--format", "json"))
    by = [(one["actor"], one["action"], one["details"].get("from")) for one in entries]
    assert ("user boss", "client.described", "127.0.0.1") in by, by
    assert ("user boss", "client.revoked", "127.0.0.1") in by, by
    # An operator is no administrator.
    denied = coordinator.fedge("audit", "ls", code=1)
    assert "user boss needs the role admin" in denied, denied
    # A file that others can read holds no secrets.
    logins.chmod(0o644)
    assert "can be read by other users" in coordinator.fedge("whoami", code=1)
    logins.chmod(0o600)
    # After a new certificate, the tool refuses until somebody logs in again.
    coordinator.stop()
    for name in ("api-cert.pem", "api-key.pem"):
        (coordinator.data / name).unlink()
    old = coordinator.port
    coordinator.start()
    text = logins.read_text().replace(f":{old}", f":{coordinator.port}")
    logins.write_text(text)
    assert "log in again" in coordinator.fedge("whoami", code=1)
    # A certificate without its key is not replaced in silence.
    coordinator.stop()
    (coordinator.data / "api-key.pem").unlink()
    done = subprocess.run([BIN / "fedge-coordinator", "--data-dir", coordinator.data, "--listen", "127.0.0.1:0",
                           "--api-listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "api-key.pem is missing" in done.stderr, done.stderr
    # A log for programs: every line is an object with its time in UTC.
    (coordinator.data / "api-cert.pem").unlink()
    coordinator.log_path = coordinator.data.parent / "log.json"
    coordinator.start("--log-format", "json")
    coordinator.stop()
    lines = [json.loads(line) for line in coordinator.log().splitlines()]
    assert {"api.listening", "coordinator.listening"} <= {line["event"] for line in lines}, lines
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines), lines
    # Without a coordinator the commands work on the data directory, and say so in the audit log.
    assert coordinator.here("client", "set", "0", "--name", "in a drawer")
    assert coordinator.fedge("logout").startswith("logged out at https://localhost:")
    print("ok")


def filled_world(coordinator):
    """Something behind each path of the API. Returns an administrator's token."""
    coordinator.token("alice", "viewer")  # access token 1, which tests may revoke
    coordinator.here("token", "create")
    coordinator.here("client", "add", "ab" * 32)
    run = coordinator.data.parent / "run.toml"
    run.write_text(RUN)
    coordinator.here("run", "submit", run)
    return coordinator.token("root", "admin")


def parameters(coordinator):
    """Every parameter of every request with values that nobody expects: a clear refusal, and the coordinator lives."""
    admin = filled_world(coordinator)
    _, openapi = coordinator.call("GET", "/openapi.json")
    numbers = ["0", "1", "-1", "+1", "%201", "1e3", "1001", "4294967296", "99999999999999999999", "", "x", "%00", "%ff", "1%2F2"]
    tried = 0

    def send(method, path, name, body=None):
        answer, text = coordinator.call(method, path, admin, body)
        assert answer.status != 401, (name, path)
        assert answer.status < 500 or answer.status == 503, (name, path, answer.status, text)
        assert answer.status < 400 or text["detail"], (name, path, answer.status, text)
        assert coordinator.process.poll() is None, (name, path)
        return answer.status, text

    for path, method, operation in operations(openapi):
        name = operation["operationId"]
        if name == "watchEvents":
            continue
        for parameter in operation["parameters"]:
            if parameter["in"] == "header":
                continue
            for value in numbers:
                if parameter["in"] == "path":
                    send(method, re.sub(r"\{.*?\}", value or "%20", path), name)
                else:
                    status, text = send(method, f"{filled(path)}?{parameter['name']}={value}", name)
                    if parameter["name"] == "limit":
                        assert (status == 400) == (value != "1"), (name, value, status, text)
                tried += 1
        for body in ({}, [], None, 1, {"": 1}, {"key": None}, {"count": -1}, {"labels": [None]}):
            send(method, filled(path), name, body)
            tried += 1
    print(f"ok {tried} requests")


def schemathesis(coordinator):
    """Requests that the OpenAPI document allows, and some that it does not, made by schemathesis."""
    program = shutil.which("schemathesis")
    if not program:
        print("skipped: schemathesis is not installed (pip install schemathesis)")
        sys.exit(SKIPPED)
    admin = filled_world(coordinator)
    root = f"https://{coordinator.host}:{coordinator.port}/api/v1"
    done = subprocess.run(
        [program, "run", root + "/openapi.json", "--url", root, "--tls-verify", "false", "-H", "Authorization: Bearer " + admin,
         # It would end its own access, or wait for ever.
         "--exclude-operation-id", "watchEvents", "--exclude-operation-id", "revokeAccessToken", "--exclude-operation-id",
         "removeUser", "--exclude-operation-id", "grantRoles", "--seed", "1", "--max-examples", "40", "--checks",
         "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth"],
        cwd=coordinator.data.parent, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0 and coordinator.process.poll() is None, done.stdout[-6000:] + coordinator.log()
    print("ok")


def queue(coordinator):
    """A user who fills the queue before it is removed gets nothing done afterwards."""
    admin = coordinator.token("root", "admin")
    malory = coordinator.token("malory", "admin")
    results = []

    def send(method, path, token, body=None):
        results.append((path, coordinator.call(method, path, token, body)[0].status))

    threads = []
    for request in (("POST", "/join-tokens", admin, {"count": 20000}), ("DELETE", "/users/malory", admin),
                    ("POST", "/users", malory, {"name": "evil", "grants": ["*=admin"]})):
        thread = threading.Thread(target=send, args=request)
        thread.start()
        threads.append(thread)
        # The next request follows when this one has arrived: the writing thread takes seconds for the first.
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert dict(results)["/users/malory"] == 200 and dict(results)["/users"] in (401, 503), results
    names = [user["name"] for user in coordinator.call("GET", "/users", admin)[1]["items"]]
    assert "evil" not in names, names
    print("ok")


def projects(coordinator):
    """A run of one project does not exist for clients of another, until they are moved."""
    coordinator.here("project", "add", "card")
    coordinator.here("project", "add", "onco")
    place = coordinator.data.parent
    (place / "machines.csv").write_text("temperature,ok\n" + "70,yes\n90,no\n" * 40)
    join = coordinator.here("token", "create", "--project", "onco").strip()
    device = subprocess.Popen(
        [BIN / "fedge-client", "--state-dir", place / "device", "run", "--token-file", "-", "--data",
         f"machines={place / 'machines.csv'}"], stdin=subprocess.PIPE, stderr=open(place / "device.log", "wb"), text=True)
    device.stdin.write(join)
    device.stdin.close()
    run = place / "run.toml"
    run.write_text(RUN.replace("clients = 3", "clients = 1"))
    admin = coordinator.token("ann", "card=submitter")
    body = {"document": run.read_text(), "project": "card"}
    assert coordinator.call("POST", "/runs", admin, body)[0].status == 201

    def wait(until_true):
        until = time.monotonic() + 60
        while not until_true():
            assert time.monotonic() < until, coordinator.log()
            time.sleep(0.05)

    def one(path, token):
        return coordinator.call("GET", path, token)[1]

    wait(lambda: "client.connected" in coordinator.log())
    wait(lambda: (one("/runs/1", admin)["run"]["reason"] or "").startswith("waiting for clients: 0 of 1"))
    # The device is connected for longer than a run needs to find a client of its own project.
    assert one("/clients", admin)["items"] == []
    assert "client.declined" not in coordinator.log()
    assert "run.described" not in (place / "device.log").read_text()
    assert one("/runs/1/rounds", admin)["items"] == []
    coordinator.here("client", "set", "0", "--project", "card")
    wait(lambda: one("/runs/1", admin)["run"]["state"] == "finished")
    assert len(one("/runs/1/rounds", admin)["items"]) == 2
    # A client that is moved away leaves the run in progress.
    endless = body | {"document": body["document"].replace("rounds = 2", "rounds = 100000")}
    assert coordinator.call("POST", "/runs", admin, endless)[0].status == 201
    wait(lambda: one("/runs/2", admin)["run"]["rounds"] >= 2)
    coordinator.here("client", "set", "0", "--project", "onco")
    wait(lambda: (one("/runs/2", admin)["run"]["reason"] or "").startswith("waiting for clients: 0 of 1"))
    device.terminate()
    device.wait(60)
    print("ok")


def ending(coordinator):
    """A coordinator that is told to stop while requests and streams come in ends in order."""
    token = coordinator.token("ann", "viewer")

    def ask():
        try:
            link = coordinator.connection()
            while True:
                link.request("GET", "/api/v1/identity", headers={"Authorization": "Bearer " + token})
                link.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # it has ended

    for _ in range(6):
        threads = [threading.Thread(target=ask) for _ in range(30)]
        watching = Events(coordinator, token)
        for thread in threads:
            thread.start()
        wait_for(lambda: coordinator.call("GET", "/identity", token)[0].status == 200, coordinator)
        coordinator.stop()  # checks the exit code
        for thread in threads:
            thread.join()
        watching.wait(lambda one: one.ended)
        coordinator.start()
    print("ok")


run_case({"document": document, "roles": roles, "attacks": attacks, "parameters": parameters, "schemathesis": schemathesis,
          "story": story, "queue": queue, "projects": projects, "ending": ending})
