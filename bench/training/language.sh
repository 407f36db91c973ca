#!/usr/bin/env bash
# Compares a transformer's training step with PyTorch's, both on one thread, in alternation. First it trains all
# weights, then only adapters of rank 8.
#   bench/training/language.sh [BENCH_LANGUAGE]     default: build/release/bin/bench_language
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
program=${1:-$here/../../build/release/bin/bench_language}
if [ ! -x "$program" ]; then
  echo "language.sh: $program is not there: build it with cmake --preset release -DFEDGE_BUILD_BENCH=ON" >&2
  exit 1
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
torch=1
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  echo "skipped: python3-torch not found; install it for the comparison"
  torch=
fi
cores="Zen Haswell"
if grep -q -w avx512f /proc/cpuinfo; then cores="$cores SkylakeX"; fi
for rank in 0 8; do
  for turn in 1 2 3; do
    echo "rank $rank, turn $turn, Fedge:            $("$program" --rank $rank --steps 10)"
    [ -n "$torch" ] || continue
    for core in $cores; do
      echo "rank $rank, turn $turn, OpenBLAS $core: $(OPENBLAS_CORETYPE=$core "$here/torch_language.py" $rank 10)"
    done
  done
done
