#!/bin/sh
# format.sh CLANG_FORMAT ROOT: fails if a C++ file is not laid out as .clang-format says.
set -eu
clang_format=$1
cd "$2"
find . \( -path ./build -o -name '.?*' \) -prune -o \( -name '*.h' -o -name '*.cc' \) -type f -print0 |
  xargs -0 "$clang_format" --dry-run -Werror --style=file
