#!/usr/bin/env bash
# Builds one fuzz target with clang (preset `fuzz`) and runs it; see README.md in this folder.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: tests/fuzz/run.sh TARGET SECONDS     (targets: the folders of tests/fuzz/corpus)" >&2
  exit 2
fi
target=$1
seconds=$2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
corpus=tests/fuzz/corpus/$target
if [ ! -d "$corpus" ]; then
  echo "run.sh: there is no target '$target'; see tests/fuzz/corpus" >&2
  exit 2
fi

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "fuzz_$target"
# New corpus inputs stay in the build folder. An input that breaks the target is written to build/fuzz/found/.
grown=build/fuzz/corpus/$target
mkdir -p "$grown" build/fuzz/found
options=(-max_total_time="$seconds" -max_len=4096 -timeout=10 -malloc_limit_mb=16 -rss_limit_mb=1024
  -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-")
if [ -f "tests/fuzz/dictionaries/$target.dict" ]; then
  options+=(-dict="tests/fuzz/dictionaries/$target.dict")
fi
exec "build/fuzz/bin/fuzz_$target" "${options[@]}" "$grown" "$corpus"
