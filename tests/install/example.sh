#!/bin/sh
# example.sh CMAKE PREFIX EXAMPLE BUILD [ARGUMENT...]: builds a copy of the example against the installed Fedge, with
# these arguments of cmake, and runs a round of its run file on black images.
set -e
cmake=$1 prefix=$2 example=$3 build=$4
shift 4
rm -rf "$build"
mkdir -p "$build/data"
cp -r "$example" "$build/source"
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
if command -v mold >/dev/null; then export LDFLAGS=-fuse-ld=mold; fi
"$cmake" -S "$build/source" -B "$build/build" -DCMAKE_PREFIX_PATH="$prefix" "$@"
"$cmake" --build "$build/build"

# images SPLIT TENS COUNT: so many times ten images of 28x28 pixels, one of each class; COUNT is their number in octal.
images() {
  {
    printf '\0\0\10\3\0\0\0%b\0\0\0\34\0\0\0\34' "\\0$3"
    head -c $(($2 * 7840)) /dev/zero
  } >"$build/data/$1-images-idx3-ubyte"
  {
    printf '\0\0\10\1\0\0\0%b' "\\0$3"
    for _ in $(seq "$2"); do printf '\0\1\2\3\4\5\6\7\10\11'; done
  } >"$build/data/$1-labels-idx1-ubyte"
}
images train 4 50
images t10k 1 12
program=$(find "$build/build" -maxdepth 1 -name '*-sim')
"$program" run "$build/source/run.toml" --set run.rounds=1 --set data.directory="$build/data" --out "$build/out"
test -s "$build/out/model.safetensors"
rm -rf "$build"
