#!/usr/bin/env bash
# What honest clients notice while others flood their coordinator: starts a release coordinator and swarm_flood.
#   bench/daemons/flood.sh [SECONDS] [KIND...]      default: 20 s of each kind in floods.h
# Needs a built release with -DFEDGE_BUILD_BENCH=ON, and 4,200 file descriptors.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${BIN:-$root/build/release/bin}
honest=100
seconds=${1:-20}
shift || true
[ $# -gt 0 ] || set -- connections noise slow strangers pings reconnects headers
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

"$bin/swarm_clients" enrol "$work/coordinator" $((honest + 16))
# It waits for more clients than there are.
cat > "$work/run.toml" <<TOML
[run]
name = "flood"
rounds = 1000
seed = 1
wait_for_clients = 1000
[data]
dataset = "fashion-mnist"
partition = { kind = "iid", clients = 1000 }
[model]
kind = "softmax"
[sampling]
kind = "uniform"
clients_per_round = 1000
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
"$bin/swarm_flood" measure "$work/coordinator" "$pid" $honest "$seconds" "$@" || { tail -5 "$work/log" >&2; exit 1; }
echo "log: $(wc -l < "$work/log") lines, $(stat -c %s "$work/log") bytes"
