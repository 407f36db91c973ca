#!/usr/bin/env bash
# Sets up, builds and runs the test suite; see --help.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
source "$root/scripts/packages.sh"
# shellcheck source=scripts/build.sh
source "$root/scripts/build.sh"

usage() {
  cat <<'TEXT'
Usage: ./test.sh [--quick] [--slow] [--strict] [--preset NAME] [--no-install]

Installs missing packages (packages.txt), builds and runs the tests. The last line says how many passed, failed and
were skipped; the lines before it say why tests were skipped. The exit code is 0 only if none failed.

  --quick         unit tests alone
  --slow          also list the steps of the build and the tests that took longest
  --strict        fail if a test was skipped although packages.txt names the package that it needs
  --preset NAME   a preset of CMakePresets.json: dev (default), asan or tsan
  --no-install    never call apt-get
  --help          this text
TEXT
}

quick=false
slow=false
strict=false
install=true
preset=dev
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=true ;;
    --slow) slow=true ;;
    --strict) strict=true ;;
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

if ! fedge_timed_build "$preset" "${targets[@]}"; then
  echo "test.sh: the build failed" >&2
  exit 1
fi

report=$PWD/$build/test-report.xml
rm -f -- "$report"
status=0
# Runs two tests for each processor: most tests of programs spend their time waiting.
ctest --test-dir "$build" --parallel "$((2 * $(nproc)))" --timeout 600 --no-tests=error --output-on-failure \
  --output-junit "$report" "${selection[@]}" || status=$?
if [ ! -s "$report" ]; then
  echo "test.sh: ctest left no report" >&2
  exit 1
fi

if $slow; then
  echo "The steps of the build that took longest, in seconds:"
  fedge_slowest_steps "$preset"
  echo "The tests that took longest, in seconds:"
  sed -n 's/^[[:space:]]*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$report" |
    sort -rn | awk 'NR <= 20 { seconds = $1; sub(/^[^ ]* /, ""); printf "  %6.1f  %s\n", seconds, $0 }' |
    sed "s/&apos;/'/g; s/&quot;/\"/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g"
fi

# Collects why tests were skipped: each prints "skipped: REASON", with "(package NAME)" if a package is missing.
reasons=$(awk '
  /<testcase / { skipped = 0 }
  /<skipped / { skipped = 1 }
  skipped && match($0, /skipped: .*/) { print substr($0, RSTART + 9); skipped = 0 }' "$report" | sort | uniq -c)
attribute() {  # an attribute of the report's first element, <testsuite tests="..." failures="..." ...>
  sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$report" | sed -n 1p
}
tests=$(attribute tests)
failed=$(attribute failures)
skipped=$(($(attribute skipped) + $(attribute disabled)))
passed=$((tests - failed - skipped))
if [ "$skipped" -gt 0 ]; then
  echo "Skipped tests, by reason:"
  echo "${reasons:-  unknown}"
fi
if $strict; then
  wanted=$(sed -n 's/.*(package \([^)]*\)).*/\1/p' <<<"$reasons" | sort -u)
  if lacking=$(fedge_packages build test | grep -xF -- "$wanted"); then
    echo "test.sh: tests were skipped for want of ${lacking//$'\n'/, }, which packages.txt names" >&2
    status=1
  fi
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
  echo "test.sh: failed with exit code $status although no test did" >&2
fi
echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
exit $((status != 0))
