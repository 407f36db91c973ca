# shellcheck shell=bash
# Functions to install apt packages. demo.sh, test.sh and scripts/data.sh source this file.
#   fedge_install_packages SECTION...      installs sections of packages.txt, e.g. build test
#   fedge_install PACKAGE...               installs packages by name, e.g. wordnet-base
# If all packages are installed, they do nothing and need neither network nor root.

_fedge_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# Prints the package names of the given sections of packages.txt, one on each line.
fedge_packages() {
  local section
  for section in "$@"; do
    if ! grep -qxF "[$section]" "$_fedge_root/packages.txt"; then
      echo "packages.txt has no section [$section]" >&2
      return 1
    fi
    awk -v wanted="[$section]" '
      { sub(/#.*/, ""); gsub(/[ \t\r]/, "") }
      /^\[/ { inside = ($0 == wanted); next }
      inside && $0 != "" { print }' "$_fedge_root/packages.txt"
  done
}

# Prints the given packages that are not installed, one on each line.
fedge_missing_packages() {
  local package
  for package in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      echo "$package"
    fi
  done
}

fedge_install_packages() {
  local names packages
  names=$(fedge_packages "$@") || return 1
  mapfile -t packages <<<"$names"
  fedge_install "${packages[@]}"
}

fedge_install() {
  local names missing
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is not a Debian system: make sure that what these packages hold is installed: $*" >&2
    return 0
  fi
  names=$(fedge_missing_packages "$@")
  [ -n "$names" ] || return 0
  mapfile -t missing <<<"$names"

  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "Missing packages; as root, run: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo "${as_root[@]}")
  fi
  echo "Installing ${#missing[@]} missing packages with apt-get: ${missing[*]}"
  local options=(-q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  local log
  log=$(mktemp)
  # Updating the package lists may fail if they were fetched before; only the installation must succeed.
  if { "${as_root[@]}" apt-get "${options[@]}" update || true; } </dev/null >"$log" 2>&1 &&
    "${as_root[@]}" apt-get "${options[@]}" --no-install-recommends install "${missing[@]}" </dev/null >>"$log" 2>&1; then
    rm -f -- "$log"
    return 0
  fi
  tail -n 20 -- "$log" >&2
  rm -f -- "$log"
  echo "apt-get could not install: ${missing[*]}" >&2
  return 1
}
