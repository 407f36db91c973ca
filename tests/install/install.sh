#!/bin/sh
# install.sh CMAKE BUILD PREFIX: installs the build, and starts each installed program.
set -e
rm -rf "$3"
"$1" --install "$2" --prefix "$3" >/dev/null
for program in fedge fedge-coordinator fedge-client fedge-sim fedge-lab; do
  "$3/bin/$program" --version
done
for file in LICENSE NOTICE; do
  test -s "$3/share/doc/fedge/$file"
done
for program in fedge fedge-coordinator fedge-client fedge-sim fedge-lab; do
  for file in bash-completion/completions/$program zsh/site-functions/_$program fish/vendor_completions.d/$program.fish \
              man/man1/$program.1; do
    test -s "$3/share/$file"
  done
done
