#!/usr/bin/env bash
# Measures the effect on honest clients while others flood their coordinator, with swarm_flood.
#   bench/daemons/flood.sh [SECONDS] [KIND...]      default: 20 s of each kind in floods.h
# Needs a built release with -DFEDGE_BUILD_BENCH=ON, and 4,200 file descriptors.
set -euo pipefail
# shellcheck source=bench/daemons/coordinator.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/coordinator.sh"
honest=100
seconds=${1:-20}
shift || true
[ $# -gt 0 ] || set -- connections noise slow strangers pings reconnects headers

"$bin/swarm_clients" enrol "$work/coordinator" $((honest + 16))
# The run waits for more clients than are enrolled, so that no round starts.
run_file flood 1000 1000 'kind = "softmax"'
start 127.0.0.1:0
"$bin/swarm_flood" measure "$work/coordinator" "$pid" $honest "$seconds" "$@" || give_up
echo "log: $(wc -l < "$work/log") lines, $(stat -c %s "$work/log") bytes"
