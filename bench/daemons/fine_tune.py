#!/usr/bin/env python3
"""Fine-tunes a published language model in a federation of real processes, once for each of three strategies.

  bench/daemons/fine_tune.py MODEL [--tokenizer FILE] [--texts DIR] [--clients 4] [--rounds 20] [--prompt TEXT]

MODEL is anything that `fedge model import` reads; a model of llama2.c needs its --tokenizer. Each client is a
daemon of its own, joins with a token over TLS, and states a capability of 0.25, 0.5 or 1. Each has natural groups of
the texts: WordNet's lexicographer files or, with --texts, the files of DIR. PreLort trains adapters of three ranks,
ParaBlock all weights block by block, and SplitFT the adapters with a cut for each device. Prints the bits a byte of
held-out text, the traffic and a greedy text, before and after. The same run in virtual time must give the same model.
Needs a built release (BIN names another directory of programs).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("BIN", str(ROOT / "build/release/bin"))
CAPABILITIES = (0.25, 0.5, 1.0)
STRATEGIES = {
    "PreLort": """adapter = {rank = 8}
[strategy]
kind = "prelort"
planner = {ranks = [2, 4, 8], capability = "declared"}
""",
    "ParaBlock": """[strategy]
kind = "parablock"
""",
    "SplitFT": """adapter = {rank = 8}
[strategy]
kind = "splitft"
planner = {cut = "resources", capability = "declared", shares = [0.25, 0.5, 1.0], cut_ranks = 4}
""",
}
RATES = {"PreLort": 0.005, "ParaBlock": 0.002, "SplitFT": 0.005}


def fedge(*arguments):
    done = subprocess.run([os.path.join(BIN, arguments[0]), *map(str, arguments[1:])], text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def write_run(file, base, name, options):
    texts = f'dataset = "text"\ndirectory = "{options.texts}"' if options.texts else 'dataset = "wordnet"'
    file.write_text(f"""[run]
name = "{name.lower()}"
rounds = {options.rounds}
evaluate_every = {options.rounds}
chunk_size = 16384
[data]
{texts}
context = 128
test_windows = 2
partition = {{kind = "natural", clients = {options.clients}}}
[training]
batch_size = 8
local_steps = 10
optimizer = {{kind = "adamw", learning_rate = {RATES[name]}}}
[sampling]
clients_per_round = {options.clients}
[simulation.device]
capabilities = {list(CAPABILITIES)}
capability_order = "dealt"
[model]
base = "{base}"
{STRATEGIES[name]}""", encoding="utf-8")


def federate(directory, file, options):
    """Runs a coordinator and its clients until the run ends, and returns its rounds and its directory."""
    data, out = directory / "coordinator", directory / "out"
    read, write = os.pipe()
    with open(directory / "log", "w", encoding="utf-8") as log:
        coordinator = subprocess.Popen(
            [os.path.join(BIN, "fedge-coordinator"), "--data-dir", data, "--listen", "127.0.0.1:0", "--run", file,
             "--out", out, "--ready-fd", str(write)], pass_fds=[write], stdout=log, stderr=log)
        os.close(write)
        with os.fdopen(read) as ready:
            address = ready.readline().split()
        if not address:
            sys.exit((directory / "log").read_text())
        clients = []
        for index in range(options.clients):
            state = directory / f"device{index}"
            token = fedge("fedge", "token", "create", "--data-dir", data, "--address", address[-1]).strip()
            fedge("fedge-client", "join", token, "--state-dir", state)
            place = f"text={options.texts}" if options.texts else "wordnet=/usr/share/wordnet"
            clients.append(subprocess.Popen(
                [os.path.join(BIN, "fedge-client"), "run", "--once", "--state-dir", state, "--data", place,
                 "--allow-split", "--capability", str(CAPABILITIES[index % len(CAPABILITIES)])],
                stdout=log, stderr=log))
        code = coordinator.wait(timeout=options.timeout)
        for client in clients:
            client.wait(timeout=60)
    if code != 0:
        sys.exit((directory / "log").read_text()[-4000:])
    return out


def rounds(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def bits(model, options):
    place = ["--dataset", "text", "--directory", options.texts] if options.texts else ["--dataset", "wordnet"]
    figures = fedge("fedge", "model", "evaluate", model, "--format", "json", *place).splitlines()
    return json.loads(figures[-1])["bits_per_byte"]


def text(model, options):
    return fedge("fedge", "model", "generate", model, "--temperature", 0, "--tokens", options.tokens, "--prompt",
                 options.prompt).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokenizer", help="the tokenizer.bin of a model of llama2.c")
    parser.add_argument("--texts", help="a directory with one file of text for each group")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--prompt", default="Define dog: ")
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--timeout", type=float, default=1200)
    options = parser.parse_args()
    if options.texts:
        options.texts = os.path.abspath(options.texts)
    with tempfile.TemporaryDirectory() as name:
        base = pathlib.Path(name) / "base.safetensors"
        tokenizer = ["--tokenizer", options.tokenizer] if options.tokenizer else []
        fedge("fedge", "model", "import", options.model, "--out", base, *tokenizer)
        print(f"before: {bits(base, options):.3f} bits per byte\n{text(base, options)}\n", flush=True)
        for strategy in STRATEGIES:
            directory = pathlib.Path(name) / strategy
            directory.mkdir()
            file = directory / "run.toml"
            write_run(file, base, strategy, options)
            out = federate(directory, file, options)
            measured = rounds(out)
            fedge("fedge-sim", "run", file, "--out", directory / "simulated")
            if [r["model_hash"] for r in measured] != [r["model_hash"] for r in rounds(directory / "simulated")]:
                sys.exit(f"{strategy}: virtual time gives another model")
            sent = {way: sum(r[f"bytes_{way}"] for r in measured) / 1e6 for way in ("up", "down")}
            model = out / "model.safetensors"
            print(f"{strategy}: {bits(model, options):.3f} bits per byte, {sent['up']:.1f} MB up, "
                  f"{sent['down']:.1f} MB down\n{text(model, options)}\n", flush=True)


if __name__ == "__main__":
    main()
