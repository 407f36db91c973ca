# shellcheck shell=bash
# Starts a release coordinator in a temporary directory. idle.sh, rounds.sh and flood.sh source this file.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${BIN:-$root/build/release/bin}
work=$(mktemp -d -p "${WORK:-/tmp}")
pid=
clean_up() {
  if [ -n "$pid" ]; then kill -KILL "$pid" && wait "$pid"; fi 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

run_file() { # NAME ROUNDS CLIENTS MODEL: writes a run file; the run waits for CLIENTS clients
  cat > "$work/run.toml" <<TOML
[run]
name = "$1"
rounds = $2
seed = 1
wait_for_clients = $3
evaluate_every = 1000
[data]
dataset = "fashion-mnist"
partition = { kind = "iid", clients = $3 }
[model]
$4
[sampling]
kind = "uniform"
clients_per_round = $3
[strategy]
kind = "fedavg"
TOML
}

start() { # ADDRESS [OPTION...]: starts the coordinator and sets pid; writes its address to $work/ready
  : > "$work/ready"
  "$bin/fedge-coordinator" --data-dir "$work/coordinator" --listen "$@" --run "$work/run.toml" \
    --out "$work/out" --log-level "${LOG_LEVEL:-warning}" --ready-fd 3 3> "$work/ready" >> "$work/log" 2>&1 &
  pid=$!
  while [ ! -s "$work/ready" ]; do
    kill -0 "$pid" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.02
  done
}

give_up() { tail -5 "$work/log" >&2; exit 1; }
