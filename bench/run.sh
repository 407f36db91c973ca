#!/usr/bin/env bash
# Builds a release with the benchmarks and runs all of them, one after another; see bench/README.md. With --check, runs
# only the short ones and compares them with bench/figures.tsv. Then it lists the figures that are off by more than a
# third, and ends with 1 if there is one.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
cmake --preset release -DFEDGE_BUILD_BENCH=ON
cmake --build --preset release
if [ "${1:-}" = --check ]; then exec bench/check.py; fi
export OMP_NUM_THREADS=1  # oneDNN and OpenBLAS use one thread, like Fedge's kernels
bin=build/release/bin
grep -m 1 'model name' /proc/cpuinfo || true
for program in bench_accumulator bench_robust bench_codecs bench_samplers bench_aw_psp bench_round_start bench_directory \
    bench_tracks bench_libraries bench_link bench_round bench_joins bench_availability bench_keystream bench_noise; do
  if [ -x "$bin/$program" ]; then
    echo "== $program"
    "$bin/$program"
  fi
done
echo "== secure sums"
bench/secure_aggregation/table.sh 100000 500
echo "== robust rules in NumPy, on 1 and on 2 threads of BLAS"
OMP_NUM_THREADS=1 /usr/bin/python3 bench/aggregation/robust_numpy.py
OMP_NUM_THREADS=2 /usr/bin/python3 bench/aggregation/robust_numpy.py
echo "== disagreements: contamination, load, time"
"$bin/bench_contamination" bench/tracks/tracks.toml
bench/tracks/scenarios.py loads
bench/tracks/scenarios.py times
echo "== training against PyTorch"
bench/training/run.sh
