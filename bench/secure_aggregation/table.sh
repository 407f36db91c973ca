#!/usr/bin/env bash
# Prints the table of README.md in this folder, as Markdown: the cost of a secure sum.
#   bench/secure_aggregation/table.sh [PARAMETERS [CLIENTS...]]    by default 100000 100 500 1000
# Needs an idle machine and a built release with the benchmarks (BIN names another directory of programs).
# Takes 15 minutes, or an hour with 1,000,000 parameters.
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
      # Selects these columns: clients, dropout, degree and threshold, a client's seconds, kB up, kB down, the
      # coordinator's seconds in total and for unmasking, masks, MB.
      "$bin/bench_secure_costs" "$clients" "$parameters" "$dropout" "$graph" |
        awk -F ' *[|] *' -v graph="$graph" '{ gsub(" / ", "/", $5);
          printf "| %s | %s | %s %s | %s | %s | %s | %s | %s | %s | %s |\n",
                 $2, $4, graph, $5, $7, $9, $10, $15, $14, $16, $17 }'
    done
  done
done
