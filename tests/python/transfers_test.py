"""What operators see of uploads and downloads, with real daemons behind a slow network: python3 transfers_test.py BIN CASE.

progress  a model and an update are seen to move; a client that dies ends its transfer, and then continues it
swarm     a model that clients exchange: what the client has of it, from whomever
teams     what a team sees of another's transfers: nothing, whatever it asks for
"""

import json

from coordinator_process import RUN, run_case, start_device, wait_for
from gated_proxy import GatedProxy

MIB = 1 << 20
WINDOW = 2 * MIB  # bytes that are requested in advance
# A model of about 16 MB.
LARGE = (RUN.replace("clients = 3", "clients = 1").replace('kind = "softmax"', 'kind = "mlp"\nhidden = [2000, 2000]')
         + "[sampling]\nclients_per_round = 1\n")


class Scene:
    """A run of one client behind a proxy. The run belongs to the project card."""

    def __init__(self, coordinator, rounds, more=""):
        self.coordinator = coordinator
        for project in ("card", "onco"):
            coordinator.here("project", "add", project)
        place = coordinator.data.parent
        (place / "machines.csv").write_text("temperature,ok\n" + "70,yes\n90,no\n" * 20)
        self.data = ("--data", f"machines={place / 'machines.csv'}")
        self.ann = coordinator.token("ann", "card=viewer")
        self.proxy = GatedProxy(int((coordinator.data / "address").read_text().strip().rsplit(":", 1)[1]))
        join = coordinator.here("token", "create", "--project", "card", "--address",
                                f"127.0.0.1:{self.proxy.port}").strip()
        self.device = start_device(coordinator, "device", join, *self.data)
        wait_for(lambda: "client.connected" in coordinator.log(), coordinator)
        self.run = place / "run.toml"
        self.run.write_text(LARGE.replace("rounds = 2", f"rounds = {rounds}") + more)

    def submit(self):
        self.coordinator.here("run", "submit", self.run, "--project", "card")

    def ask(self, path, token=None, status=200):
        answer, body = self.coordinator.call("GET", path, token or self.ann)
        assert answer.status == status, (path, answer.status, body)
        return body

    def transfers(self, query="", token=None):
        return self.ask("/transfers" + query, token)["items"]

    def wait(self, holds):
        """Waits until the list of transfers fulfils a condition, and returns it."""
        found = []

        def look():
            found[:] = self.transfers()
            return holds(found)

        wait_for(look, self.coordinator)
        return list(found)

    def wait_for_one(self, direction, least):
        """Waits until the only transfer has this direction, and this many bytes of it are done."""
        return self.wait(lambda list_: len(list_) == 1 and list_[0]["direction"] == direction and
                         list_[0]["done"] >= least)[0]


