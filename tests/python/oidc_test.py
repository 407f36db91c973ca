"""Tokens of an organisation's identity provider at the admin API of a real coordinator: python3 oidc_test.py BIN CASE.

tokens    each algorithm with an independent implementation, attacks on tokens, and the limit on wrong ones
rotation  keys that are replaced while the coordinator runs, also by broken files
users     roles by project, removed users, and streams of events that end with the token, the user or the key
login     fedge login with such a token, the audit log, --check-config, and a coordinator without right keys
"""

import hashlib
import hmac
import json
import os
import subprocess
import time

from coordinator_process import BIN, Events, run_case, wait_for
from token_signing import CurveKey, EdwardsKey, RsaKey, encoded, token_of

ISSUER, AUDIENCE = "https://id.hospital.org/realms/staff", "https://fedge.hospital.org"
ALICE = "alice@hospital.org"


class Issuer:
    """An identity provider whose key set is a file, and a coordinator that trusts it."""

    def __init__(self, coordinator, keys):
        self.coordinator = coordinator
        self.file = coordinator.data.parent / "keys.json"
        self.settings = coordinator.data.parent / "coordinator.toml"
        self.settings.write_text(f'[api]\nlisten = "127.0.0.1:0"\n[api.oidc]\nissuer = "{ISSUER}"\n'
                                 f'audience = "{AUDIENCE}"\nkey_set = "{self.file}"\n'
                                 'user_claim = "preferred_username"\n')
        self.keys = keys
        self.publish(*keys)
        coordinator.stop()
        coordinator.start("--config", self.settings)

    def publish(self, *names):
        self.write(json.dumps({"keys": [{"kid": name, "use": "sig", **self.keys[name].jwk()} for name in names]}))

    def write(self, text):
        new = self.file.with_suffix(".new")
        new.write_text(text)
        os.replace(new, self.file)

    def token(self, kid, algorithm, user=ALICE, seconds=600, **more):
        now = int(time.time())
        return token_of(self.keys[kid], {"alg": algorithm, "kid": kid, "typ": "at+jwt"},
                        {"iss": ISSUER, "aud": ["account", AUDIENCE], "iat": now - 60, "exp": now + seconds,
                         "preferred_username": user, **more})

    def answer(self, token, method="GET", path="/identity", body=None):
        answer, text = self.coordinator.call(method, path, token, body)
        return answer.status, text

    def refused(self, token, reason):
        status, text = self.answer(token)
        assert status == 401 and reason in text["detail"], (status, text, reason)


def three_keys():
    return {"rsa": RsaKey(), "curve": CurveKey(), "edwards": EdwardsKey()}


def tokens(coordinator):
    issuer = Issuer(coordinator, three_keys())
    coordinator.here("user", "add", ALICE, "--role", "viewer")
    good = {algorithm: issuer.token(kid, algorithm) for kid, algorithm in
            (("rsa", "RS256"), ("rsa", "PS256"), ("curve", "ES256"), ("edwards", "EdDSA"))}
    for algorithm, token in good.items():
        status, text = issuer.answer(token)
        assert status == 200 and text["name"] == "user " + ALICE, (algorithm, status, text)
    # Attacks: nine, because the address is blocked after ten wrong tokens.
    header, payload, signature = good["RS256"].split(".")
    issuer.refused(f"{header}.{payload}.", "its signature is wrong")
    issuer.refused(encoded(b'{"alg":"none"}') + f".{payload}.", "its algorithm (alg) is 'none'")
    changed = encoded(json.dumps({"iss": ISSUER, "preferred_username": "root"}).encode())
    issuer.refused(f"{header}.{changed}.{signature}", "its signature is wrong")
    shared = encoded(b'{"alg":"HS256","kid":"rsa"}') + "." + payload
    secret = json.dumps(RsaKey().jwk()).encode()
    issuer.refused(shared + "." + encoded(hmac.new(secret, shared.encode(), hashlib.sha256).digest()),
                   "its algorithm (alg) is 'HS256'")
    issuer.refused(issuer.token("curve", "ES256", aud="account"), "it is not for the audience")
    issuer.refused(issuer.token("curve", "ES256", iss=ISSUER + "/"), "it was issued by")
    issuer.refused(issuer.token("curve", "ES256", seconds=-60), "it expired at")
    issuer.refused(issuer.token("edwards", "EdDSA", user="mallory"), "has no user 'mallory'")
    issuer.keys["mine"] = CurveKey()
    issuer.refused(token_of(issuer.keys["mine"], {"alg": "ES256", "kid": "curve", "jwk": issuer.keys["mine"].jwk()},
                            {"iss": ISSUER}), "its signature is wrong")
    # The longest token is accepted, and a longer one is the tenth that is wrong.
    room = (8192 - len(issuer.token("curve", "ES256", filler=""))) * 3 // 4 - 3
    assert issuer.answer(issuer.token("curve", "ES256", filler="x" * room))[0] == 200
    issuer.refused(issuer.token("curve", "ES256", filler="x" * (room + 8)), "at most 8192 are accepted")
    status, text = issuer.answer(good["RS256"])
    assert status == 429, (status, text)
    # No secret is kept: signatures of accepted tokens are in no file and in no log.
    for path in [coordinator.log_path, *coordinator.data.rglob("*")]:
        if path.is_file():
            content = path.read_bytes()
            assert all(token.rsplit(".", 1)[1].encode() not in content for token in good.values()), path
    print("ok")


