#!/usr/bin/env bash
# Sets up, builds, and trains on real data over TLS with separate processes; see --help.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
source "$root/scripts/packages.sh"
# shellcheck source=scripts/build.sh
source "$root/scripts/build.sh"

usage() {
  cat <<'TEXT'
Usage: ./demo.sh [--clients N] [--rounds N] [--out DIR] [--no-install]

Installs missing packages (packages.txt), builds a release, starts one coordinator and several client
daemons as processes on loopback, and trains an MLP on Fashion-MNIST, split unequally over the
clients, over mutual TLS. Ctrl-C stops everything it started and leaves nothing behind.

  --clients N     client processes (default 10)
  --rounds N      rounds of training (default 8)
  --out DIR       where model, metrics and report go (default demo-out, whose earlier results are replaced)
  --no-install    never call apt-get
  --help          this text
TEXT
}

clients=10
rounds=8
out=demo-out
force=(--force)  # overwrites only the demo's default directory
install=true
need_value() {
  if [ "$2" -lt 2 ]; then
    echo "demo.sh: $1 needs a value (see --help)" >&2
    exit 2
  fi
}
need_number() {
  if ! [[ $2 =~ ^[1-9][0-9]{0,3}$ ]]; then
    echo "demo.sh: $1 needs a number from 1 to 9999, not '$2'" >&2
    exit 2
  fi
}
while [ $# -gt 0 ]; do
  case $1 in
    --clients) need_value "$1" $#; clients=$2; need_number "$1" "$2"; shift ;;
    --rounds) need_value "$1" $#; rounds=$2; need_number "$1" "$2"; shift ;;
    --out) need_value "$1" $#; out=$2; force=(); shift ;;
    --no-install) install=false ;;
    --help | -h) usage; exit 0 ;;
    *)
      echo "demo.sh: unknown option '$1' (see --help)" >&2
      exit 2
      ;;
  esac
  shift
done

if $install; then
  fedge_install_packages build
fi

bin=$root/build/release/bin
build() {
  local log=$root/build/release/build.log
  mkdir -p -- "$root/build/release"
  echo "Building the programs (log: build/release/build.log)"
  if ! (cd -- "$root" && fedge_timed_build release --target fedge fedge-coordinator fedge-client) >"$log" 2>&1; then
    tail -n 30 -- "$log" >&2
    echo "demo.sh: the build failed" >&2
    exit 1
  fi
  tail -n 1 -- "$log"
}
build

scratch=$(mktemp -d)
pids=()
# Ends the started processes within about five seconds and removes the temporary files.
clean_up() {
  trap '' INT TERM
  if [ ${#pids[@]} -gt 0 ]; then
    kill -TERM "${pids[@]}" 2>/dev/null || true
    for _ in $(seq 50); do
      kill -0 "${pids[@]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
  fi
  rm -rf -- "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkfifo -- "$scratch/ready"
"$bin/fedge-coordinator" --data-dir "$scratch/coordinator" --listen 127.0.0.1:0 --log-level warning \
  --run "$root/examples/fashion-mlp.toml" --set "run.rounds=$rounds" --set "data.partition.clients=$clients" \
  --set "sampling.clients_per_round=$clients" --set run.name=demo --out "$out" "${force[@]}" --ready-fd 3 3>"$scratch/ready" &
coordinator=$!
pids+=("$coordinator")
if ! read -r address <"$scratch/ready"; then
  echo "demo.sh: the coordinator did not start" >&2
  exit 1
fi
echo "Coordinator listens on $address; starting $clients clients"

"$bin/fedge" token create --data-dir "$scratch/coordinator" --count "$clients" >"$scratch/tokens"
mapfile -t tokens <"$scratch/tokens"
for i in "${!tokens[@]}"; do
  "$bin/fedge-client" --state-dir "$scratch/client-$i" --log-level warning run --once --token "${tokens[$i]}" \
    >"$scratch/client-$i.log" 2>&1 &
  pids+=($!)
done

# Waits until the coordinator ends or any process fails.
running=("${pids[@]}")
while :; do
  ended=
  status=0
  wait -n -p ended "${running[@]}" || status=$?
  if [ "$status" -ne 0 ] || [ "$ended" = "$coordinator" ]; then
    break
  fi
  for i in "${!running[@]}"; do
    [ "${running[$i]}" != "$ended" ] || unset "running[$i]"
  done
done
if [ "$status" -ne 0 ] && [ "$ended" != "$coordinator" ]; then
  tail -n 3 -- "$scratch"/client-*.log >&2 || true
  echo "demo.sh: a client failed with exit code $status" >&2
  exit "$status"
fi
if [ "$status" -ne 0 ]; then
  tail -n 3 -- "$scratch"/client-*.log >&2 || true
  echo "demo.sh: the coordinator failed with exit code $status" >&2
  exit "$status"
fi

cat <<TEXT

Next, try:
  cmake --build build/release --target fedge-sim                     builds the simulator, once
  build/release/bin/fedge-sim run examples/fashion-mlp.toml          the same run in virtual time, in seconds
  build/release/bin/fedge-sim run examples/fashion-mlp.toml --set data.partition.alpha=0.1
  build/release/bin/fedge reference                                  every key of a run file
TEXT
