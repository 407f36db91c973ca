#!/bin/sh
# shell.sh SHELLCHECK ROOT: fails if shellcheck objects to a shell script.
set -eu
shellcheck=$1
cd "$2"
find . \( -path ./build -o -path ./.git -o -path ./.deps \) -prune -o \( -name '*.sh' -o -path ./.ci/run \) -type f -print0 |
  xargs -0 "$shellcheck" --external-sources
