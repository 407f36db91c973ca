#!/usr/bin/python3
"""Compiles each source by itself, without generating code.

The default build compiles several sources as one unit (cmake/room.cmake), so a source may depend on an include or a
name of the source before it. This program finds such sources. It needs the packages that test.sh installs.

    tests/single_files.py             every source
    tests/single_files.py --since REV the sources of every top-level folder that changed since a revision;
                                      every source if a header of core/ changed
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "single"


def commands():
    """Returns, for each source of the project, its entry in the compilation database without unity builds."""
    subprocess.run(["cmake", "--preset", "dev", "-B", BUILD, "-DFEDGE_UNITY=OFF"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "--target", "fedge_messages"], check=True, stdout=subprocess.DEVNULL)
    database = json.loads((BUILD / "compile_commands.json").read_text())
    return {entry["file"]: entry for entry in database if not entry["file"].startswith(str(BUILD))}


def changed_folders(revision):
    """Returns the top-level folders that changed; None if a header of core/ changed."""
    names = subprocess.run(["git", "diff", "--name-only", revision], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split("\n")
    if any(name.startswith("core/") and name.endswith(".h") for name in names):
        return None
    return {name.split("/")[0] for name in names}


def check(entry):
    """Returns the compiler's errors for a source; an empty string if it compiles."""
    words = shlex.split(entry["command"])
    at = words.index("-o")
    del words[at:at + 2]
    done = subprocess.run([*words, "-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr or f"{entry['file']}: {done.returncode}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--since", metavar="REV")
    revision = parser.parse_args().since
    folders = changed_folders(revision) if revision else None
    chosen = [entry for file, entry in sorted(commands().items())
              if folders is None or pathlib.Path(file).relative_to(ROOT).parts[0] in folders]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for complaint in pool.map(check, chosen):
            sys.stderr.write(complaint)
            failed += complaint != ""
    print(f"single files: {len(chosen) - failed} of {len(chosen)} sources compile by themselves")
    return 1 if failed or (not chosen and not revision) else 0


sys.exit(main())
