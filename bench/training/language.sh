#!/usr/bin/env bash
# Compares a transformer's training step with PyTorch's, both on one thread, in alternation. First it trains all
# weights, then only adapters of rank 8.
#   bench/training/language.sh [BENCH_LANGUAGE]     default: build/release/bin/bench_language
# PYTHONS lists the Pythons whose PyTorch is compared; default: /usr/bin/python3.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
program=${1:-$here/../../build/release/bin/bench_language}
if [ ! -x "$program" ]; then
  echo "language.sh: $program is not there: build it with cmake --preset release -DFEDGE_BUILD_BENCH=ON" >&2
  exit 1
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
read -r -a pythons <<<"${PYTHONS:-/usr/bin/python3}"
cores="Zen Haswell"
if grep -q -w avx512f /proc/cpuinfo; then cores="$cores SkylakeX"; fi
for rank in 0 8; do
  for turn in 1 2 3; do
    echo "rank $rank, turn $turn, Fedge:            $("$program" --rank $rank --steps 10)"
    for python in "${pythons[@]}"; do
      libraries=$("$python" -c 'import torch; print(torch.__config__.show())' 2>/dev/null) || libraries=
      case $libraries in
        "") echo "skipped: $python has no PyTorch; install python3-torch for the comparison" ;;
        *BLAS_INFO=mkl*) echo "rank $rank, turn $turn, PyTorch with MKL: $("$python" "$here/torch_language.py" $rank 10)" ;;
        *)
          for core in $cores; do
            echo "rank $rank, turn $turn, OpenBLAS $core: $(
              OPENBLAS_CORETYPE=$core "$python" "$here/torch_language.py" $rank 10
            )"
          done
          ;;
      esac
    done
  done
done
