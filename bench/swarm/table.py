#!/usr/bin/env python3
"""Runs serverless rounds in all their variants and prints Markdown: docs/experiments/fltorrent.md.

    bench/swarm/table.py [--program build/release/bin/fedge-lab] [--jobs 2] [--seeds 5] [--only schedulers]

Tables: time (n = 100, 200, 500, compared with plain swarming), models (cost of larger models), schedulers, flow (when the
greedy scheduler reaches the maximum flow), mechanisms (what each of them hides), gated (the same with a gate), readings
(the possible meanings of k), clients, degree, spray, coalitions, threshold (5, 10 and 50 %), fallback, afterwards, asked
(the neighbours' requests, and blended rounds), vanished.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ATTACKS = ("sequence", "count", "cluster", "absence")
OURS = ("absence", "elimination")
SPLIT = ["--k-mode", "split", "--chunk-order", "random"]
WARMUP = ["--warmup-only"]


def cell(figure, decimals=1):
    if figure is None or figure["mean"] is None:
        return "-"
    text = f"{figure['mean']:.{decimals}f}"
    if figure["half_width"]:
        text += f" ± {figure['half_width']:.{decimals}f}"
    return text


class Bench:
    def __init__(self, options):
        self.options = options
        self.slots = self.seconds = 0

    def run(self, *extra):
        command = [self.options.program, "swarm", "--format", "json", "--jobs", str(self.options.jobs), "--seeds",
                   str(self.options.seeds)] + [str(each) for each in extra]
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True)
        print(" ".join(command[1:]), f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        if done.returncode != 0:
            return {"refused": done.stderr.strip(), "figures": {}}
        result = json.loads(done.stdout)
        self.slots += result["slots"]
        self.seconds += result["wall_seconds"]
        return result

    def table(self, title, head, rows, note=""):
        print(f"### {title}\n\n{note + chr(10) + chr(10) if note else ''}| " + " | ".join(head) + " |")
        print("|" + " --- |" * len(head))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        print(flush=True)

    # Returns the attack success rate of the best observer and, in brackets, the mean of all observers.
    def rates(self, result, attacks=ATTACKS):
        figures = result["figures"]
        return [cell(figures.get(f"asr_{name}_max_percent")) + " (" + cell(figures.get(f"asr_{name}_mean_percent")) +
                ")" for name in attacks]

    def attacked(self, title, first, cases, note=""):
        rows = []
        for name, extra in cases:
            result = self.run("--nodes", 100, *WARMUP, *extra)
            rows.append([name, cell(result["figures"].get("warmup_slots")), cell(result["figures"].get("owner_percent"), 2)]
                        + self.rates(result))
        self.table(title, [first, "warm-up, slots", "own chunks, %"] + [f"{name}, %" for name in ATTACKS], rows,
                   note or "ASR of the best observer and, in brackets, of all in the mean; warm-up alone.")


def times(bench):
    rows = []
    for nodes in bench.options.nodes:
        flow = ["--max-flow", 10] if nodes <= 100 else []
        full = bench.run("--nodes", nodes, "--attack", "none", *flow)["figures"]
        plain = bench.run("--nodes", nodes, "--attack", "none", "--warmup", "none")["figures"]
        round_slots, base = full["round_slots"]["mean"], plain["round_slots"]["mean"]
        sprayed = round_slots + full["spray_slots"]["mean"]
        rows.append([str(nodes), cell(full["threshold"], 0), cell(full["warmup_slots"]), cell(full["round_slots"]),
                     cell(full["warmup_share_percent"]), cell(full["warmup_upload_percent"]),
                     cell(full["upload_percent"]), cell(full["flow_percent"], 2), cell(plain["round_slots"]),
                     f"{100 * (round_slots / base - 1):+.2f}", f"{100 * (sprayed / base - 1):+.2f}"])
    bench.table("Time", ["n", "k", "warm-up, slots", "round, slots", "warm-up of round, %", "upload used in it, %",
                         "in the round, %", "of max flow, %", "plain round, slots", "overhead, %",
                         "with spraying, %"], rows)


# Updates with 16-bit values on links of 7 to 10 Gbit/s: parameters, gigabytes, K (chunks of an update), and the
# rounded number of chunks that a link transfers in a slot, least and most.
MODELS = (("7B", 14, 206, 13, 18), ("14B", 28, 206, 6, 9), ("32B", 64, 412, 6, 8), ("70B", 140, 824, 5, 7))


def models(bench):
    rows = []
    for name, gigabytes, chunks, least, most in MODELS:
        world = ["--nodes", 100, "--attack", "none", "--chunks", chunks, "--up", least, most, "--down", least, most]
        plain = bench.run(*world, "--warmup", "none")["figures"]["round_slots"]["mean"]
        gigabits = 8 * gigabytes / chunks
        row = [name, str(gigabytes), str(chunks), f"{1000 * gigabytes / chunks:.0f}",
               f"{least} to {most} ({7 / gigabits:.2f} to {10 / gigabits:.2f})"]
        for scheduler in ("greedy_fastest_first", "random_fifo"):
            full = bench.run(*world, "--scheduler", scheduler)["figures"]
            row += [cell(full["warmup_slots"]), cell(full["warmup_share_percent"]), cell(full["warmup_upload_percent"]),
                    f"{100 * (full['round_slots']['mean'] / plain - 1):+.2f}"]
        rows.append(row + [f"{plain:.1f}"])
    figures = ["warm-up, slots", "of round, %", "upload used, %", "overhead, %"]
    bench.table("Larger models, n = 100, per_universe",
                ["parameters", "GB", "K", "MB a chunk", "chunks a slot (unrounded)"] +
                [f"{who}: {figure}" for who in ("greedy", "fifo") for figure in figures] + ["plain round, slots"], rows)


def schedulers(bench):
    plain = bench.run("--nodes", 100, "--attack", "none", "--warmup", "none")["figures"]["round_slots"]["mean"]
    rows = []
    for name in ("greedy_fastest_first", "random_fifo", "random_fastest_first", "flooding", "distributed"):
        figures = bench.run("--nodes", 100, "--attack", "none", "--scheduler", name, "--max-flow", 10)["figures"]
        split = bench.run("--nodes", 100, *WARMUP, "--scheduler", name, *SPLIT)["figures"]
        rows.append([name, cell(figures["warmup_slots"]), cell(figures["warmup_share_percent"]),
                     cell(figures["warmup_upload_percent"]), cell(figures["flow_percent"]),
                     cell(figures["flow_least_percent"]), f"{100 * (figures['round_slots']['mean'] / plain - 1):+.2f}",
                     cell(split["asr_sequence_max_percent"]), cell(split["asr_sequence_mean_percent"])])
    bench.table("Schedulers, n = 100", ["scheduler", "warm-up, slots", "of round, %", "upload used, %", "of max flow, %",
                                        "least slot, %", "overhead, %", "sequence, best observer, %", "all, %"], rows,
                "Maximum flow every 10 slots; then plain swarming. The attack: k-mode split, random chunks.")


def flow(bench):
    rows = []
    for name, extra in (("m = 10, down 18 to 60", []), ("m = 5", ["--degree", 5]), ("m = 3", ["--degree", 3]),
                        ("down 7 to 12, as up", ["--down", 7, 12])):
        figures = bench.run("--nodes", 100, *WARMUP, "--attack", "none", "--max-flow", 10, *extra)["figures"]
        rows.append([name, cell(figures["warmup_slots"]), cell(figures["warmup_upload_percent"]),
                     cell(figures["flow_percent"], 2), cell(figures["flow_least_percent"])])
    bench.table("greedy_fastest_first against the maximum flow, every 10 slots, n = 100, per_universe",
                ["world", "warm-up, slots", "upload used, %", "of max flow, %", "least slot, %"], rows)


def mechanisms(bench):
    sets = ["none", "lags", "pre-round", "pre-round,lags", "pre-round,gating", "all"]
    for order in ("rarest", "random"):
        bench.attacked(f"What each mechanism hides, n = 100, {order} first" if order == "rarest" else
                       f"What each mechanism hides, n = 100, {order} chunks", "mechanisms",
                       [(each, ["--warmup", each, "--chunk-order", order]) for each in sets])


def gated(bench):
    helped = ["--owner-fallback", 3]
    sets = (("gating", helped), ("lags,gating", helped), ("pre-round,gating", []), ("pre-round,lags,gating", []),
            ("all", []))
    bench.attacked("What spraying and lags add to a gate, n = 100, split, random chunks", "mechanisms",
                   [(each, ["--warmup", each] + SPLIT + extra) for each, extra in sets],
                   "Without spraying owners help after 3 slots without a transfer, as nothing would ever move.")


def readings(bench):
    bench.attacked("Meanings of k, n = 100, all mechanisms", "k-mode, order", [
        (f"{mode}, {order}", ["--k-mode", mode, "--chunk-order", order])
        for mode in ("per_update", "per_universe", "split") for order in ("rarest", "random")])


def growth(bench):
    rows = []
    for nodes in bench.options.nodes:
        for name, extra in (("per_universe", []), ("split, random", SPLIT)):
            rows.append([f"{nodes}, {name}"] + bench.rates(bench.run("--nodes", nodes, *WARMUP, *extra)))
    bench.table("Growth with n", ["n, k-mode"] + [f"{name}, %" for name in ATTACKS], rows)


def degree(bench):
    bench.attacked("Neighbours, n = 100", "m", [
        (f"{m}, {name}", ["--degree", m] + extra) for m in (5, 10, 15, 25)
        for name, extra in (("per_universe", []), ("split, random", SPLIT))])


def spray(bench):
    bench.attacked("Sprayed share, n = 100, split, random", "R", [
        (f"{ratio:.0%}", ["--spray-ratio", ratio] + SPLIT) for ratio in (0.1, 0.2, 0.3, 0.5)])


def coalitions(bench):
    sizes = (1, 5, 10, 25)
    rows = []
    for name, extra in (("per_universe", []), ("split, random", SPLIT)):
        figures = bench.run("--nodes", 100, *WARMUP, "--coalition", ",".join(map(str, sizes)), *extra)["figures"]
        for size in sizes:
            rows.append([f"{size}, {name}"] + [
                cell(figures[f"coalition_{size}_{attack}_any_percent"]) + " (" +
                cell(figures[f"coalition_{size}_{attack}_mean_percent"]) + ")" for attack in ATTACKS])
    bench.table("Coalitions, n = 100", ["observers"] + [f"{name}, %" for name in ATTACKS], rows,
                "Share of the senders that some member names rightly, and in brackets a member's own ASR; 20 coalitions a seed.")


def threshold(bench):
    rows = []
    for share, extra in ((0.05, []), (0.1, []), (0.5, []), (0.5, ["--spray-ratio", 0.6]), (0.5, ["--owner-fallback", 3])):
        result = bench.run("--nodes", 100, "--threshold", share, "--attack", "sequence", *extra)
        name = f"{share:.0%}" + (", " + " ".join(map(str, extra)) if extra else "")
        if "refused" in result:
            rows.append([name, "refused: " + result["refused"].split("reach: ")[-1].split(": with")[0]] + ["-"] * 5)
            continue
        figures = result["figures"]
        rows.append([name, cell(figures["warmup_slots"]), cell(figures["round_slots"]), cell(figures["warmup_share_percent"]),
                     cell(figures["fallbacks"], 0), cell(figures["owner_percent"], 2),
                     cell(figures["asr_sequence_max_percent"])])
    bench.table("Threshold, n = 100, per_universe", ["alpha", "warm-up, slots", "round, slots", "warm-up of round, %",
                                                     "fallbacks", "own chunks, %", "sequence, %"], rows)


def fallback(bench):
    rows = []
    for name, extra in (("R = 20 %", []), ("R = 10 %", ["--spray-ratio", 0.1]), ("R = 5 %", ["--spray-ratio", 0.05]),
                        ("R = 0", ["--spray-ratio", 0])):
        result = bench.run("--nodes", 100, *WARMUP, "--owner-fallback", 3, *extra)
        figures = result["figures"]
        rows.append([name, "no" if result["deadlock"] else "yes", cell(figures["warmup_slots"]), cell(figures["fallbacks"], 0),
                     cell(figures["owner_percent"], 2)] + bench.rates(result))
    bench.table("Owners who help after 3 slots without a transfer, n = 100, per_universe",
                ["sprayed", "k within reach", "warm-up, slots", "fallbacks", "own chunks, %"] +
                [f"{name}, %" for name in ATTACKS], rows)


def afterwards(bench):
    everything = ["--spray-ratio", 1]
    bench.attacked("What the plain swarm gives away after the warm-up, n = 100, all mechanisms", "looked at", [
        ("the warm-up", []), ("10 slots after it", ["--watch", 10]), ("100 slots after it", ["--watch", 100]),
        ("10 slots, R = 100 %", ["--watch", 10] + everything),
        ("10 slots, R = 60 %, alpha = 50 %", ["--watch", 10, "--spray-ratio", 0.6, "--threshold", 0.5]),
        ("10 slots, R = 100 %, alpha = 50 %", ["--watch", 10, "--threshold", 0.5] + everything)],
                   "ASR of the best observer and, in brackets, of all in the mean; own chunks are those of the warm-up.")


def asked(bench):
    rows = []
    for nodes in (100, 200):
        for sprayed, tunnel in (("strangers", []), ("over a neighbour", ["--relayed-spray"])):
            for mode, extra in (("per_universe", []), ("split, random", SPLIT)):
                for blended in ([], ["--blended"]):
                    result = bench.run("--nodes", nodes, *WARMUP, *tunnel, *extra, *blended)
                    rows.append([str(nodes), mode, sprayed, "yes" if blended else "no",
                                 cell(result["figures"].get("warmup_slots"))] + bench.rates(result, OURS))
    bench.table("What neighbours ask for", ["n", "k-mode", "sprayed to", "blended", "warm-up, slots"] +
                [f"{name}, %" for name in OURS], rows)


def vanished(bench):
    rows = []
    for share, within in ((0.05, 500), (0.2, 500), (0.2, 200)):
        for mechanisms in ("all", "none"):
            result = bench.run("--nodes", 100, "--drop", share, "--drop-slots", within, "--warmup", mechanisms,
                               "--attack", "none")
            figures = result["figures"]
            rows.append([f"{share:.0%} within {within} slots, {mechanisms}", cell(figures["vanished"], 0),
                         cell(figures["warmup_slots"]), cell(figures["round_slots"]),
                         cell(figures["reconstructable_mean"]), cell(figures["reconstructable_least"]),
                         cell(figures["failed_open"], 2)])
    bench.table("Clients that vanish, n = 100", ["share, mechanisms", "clients", "warm-up, slots", "round, slots",
                                                 "updates put together", "least", "failed open"], rows)



TABLES = {"time": times, "models": models, "schedulers": schedulers, "flow": flow,
          "mechanisms": mechanisms, "gated": gated, "readings": readings, "clients": growth, "degree": degree,
          "spray": spray, "coalitions": coalitions, "threshold": threshold, "fallback": fallback,
          "afterwards": afterwards, "asked": asked, "vanished": vanished}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fedge-lab")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 200, 500], help="of the tables time and clients")
    parser.add_argument("--only", default="", help="one of " + ", ".join(TABLES))
    options = parser.parse_args()
    bench = Bench(options)
    begin = time.monotonic()
    print(f"Load of the machine before: {os.getloadavg()[0]:.1f}\n")
    for name, make in TABLES.items():
        if options.only in ("", name):
            make(bench)
    print(f"{bench.slots:.0f} slots in {time.monotonic() - begin:.0f} s on {options.jobs} threads, "
          f"{bench.slots / max(bench.seconds, 1e-9):.0f} a second and thread. Load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
