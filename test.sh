#!/usr/bin/env bash
# Sets up, builds and runs the test suite; see --help.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
source "$root/scripts/packages.sh"

usage() {
  cat <<'TEXT'
Usage: ./test.sh [--quick] [--preset NAME] [--no-install]

Installs missing packages (packages.txt), builds and runs the tests. The last line says how many
passed and failed; the exit code is 0 only if none failed.

  --quick         unit tests alone
  --preset NAME   a preset of CMakePresets.json: dev (default), asan or tsan
  --no-install    never call apt-get
  --help          this text
TEXT
}

quick=false
install=true
preset=dev
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=true ;;
    --no-install) install=false ;;
    --preset)
      if [ $# -lt 2 ]; then
        echo "test.sh: --preset needs a name (see --help)" >&2
        exit 2
      fi
      preset=$2
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "test.sh: unknown option '$1' (see --help)" >&2
      exit 2
      ;;
  esac
  shift
done

if $install; then
  fedge_install_packages build test
fi

cd -- "$root"
build=build/$preset
targets=()
selection=()
if $quick; then
  targets=(--target unit_tests)
  selection=(--tests-regex '^unit_')
fi

started=$SECONDS
if ! { cmake --preset "$preset" && cmake --build "$build" "${targets[@]}"; }; then
  echo "test.sh: the build failed" >&2
  exit 1
fi
echo "Built in $((SECONDS - started)) s."

report=$PWD/$build/test-report.xml
rm -f -- "$report"
status=0
ctest --test-dir "$build" --parallel "$(nproc)" --timeout 600 --no-tests=error --output-on-failure \
  --output-junit "$report" "${selection[@]}" || status=$?
if [ ! -s "$report" ]; then
  echo "test.sh: ctest left no report" >&2
  exit 1
fi

# The counts are attributes of the report's first element, <testsuite tests="..." failures="..." ...>.
attribute() {
  sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$report" | head -n 1
}
tests=$(attribute tests)
failed=$(attribute failures)
skipped=$(($(attribute skipped) + $(attribute disabled)))
passed=$((tests - failed - skipped))
if [ "$skipped" -gt 0 ]; then
  echo "$skipped skipped: something they need is not installed"
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
  echo "test.sh: ctest failed with exit code $status" >&2
fi
echo "$passed passed, $failed failed"
exit $((status != 0))
