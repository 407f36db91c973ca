# shellcheck shell=bash
# Functions to build and to time builds. test.sh and demo.sh source this file from the root of the checkout.
#   fedge_timed_build PRESET [--target NAME...]     builds a preset of CMakePresets.json and prints the time used
#   fedge_slowest_steps PRESET                      prints the ten slowest steps of its build

# Sets fedge_used to the seconds of processor time that children of this shell have used so far.
_fedge_processor_time() {
  local file
  file=$(mktemp)
  times >"$file"  # no pipe: in a subshell it would count the subshell's children
  fedge_used=$(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$file")
  rm -f -- "$file"
}

fedge_timed_build() {
  local preset=$1 started=$SECONDS before
  shift
  _fedge_processor_time
  before=$fedge_used
  cmake --preset "$preset" && cmake --build "build/$preset" "$@" || return 1
  _fedge_processor_time
  echo "Built in $((SECONDS - started)) s, with $((fedge_used - before)) s of processor time."
}

fedge_slowest_steps() {
  awk -F '\t' '!/^#/ { printf "  %6.1f  %s\n", ($2 - $1) / 1000, $4 }' "build/$1/.ninja_log" |
    sort -rn | sed -n 1,10p  # not head: it would end sort with SIGPIPE, a failure under pipefail
}
