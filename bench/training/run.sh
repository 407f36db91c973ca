#!/usr/bin/env bash
# Compares Fedge's local training with a PyTorch loop on the same batches; the two alternate round by round.
#   bench/training/run.sh [--quick] [BENCH_TRAINING]     default: build/release/bin/bench_training
# --quick runs only a few rounds of each, too few to compare learning curves.
# PYTHONS lists the Pythons whose PyTorch is compared, one after the other; default: /usr/bin/python3.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
quick=
if [ "${1:-}" = --quick ]; then
  quick=1
  shift
fi
program=${1:-$here/../../build/release/bin/bench_training}
if [ ! -x "$program" ]; then
  echo "run.sh: $program is not there: build it with cmake --preset release -DFEDGE_BUILD_BENCH=ON" >&2
  exit 1
fi
loop=$here/torch_loop.py

grep -m 1 'model name' /proc/cpuinfo || true
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg); on a busy machine believe the processor time"
"$program" --kernels
echo

# choose_kernels PYTHON: of Debian's OpenBLAS, those that train the MLP fastest on this machine. PyTorch's own
# packages bring other libraries, which choose for themselves.
choose_kernels() {
  unset OPENBLAS_CORETYPE
  if "$1" -c 'import sys, torch; sys.exit("BLAS_INFO=mkl" not in torch.__config__.show())'; then return; fi
  local cores="Zen Haswell" core milliseconds best="" least=""
  if grep -q -w avx512f /proc/cpuinfo; then
    cores="$cores SkylakeX"
  else
    echo "this processor has no AVX-512, which OpenBLAS's SkylakeX kernels need: not tried"
  fi
  for core in $cores; do
    milliseconds=$(OPENBLAS_CORETYPE=$core "$1" "$loop" "$program" --model mlp --rounds 20 --alone)
    echo "PyTorch, mlp, batch 10, OpenBLAS kernels for $core: $milliseconds ms of processor time a client"
    if [ -z "$best" ] || [ "$(printf '%s\n' "$milliseconds" "$least" | sort -g | head -n 1)" = "$milliseconds" ]; then
      best=$core
      least=$milliseconds
    fi
  done
  export OPENBLAS_CORETYPE=$best
  echo "PyTorch below uses those for $best"
}

# compare MODEL BATCH ROUNDS EVALUATE_AFTER
compare() {
  "$python" "$loop" "$program" --model "$1" --batch "$2" --rounds "$3" --evaluate "$4"
}

for python in ${PYTHONS:-/usr/bin/python3}; do
  if ! "$python" -c 'import numpy, torch' 2>/dev/null; then
    echo "skipped: $python has no PyTorch or NumPy; install python3-torch for the comparison"
    continue
  fi
  "$python" -c 'import torch; print("PyTorch", torch.__version__)'
  choose_kernels "$python"
  echo
  if [ -n "$quick" ]; then
    for model in softmax mlp; do compare $model 10 20 10; done
    compare cnn 10 3 3
    continue
  fi
  for batch in 10 20; do
    compare softmax $batch 100 10,50,100
    compare mlp $batch 100 10,50,100
    compare cnn $batch 10 2,5,10
  done
done
