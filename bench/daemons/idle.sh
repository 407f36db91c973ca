#!/usr/bin/env bash
# What thousands of idle clients cost one coordinator: starts a release coordinator and swarm_clients.
#   bench/daemons/idle.sh [CLIENTS] [SECONDS]      default: 10000 clients, idle for 60 s
# Needs a built release with -DFEDGE_BUILD_BENCH=ON; two processes of CLIENTS + 100 file descriptors.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${BIN:-$root/build/release/bin}
clients=${1:-10000}
seconds=${2:-60}
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

"$bin/swarm_clients" enrol "$work/coordinator" $((clients + 1))
# With one client fewer than it waits for, the coordinator is idle.
cat > "$work/run.toml" <<TOML
[run]
name = "idle"
rounds = 1000
seed = 1
wait_for_clients = $((clients + 1))
[data]
dataset = "fashion-mnist"
partition = { kind = "iid", clients = $((clients + 1)) }
[model]
kind = "softmax"
[sampling]
kind = "uniform"
clients_per_round = $((clients + 1))
[strategy]
kind = "fedavg"
TOML
"$bin/fedge-coordinator" --data-dir "$work/coordinator" --listen 127.0.0.1:0 --run "$work/run.toml" \
  --out "$work/out" --log-level "${LOG_LEVEL:-warning}" --ready-fd 3 3> "$work/ready" > "$work/log" 2>&1 &
pid=$!
while [ ! -s "$work/ready" ]; do
  kill -0 "$pid" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done
"$bin/swarm_clients" measure "$work/coordinator" "$pid" "$clients" "$seconds" || { tail -5 "$work/log" >&2; exit 1; }
