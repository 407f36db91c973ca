#!/usr/bin/env bash
# Measures what an update of 1 MB costs one coordinator, with TLS and durable writes, with swarm_rounds.
#   bench/daemons/rounds.sh [CLIENTS] [ROUNDS]      default: 1000 clients, 4 rounds
#   bench/daemons/rounds.sh CLIENTS restart         kills the coordinator in the second round and starts it again
# Needs a built release with -DFEDGE_BUILD_BENCH=ON; two processes of CLIENTS + 100 file descriptors, and room for
# CLIENTS MB in WORK (a disk, not a tmpfs).
set -euo pipefail
# shellcheck source=bench/daemons/coordinator.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/coordinator.sh"
clients=${1:-1000}
rounds=${2:-4}
restart=
if [ "$rounds" = restart ]; then restart=restart && rounds=3; fi

"$bin/swarm_clients" enrol "$work/coordinator" "$clients"
# 262,360 parameters; evaluated only after the last round.
run_file rounds $((rounds + 1)) "$clients" 'kind = "mlp"
hidden = [330]'
start 127.0.0.1:0 --threads 1
"$bin/swarm_rounds" "$work/coordinator" "$pid" "$clients" "$rounds" $restart & swarm=$!
if [ -n "$restart" ]; then
  address=$(cat "$work/ready")
  wait "$pid" 2>/dev/null || true
  start "$address" --threads 1
fi
wait "$swarm" || give_up
