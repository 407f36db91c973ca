"""Shell completion and manual pages of all programs, in the shells themselves: python3 completion_test.py BIN SHELL"""

import pathlib
import re
import shutil
import subprocess
import sys

BIN = pathlib.Path(sys.argv[1])
SHELL = sys.argv[2]
PROGRAMS = ["fedge", "fedge-coordinator", "fedge-client", "fedge-sim", "fedge-lab"]
SKIPPED = 77

# What is typed, and some of the words that must and must not be offered.
TYPED = [
    (["fedge", ""], ["client", "run", "token", "login"], ["ls", "--format"]),
    (["fedge", "cl"], ["client"], ["run"]),
    (["fedge", "client", ""], ["ls", "show", "revoke", "set"], ["client", "create"]),
    (["fedge", "client", "ls", "--fo"], ["--format"], ["--state"]),
    (["fedge", "client", "ls", "--format", ""], ["table", "json"], ["--format", "ls"]),
    (["fedge", "client", "ls", "--format", "json", "--la"], ["--label"], []),
    (["fedge", "user", "token", ""], ["create", "ls", "revoke"], ["add"]),
    (["fedge", "user", "token", "create", "alice", "--role", ""], ["viewer", "submitter", "operator", "admin"], []),
    (["fedge-coordinator", "--log-level", "wa"], ["warning"], ["error"]),
    (["fedge-client", "run", "--tr"], ["--trainer"], []),
    (["fedge-sim", ""], ["run", "sweep", "compare"], ["swarm"]),
    (["fedge-lab", "attack", ""], ["--help"], []),
]


def script(program):
    done = subprocess.run([BIN / program, "--completion", SHELL], capture_output=True, text=True, check=True)
    return done.stdout


def in_bash(words):
    quoted = " ".join("'" + word + "'" for word in words)
    function = "_" + words[0].replace("-", "_")
    text = (script(words[0]) + f"\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; compopt() {{ :; }}\n"
            f"{function}; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n")
    return subprocess.run(["bash", "--norc", "-u"], input=text, capture_output=True, text=True, check=True,
                          timeout=60)


def in_zsh(words):
    # compadd and _files exist only while a line is edited; these print what they would offer.
    quoted = " ".join("'" + word + "'" for word in words)
    function = "_" + words[0].replace("-", "_")
    text = ("compdef() { : }\n_files() { print FILES }\n"
            "compadd() { shift; for w in $@; do [[ $w == ${words[CURRENT]}* ]] && print -- $w; done; true }\n"
            + script(words[0]) + f"\nwords=({quoted}); CURRENT={len(words)}\n{function}\n")
    return subprocess.run(["zsh", "-f"], input=text, capture_output=True, text=True, check=True, timeout=60)


def in_fish(words):
    typed = " ".join(words)
    text = script(words[0]) + f"\ncomplete -C '{typed}'\n"
    return subprocess.run(["fish", "--no-config"], input=text, capture_output=True, text=True, check=True, timeout=60)


def man_pages():
    for program in PROGRAMS:
        page = subprocess.run([BIN / program, "--help-man"], capture_output=True, text=True, check=True).stdout
        checked = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True,
                                 check=False)
        worse = [line for line in checked.stdout.splitlines() if "missing date" not in line]
        assert not worse, (program, worse[:5])
        shown = subprocess.run(["mandoc", "-T", "ascii"], input=page, capture_output=True, text=True, check=True).stdout
        shown = re.sub(".\b", "", shown)
        help_text = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"^  (--[a-z-]+)", help_text, re.MULTILINE):
            assert option in shown, (program, option)
        print("ok", program, len(shown.splitlines()), "lines")
    assert "fedge client revoke" in re.sub(".\b", "", subprocess.run(
        ["mandoc", "-T", "ascii"], input=subprocess.run([BIN / "fedge", "--help-man"], capture_output=True, text=True,
                                                        check=True).stdout,
        capture_output=True, text=True, check=True).stdout)


def main():
    needed = "mandoc" if SHELL == "man" else SHELL
    if shutil.which(needed) is None:
        print(f"skipped: {needed} not found (package {needed})")
        sys.exit(SKIPPED)
    if SHELL == "man":
        return man_pages()
    complete = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[SHELL]
    for words, offered, others in TYPED:
        done = complete(words)
        assert not done.stderr, (words, done.stderr)
        got = [line.split("\t")[0].strip() for line in done.stdout.splitlines()]
        # fish offers options only after a dash.
        wanted = [word for word in offered if not (SHELL == "fish" and word.startswith("-") and words[-1] == "")]
        for word in wanted:
            assert word in got, (words, word, got)
        for word in others:
            assert word not in got, (words, word, got)
    done = subprocess.run([BIN / "fedge", "--completion", "csh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "unknown value 'csh'" in done.stderr, done
    print("ok", len(TYPED), "lines")
    return None


main()
