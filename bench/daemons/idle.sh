#!/usr/bin/env bash
# Measures what thousands of idle clients cost one coordinator, with swarm_clients.
#   bench/daemons/idle.sh [CLIENTS] [SECONDS]      default: 10000 clients, idle for 60 s
# Needs a built release with -DFEDGE_BUILD_BENCH=ON; two processes of CLIENTS + 100 file descriptors.
set -euo pipefail
# shellcheck source=bench/daemons/coordinator.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/coordinator.sh"
clients=${1:-10000}
seconds=${2:-60}

"$bin/swarm_clients" enrol "$work/coordinator" $((clients + 1))
# One client fewer connects than the run waits for, so that no round starts.
run_file idle 1000 $((clients + 1)) 'kind = "softmax"'
start 127.0.0.1:0
"$bin/swarm_clients" measure "$work/coordinator" "$pid" "$clients" "$seconds" || give_up
