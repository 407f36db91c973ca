#!/bin/sh
# install.sh CMAKE BUILD PREFIX: installs the build, and starts an installed program.
set -e
rm -rf "$3"
"$1" --install "$2" --prefix "$3" >/dev/null
for program in fedge fedge-coordinator fedge-client fedge-sim; do
  "$3/bin/$program" --version
done