def progress(coordinator):
    scene = Scene(coordinator, 2)
    proxy, device = scene.proxy, scene.device
    assert scene.transfers() == []

    # The model: the coordinator has sent what the proxy let through, and what was requested in advance.
    proxy.down.allow(5 * MIB)
    scene.submit()
    one = scene.wait_for_one("download", 4 * MIB)
    assert one["object"] == "model" and one["run"] == 1 and one["client"] == 0 and one["round"] == 1, one
    assert one["kind"] == "training" and one["project"] == "card" and one["waits_for"] is None, one
    assert 15 * MIB < one["bytes"] < 17 * MIB and one["done"] <= 5 * MIB + WINDOW, one
    proxy.down.allow(3 * MIB)
    more = scene.wait_for_one("download", 7 * MIB)
    assert more["done"] <= 8 * MIB + WINDOW and (more["transfer"], more["since"]) == (one["transfer"], one["since"]), more

    # Its client dies: nothing is being downloaded any more. It returns, and what it has counts.
    device.kill()
    device.wait(60)
    proxy.drop()
    scene.wait(lambda list_: list_ == [])
    proxy.down.allow(2 * MIB)
    device = start_device(coordinator, "device", "", *scene.data)
    again = scene.wait_for_one("download", 7 * MIB)
    assert again["transfer"] > one["transfer"] and again["done"] <= 10 * MIB + WINDOW, again

    # The update.
    proxy.up.allow(4 * MIB)
    proxy.down.allow(float("inf"))
    one = scene.wait_for_one("upload", 3 * MIB)
    assert one["object"] == "update" and one["done"] <= 4 * MIB < 15 * MIB < one["bytes"], one
    task = scene.ask("/runs/1/progress")["tasks"][0]
    assert task["stage"] == "uploading" and task["received_bytes"] == one["done"] and task["bytes"] == one["bytes"], task
    table = coordinator.here("client", "transfers")
    assert "update" in table and " of 16.0 MB" in table, table
    assert coordinator.here("client", "transfers", "0", "--run", "1", "--project", "card") == table
    listed = json.loads(coordinator.here("client", "transfers", "--format", "json"))
    assert [(item["transfer"], item["done"]) for item in listed] == [(one["transfer"], one["done"])], listed
    assert " %)" in coordinator.here("run", "progress", "1")
    for query in (("1",), ("--run", "2"), ("--project", "onco")):
        assert json.loads(coordinator.here("client", "transfers", *query, "--format", "json")) == [], query

    # Its client dies: nothing is being uploaded any more. It returns, and what has arrived counts.
    device.kill()
    device.wait(60)
    proxy.drop()
    scene.wait(lambda list_: list_ == [])
    assert scene.ask("/runs/1/progress")["tasks"][0]["received_bytes"] is None
    proxy.up.allow(1 * MIB)
    device = start_device(coordinator, "device", "", *scene.data)
    again = scene.wait_for_one("upload", one["done"])
    assert again["transfer"] > one["transfer"] and again["bytes"] == one["bytes"], again
    assert again["done"] <= one["done"] + 1 * MIB, again

    # The rest of the run: at its end, nothing moves.
    proxy.up.allow(float("inf"))
    wait_for(lambda: scene.ask("/runs/1")["run"]["state"] == "finished", coordinator)
    assert scene.transfers() == []
    device.terminate()
    device.wait(60)
    # Without a coordinator, nothing moves either.
    coordinator.stop()
    assert json.loads(coordinator.here("client", "transfers", "--format", "json")) == []
    print("ok")


def swarm(coordinator):
    scene = Scene(coordinator, 1, '[dissemination]\nkind = "swarm"\n')
    proxy = scene.proxy
    proxy.down.allow(6 * MIB)
    scene.submit()
    one = scene.wait_for_one("download", 4 * MIB)
    assert one["object"] == "model" and 15 * MIB < one["bytes"] and one["done"] <= 6 * MIB, one
    proxy.up.allow(3 * MIB)
    proxy.down.allow(float("inf"))
    one = scene.wait_for_one("upload", 2 * MIB)  # the download has ended
    proxy.up.allow(float("inf"))
    wait_for(lambda: scene.ask("/runs/1")["run"]["state"] == "finished", coordinator)
    assert scene.transfers() == []
    print("ok")


def teams(coordinator):
    scene = Scene(coordinator, 100000)
    other = coordinator.token("olga", "onco=admin")
    both = coordinator.token("bob", "card=viewer,onco=viewer")
    proxy = scene.proxy
    proxy.up.allow(2 * MIB)
    scene.submit()
    one = scene.wait_for_one("upload", 1 * MIB)
    # An administrator of another project asks for it in every way.
    for query in ("", "?run=1", "?client=0", "?project=card", "?project=onco", "?limit=1", "?after=0",
                  f"?after={one['transfer'] - 1}&limit=1000", "?run=1&client=0&project=card"):
        page = scene.ask("/transfers" + query, other)
        assert page == {"items": [], "next": None}, (query, page)
    scene.ask("/runs/1/progress", other, 404)
    for token in (both, coordinator.token("root", "viewer")):
        assert [item["transfer"] for item in scene.transfers("?project=card&limit=1", token)] == [one["transfer"]]
        assert scene.transfers("?project=onco", token) == []
    # The client is moved to the other project: the transfer ends, and is not shown there either.
    coordinator.here("client", "set", "0", "--project", "onco")
    scene.wait(lambda list_: list_ == [])
    assert scene.transfers("", other) == []
    # Wrong parameters are refused by name, and without a token nothing is told.
    for query, word in (("?run=x", "run"), ("?client=4294967296", "client"), ("?limit=1001", "limit"),
                        ("?after=-1", "after"), ("?state=moving", "state")):
        assert f"'{word}'" in (detail := scene.ask("/transfers" + query, status=400)["detail"]) or \
            f"parameter {word} " in detail, detail
    assert coordinator.call("GET", "/transfers")[0].status == 401
    proxy.up.allow(float("inf"))
    print("ok")


run_case({"progress": progress, "swarm": swarm, "teams": teams})