def rotation(coordinator):
    issuer = Issuer(coordinator, {"old": CurveKey(), "new": EdwardsKey()})
    coordinator.here("user", "add", ALICE, "--role", "viewer")
    issuer.publish("old")
    old, new = issuer.token("old", "ES256"), issuer.token("new", "EdDSA")
    assert issuer.answer(old)[0] == 200
    issuer.refused(new, "the key set has no key 'new'")
    # The provider adds a key before it uses it, and takes the former one away later.
    issuer.publish("old", "new")
    assert issuer.answer(old)[0] == 200 and issuer.answer(new)[0] == 200
    issuer.publish("new")
    issuer.refused(old, "the key set has no key 'old'")
    assert issuer.answer(new)[0] == 200
    # A broken version changes nothing and is in the log once, although nobody sends a request.
    issuer.write('{"keys": [')
    wait_for(lambda: "api.keys_refused" in coordinator.log(), coordinator)
    for _ in range(3):
        assert issuer.answer(new)[0] == 200
    issuer.refused(old, "the key set has no key 'old'")
    issuer.file.unlink()
    wait_for(lambda: "No such file or directory" in coordinator.log(), coordinator)
    assert issuer.answer(new)[0] == 200
    assert coordinator.log().count("api.keys_refused") == 2, coordinator.log()
    # An empty set ends all access by tokens of the provider.
    issuer.publish()
    issuer.refused(new, "the key set has no key 'new'")
    wait_for(lambda: coordinator.log().count("api.keys_loaded") >= 4, coordinator)
    print("ok")


def users(coordinator):
    issuer = Issuer(coordinator, three_keys())
    coordinator.here("project", "add", "card")
    coordinator.here("user", "add", ALICE, "--role", "card=operator")
    for name in ("bob", "carol", "dave"):
        coordinator.here("user", "add", name + "@hospital.org", "--role", "viewer")
    token = issuer.token("curve", "ES256", roles=["admin"], realm_access={"roles": ["admin"]})
    # Roles are those of the book, in its projects, and the audit log names the user.
    assert issuer.answer(token, "POST", "/join-tokens", {"project": "card", "no_address": True})[0] == 201
    status, text = issuer.answer(token, "POST", "/join-tokens", {"project": "default", "no_address": True})
    assert status in (403, 404), text
    assert issuer.answer(token, "GET", "/users")[0] == 403
    entries = json.loads(coordinator.here("audit", "ls", "--format", "json"))
    assert [one["actor"] for one in entries if one["action"] == "token.created"] == ["user " + ALICE], entries
    # A stream ends when its token expires, a minute after its time; others go on.
    going = Events(coordinator, issuer.token("rsa", "RS256", user="bob@hospital.org"))
    expiring = Events(coordinator, issuer.token("rsa", "RS256", user="bob@hospital.org", seconds=-60 + 8))
    removed = Events(coordinator, issuer.token("edwards", "EdDSA", user="carol@hospital.org"))
    keyless = Events(coordinator, issuer.token("curve", "ES256", user="dave@hospital.org"))
    expiring.wait(lambda one: one.ended)
    assert not removed.ended and not keyless.ended and not going.ended
    # A removed user is refused at once, and its stream ends.
    gone = issuer.token("edwards", "EdDSA", user="carol@hospital.org")
    assert issuer.answer(gone)[0] == 200
    coordinator.here("user", "remove", "carol@hospital.org")
    issuer.refused(gone, "has no user 'carol@hospital.org'")
    removed.wait(lambda one: one.ended)
    # So does a stream whose key is taken away.
    issuer.publish("rsa", "edwards")
    keyless.wait(lambda one: one.ended)
    assert not going.ended
    # The name of a removed user stays taken.
    coordinator.here("user", "add", "carol@hospital.org", "--role", "viewer", code=1)
    print("ok")


def login(coordinator):
    issuer = Issuer(coordinator, three_keys())
    coordinator.here("user", "add", ALICE, "--role", "operator")
    file = coordinator.data.parent / "token.jwt"
    file.write_text(issuer.token("rsa", "RS256", groups=["staff"] * 400) + "\n")  # longer than 4 KiB
    assert file.stat().st_size > 4096
    url = f"https://localhost:{coordinator.port}"
    fingerprint = ("--fingerprint", coordinator.fingerprint())
    assert "user " + ALICE in coordinator.fedge("login", url, "--token-file", file, *fingerprint)
    assert ALICE in coordinator.fedge("whoami")
    assert coordinator.fedge("token", "create", "--name", "laptop").startswith("fedge1.")
    stale = coordinator.fedge("login", url, *fingerprint, stdin=issuer.token("rsa", "RS256", seconds=-60), code=1)
    assert "the identity provider's token is not accepted: it expired at" in stale, stale
    # An access token of Fedge's own works beside it.
    own = coordinator.here("user", "token", "create", ALICE).strip()
    assert "user " + ALICE in coordinator.fedge("login", url, *fingerprint, stdin=own)
    # --check-config judges the key set.

    def checked(code):
        done = subprocess.run([BIN / "fedge-coordinator", "--config", issuer.settings, "--check-config"], check=False,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    assert "the configuration is valid" in checked(0)
    issuer.write('{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}')
    assert f"{issuer.file}: key 1: it has the secret member k" in checked(1)
    coordinator.stop()
    done = subprocess.run([BIN / "fedge-coordinator", "--data-dir", coordinator.data, "--listen", "127.0.0.1:0",
                           "--config", issuer.settings], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "key 1: it has the secret member k" in done.stderr, done.stderr
    print("ok")


run_case({"tokens": tokens, "rotation": rotation, "users": users, "login": login})
