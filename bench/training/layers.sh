#!/usr/bin/env bash
# Compares the training step of each list in examples/models/ with PyTorch's, both on one thread, in alternation.
#   bench/training/layers.sh [BENCH_LAYERS]     default: build/release/bin/bench_layers
# PYTHON names another Python with PyTorch than Debian's.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
models=$here/../../examples/models
program=${1:-$here/../../build/release/bin/bench_layers}
python=${PYTHON:-/usr/bin/python3}
if [ ! -x "$program" ]; then
  echo "layers.sh: $program is not there: build it with cmake --preset release -DFEDGE_BUILD_BENCH=ON" >&2
  exit 1
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if grep -q -w avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=SkylakeX; fi
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
torch=1
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: python3-torch not found; install it for the comparison"
  torch=
fi
compare() {
  local model=$1
  shift
  for turn in 1 2 3; do
    echo "$model, turn $turn, Fedge:   $("$program" "$models/$model.toml" "$@" --steps 40)"
    [ -z "$torch" ] || echo "$model, turn $turn, PyTorch: $("$python" "$here/torch_layers.py" "$model" 40)"
  done
}
compare lenet --input 28,28,1 --outputs 10
compare cifar_cnn --input 32,32,3 --outputs 10
compare resnet20 --input 32,32,3 --outputs 10
compare activity_cnn --input 104,6,1 --outputs 5
compare shakespeare_lstm --tokens 80 --outputs 96
