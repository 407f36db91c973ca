#!/usr/bin/env bash
# What an update of 1 MB costs one coordinator, TLS and durability on: starts a release coordinator and swarm_rounds.
#   bench/daemons/rounds.sh [CLIENTS] [ROUNDS]      default: 1000 clients, 4 rounds
#   bench/daemons/rounds.sh CLIENTS restart         kills the coordinator in the second round and starts it again
# Needs a built release with -DFEDGE_BUILD_BENCH=ON; two processes of CLIENTS + 100 file descriptors, and room for
# CLIENTS MB in WORK (a disk, not a tmpfs).
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${BIN:-$root/build/release/bin}
clients=${1:-1000}
rounds=${2:-4}
restart=
if [ "$rounds" = restart ]; then restart=restart && rounds=3; fi
work=$(mktemp -d -p "${WORK:-/tmp}")
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

"$bin/swarm_clients" enrol "$work/coordinator" "$clients"
# 262,360 parameters; evaluated after the last round alone.
cat > "$work/run.toml" <<TOML
[run]
name = "rounds"
rounds = $((rounds + 1))
seed = 1
wait_for_clients = $clients
evaluate_every = 1000
[data]
dataset = "fashion-mnist"
partition = { kind = "iid", clients = $clients }
[model]
kind = "mlp"
hidden = [330]
[sampling]
kind = "uniform"
clients_per_round = $clients
[strategy]
kind = "fedavg"
TOML
start() { # ADDRESS
  : > "$work/ready"
  "$bin/fedge-coordinator" --data-dir "$work/coordinator" --listen "$1" --run "$work/run.toml" \
    --out "$work/out" --threads 1 --log-level "${LOG_LEVEL:-warning}" --ready-fd 3 3> "$work/ready" >> "$work/log" 2>&1 &
  pid=$!
  while [ ! -s "$work/ready" ]; do
    kill -0 "$pid" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.02
  done
}
start 127.0.0.1:0
"$bin/swarm_rounds" "$work/coordinator" "$pid" "$clients" "$rounds" $restart & swarm=$!
if [ -n "$restart" ]; then
  address=$(cat "$work/ready")
  wait "$pid" 2>/dev/null || true
  start "$address"
fi
wait "$swarm" || { tail -5 "$work/log" >&2; exit 1; }
