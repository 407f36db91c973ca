#!/usr/bin/env bash
# The table of README.md beside this: what a secure sum costs, as Markdown.
#   bench/secure_aggregation/table.sh [PARAMETERS [CLIENTS...]]    by default 100000 100 500 1000
# Needs a quiet machine and a built release with the benchmarks (BIN names another directory of programs);
# 15 minutes, with 1,000,000 parameters an hour.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${BIN:-$root/build/release/bin}
parameters=${1:-100000}
shift || true
[ $# -gt 0 ] || set -- 100 500 1000
echo "| clients | dropout | graph | client s | kB up | kB down | server s | unmasking | masks | MB |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for clients in "$@"; do
  for dropout in 0 0.1 0.3; do
    for graph in complete sparse curious; do
      # Of its columns: clients, dropout, degree and threshold, a client's seconds, kB up and down, the
      # coordinator's seconds in all, of unmasking, masks, MB.
      "$bin/bench_secure_costs" "$clients" "$parameters" "$dropout" "$graph" |
        awk -F ' *[|] *' -v graph="$graph" '{ gsub(" / ", "/", $5);
          printf "| %s | %s | %s %s | %s | %s | %s | %s | %s | %s | %s |\n",
                 $2, $4, graph, $5, $7, $9, $10, $15, $14, $16, $17 }'
    done
  done
done
