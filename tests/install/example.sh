#!/bin/sh
# example.sh CMAKE PREFIX EXAMPLE BUILD TYPE GENERATOR: builds a copy of the example against the installed Fedge, and
# lets it check its run file, which names its part.
set -e
rm -rf "$4"
mkdir -p "$4"
cp -r "$3" "$4/source"
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
if command -v mold >/dev/null; then export LDFLAGS=-fuse-ld=mold; fi
"$1" -G "$6" -S "$4/source" -B "$4/build" -DCMAKE_PREFIX_PATH="$2" -DCMAKE_BUILD_TYPE="$5"
"$1" --build "$4/build"
program=$(find "$4/build" -maxdepth 1 -name '*-sim')
"$program" run "$4/source/run.toml" --check
rm -rf "$4"
