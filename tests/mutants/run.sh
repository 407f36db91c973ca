#!/usr/bin/env bash
# Mutation tests: makes one small breaking change at a time and requires the tests to fail. See README.md in
# this folder.
set -euo pipefail

usage() {
  echo "usage: tests/mutants/run.sh [--list] [--check] [NAME...]     (no name: every mutant of lists/)" >&2
  exit 2
}
fail() {
  echo "run.sh: $*" >&2
  exit 2
}

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
readonly tree=build/mutants/tree
readonly log=build/mutants/log

# Tables of the mutants, filled by the lists: what each breaks, the file, the old and new code, and its tests.
declare -a names=()
declare -A claims files olds news tests programs
mutant() {
  current=$1
  [ -z "${claims[$current]+there}" ] || fail "two mutants are called $current"
  names+=("$current")
  claims[$current]=$2
  tests[$current]=
  programs[$current]=
}
file() { files[$current]=$1; }
old() { olds[$current]=$1; }
new() { news[$current]=$1; }
caught_by() { # PROGRAM PART: the tests of this program whose names match the regular expression PART
  programs[$current]+="$1 "
  tests[$current]+="^$1: *.*($2)"$'\n'
}
for list in tests/mutants/lists/*.sh tests/mutants/lists/*/*.sh; do
  # shellcheck source=/dev/null
  . "$list"
done

# Fails unless the old code occurs exactly once in its file: otherwise the mutant would change nothing, or the
# wrong place.
mutated() { # NAME TREE: prints the changed file, and an x that preserves trailing line ends
  local text before after
  text=$(cat "$2/${files[$1]}" && echo x)
  before=${text%%"${olds[$1]}"*}
  [ "$before" != "$text" ] || fail "$1: ${files[$1]} does not have its old text any more"
  after=${text#*"${olds[$1]}"}
  [[ $after != *"${olds[$1]}"* ]] || fail "$1: ${files[$1]} has its old text more than once"
  printf '%s' "$before${news[$1]}$after"
}

build() { # PROGRAM...
  nice cmake --build "$tree/build/dev" --target "$@" >"$log/build" 2>&1 ||
    { tail -n 40 "$log/build" >&2 && fail "it does not build"; }
}

# Prints the CTest numbers of the tests that these mutants name; fails if a name matches no test.
numbers_of() { # NAME...
  local name wanted found
  for name in "$@"; do
    while read -r wanted; do
      found=$(ctest --test-dir "$tree/build/dev" -N -R "$wanted" | sed -n 's/^ *Test *#\([0-9]*\): .*/\1/p')
      [ -n "$found" ] || fail "$name: no test is called $wanted"
      echo "$found"
    done <<<"${tests[$name]%$'\n'}"
  done | sort -n -u
}

# Runs the tests of these mutants; fails if a test fails.
run_tests() { # NAME...
  local numbers
  numbers=$(numbers_of "$@" | tr '\n' ',') || exit 2
  ctest --test-dir "$tree/build/dev" --no-tests=error --verbose --parallel "$(nproc)" \
    -I "0,0,0,${numbers%,}" >"$log/tests" 2>&1
}

noticed_by() { sed -n '/tests FAILED:/,$ s/^[[:space:]]*[0-9]* - \(.*\) ([^()]*)$/\1/p' "$log/tests"; }

chosen=()
for argument in "$@"; do
  case $argument in
    --list)
      for name in "${names[@]}"; do printf '%-32s %s\n' "$name" "${claims[$name]}"; done
      exit 0
      ;;
    --check)
      for name in "${names[@]}"; do mutated "$name" . >/dev/null; done
      echo "${#names[@]} mutants, each with its place"
      exit 0
      ;;
    -*) usage ;;
    *)
      [ -n "${claims[$argument]+there}" ] || fail "there is no mutant '$argument'; see --list"
      chosen+=("$argument")
      ;;
  esac
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${names[@]}")

# Copies the tracked files, including uncommitted changes; keeps the previous build.
mkdir -p "$tree" "$log"
find "$tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z | tar --create --null --files-from=- | tar --extract --touch --directory="$tree"
(cd "$tree" && cmake --preset dev) >"$log/configure" 2>&1 ||
  { tail -n 40 "$log/configure" >&2 && fail "it cannot be configured"; }
for name in "${chosen[@]}"; do mutated "$name" "$tree" >/dev/null; done

# Runs the tests without a mutant first: a test that fails or is skipped then cannot detect a mutant.
needed=
for name in "${chosen[@]}"; do needed+="${programs[$name]}"; done
read -r -a targets <<<"$(tr ' ' '\n' <<<"$needed" | sort -u | tr '\n' ' ')"
build "${targets[@]}"
run_tests "${chosen[@]}" || { noticed_by >&2 && fail "these tests fail without any mutant"; }
if grep 'skipped: ' "$log/tests" >&2; then fail "tests that are skipped see no mutant"; fi
echo "unchanged: $(grep -c ' Passed ' "$log/tests") tests pass"

survivors=0
for name in "${chosen[@]}"; do
  path=$tree/${files[$name]}
  changed=$(mutated "$name" "$tree")
  cp "$path" "$log/original"
  printf '%s' "${changed%x}" >"$path"
  read -r -a targets <<<"${programs[$name]}"
  build "${targets[@]}"
  if run_tests "$name"; then
    echo "$name: SURVIVED (${claims[$name]})"
    survivors=$((survivors + 1))
  else
    echo "$name: caught by:"
    noticed_by | sort -u | sed 's/^/    /'
    noticed_by | grep -q . || fail "$name: ctest failed without naming a test; see $log/tests"
  fi
  cp "$log/original" "$path"
done
echo "$((${#chosen[@]} - survivors)) of ${#chosen[@]} mutants caught"
[ "$survivors" -eq 0 ]
