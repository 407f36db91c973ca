"""Tests of the documents: links, command lines, and the commands themselves.

    docs_test.py SOURCE_DIRECTORY BIN_DIRECTORY links|options|messages|PAGE

links    Every relative link leads to a file and, with a '#', to a heading. Every page is reachable from README.md.
options  Every command line of a Fedge program uses a command and options that the program has.
messages Every message that docs/operate/troubleshoot.md quotes is one that a program or the system can print.
PAGE     Runs the page's "sh" blocks in order, in one shell that stops at the first failure, in a copy of the source
         tree. A "text" block after an "sh" block is its expected output: "..." stands for any text, numbers may
         differ by 2 %, hashes may have other digits. An "sh example" block is not run.
"""
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.parse

SKIPPED = 77
SECONDS = 240
PROGRAMS = ("fedge", "fedge-sim", "fedge-lab", "fedge-client", "fedge-coordinator")
FENCE = re.compile(r"^```([a-z]*)( example)?\n(.*?)^```$", re.S | re.M)


def pages(root):
    """Returns the paths of all Markdown files of the project, relative to its root."""
    skipped = {"build", ".git"}
    return sorted(path.relative_to(root) for path in root.rglob("*.md")
                  if not skipped & set(path.relative_to(root).parts) and not path.relative_to(root).parts[0].startswith("demo-out"))


def slug(heading):
    """Returns the anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    seen, found = {}, set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M):
        name = slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found


def links_of(root, page):
    """Yields (target, anchor) of each relative link. A link to a directory means its README.md, if it has one."""
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", (root / page).read_text()))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        target = pathlib.Path(os.path.normpath(root / page.parent / path)) if path else root / page
        if target.is_dir() and (target / "README.md").exists():
            target = target / "README.md"
        yield link, target, anchor


def links(root):
    faults = []
    reached, to_visit = set(), [pathlib.Path("README.md")]
    graph = {}
    for page in pages(root):
        graph[page] = []
        for link, target, anchor in links_of(root, page):
            if not target.exists():
                faults.append(f"{page}: the link {link} leads nowhere")
            elif target.suffix == ".md":
                graph[page].append(target.relative_to(root))
                if anchor and anchor not in anchors(target.read_text()):
                    faults.append(f"{page}: {target.relative_to(root)} has no heading #{anchor}")
    while to_visit:
        page = to_visit.pop()
        if page not in reached:
            reached.add(page)
            to_visit += graph.get(page, [])
    faults += [f"{page}: no path of links leads here from README.md" for page in graph if page not in reached]
    print(f"{len(graph)} pages, {sum(map(len, graph.values()))} links between them")
    return faults


def command_lines(root, page, programs):
    """Yields the lines of the page's sh blocks, and the command lines of Fedge's programs in its inline code."""
    text = (root / page).read_text()
    for language, _, block in FENCE.findall(text):
        if language == "sh":
            yield from block.replace("\\\n", " ").splitlines()
    for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        words = code.split()
        # Some strings of the protocol also begin with "fedge".
        if len(words) > 1 and words[0] in PROGRAMS and (words[0] != "fedge" or words[1] in programs.commands(("fedge",))):
            yield code


def words_of(line):
    """Yields the commands in a line of shell, each as a list of words. Stops at text that is not shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    command = []
    try:
        for word in lexer:
            if word and set(word) <= set("|&;()<>"):
                yield command
                command = []
            else:
                command.append(word)
    except ValueError:
        pass
    yield command


class Help:
    """The commands and options that the programs' help pages list."""

    def __init__(self, bin_directory):
        self.bin = bin_directory
        self.known = {}

    def page(self, path):
        if path not in self.known:
            done = subprocess.run([os.path.join(self.bin, path[0]), *path[1:], "--help"], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.known[path] = done.stdout if done.returncode == 0 else ""
        return self.known[path]

    def commands(self, path):
        return set(re.findall(r"^  ([a-z][a-z-]*)(?:  +\S|$)", self.page(path), re.M))

    def options(self, path):
        return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)", self.page(path)))


def faults_of(command, programs):
    """Returns the faults of one command line, as a list of sentences."""
    while command and re.match(r"^[A-Z_]+=", command[0]):
        command = command[1:]
    if not command or os.path.basename(command[0]) not in PROGRAMS:
        return []
    path, rest = (os.path.basename(command[0]),), command[1:]
    options = set(programs.options(path))
    faults = []
    for word in rest:
        if word.startswith("-") and len(word) > 1:
            name = word.split("=")[0]
            if re.match(r"^--?[a-zA-Z]", name) and name not in options:
                # Options of the program may precede the command; the command's options are not known yet.
                faults.append(f"'{' '.join(path)}' has no option {name}")
        elif word in programs.commands(path):
            path += (word,)
            options |= programs.options(path)
        elif programs.commands(path) and len(path) < 3 and re.match(r"^[a-z][a-z-]+$", word) and \
                rest.index(word) == len(path) - 1:
            faults.append(f"'{' '.join(path)}' has no command '{word}'")
    return faults


def options(root, bin_directory):
    programs = Help(bin_directory)
    faults, count = [], 0
    for page in pages(root):
        if page.name == "CHANGELOG.md":
            continue
        for line in command_lines(root, page, programs):
            for command in words_of(line):
                if command and os.path.basename(command[0]) in PROGRAMS:
                    count += 1
                faults += [f"{page}: {line.strip()}: {fault}" for fault in faults_of(command, programs)]
    print(f"{count} command lines")
    return faults


def messages(root):
    """Returns the quoted messages of the troubleshooting page whose words are in no string of the sources."""
    texts = [os.strerror(number) for number in range(1, 132)] + ["Error while parsing"]
    literal = r'"(?:[^"\\\n]|\\.)*"'
    for path in [*root.rglob("*.cc"), *root.rglob("*.h")]:
        if path.relative_to(root).parts[0] in ("tests", "build", "bench"):
            continue
        for group in re.findall(rf"{literal}(?:\s*{literal})*", path.read_text()):
            texts.append("".join(part[1:-1] for part in re.findall(literal, group)).replace('\\"', '"'))
    everything = "\n".join(texts)
    page = (root / "docs/operate/troubleshoot.md").read_text()
    quoted = sorted(set(re.findall(r'"([^"\n]{6,})"', FENCE.sub("", page))))
    faults = []
    for quote in quoted:
        # Names, numbers and "..." stand for text that a program inserts.
        parts = [part.strip(" ,.;:()") for part in re.split(r"\.\.\.|[\w.]+\.(?:db|key|json)|\d+|\bFILE\b|run\.\w+", quote)]
        missing = [part for part in parts if len(part) > 5 and part not in everything]
        if missing:
            faults.append(f"docs/operate/troubleshoot.md quotes \"{quote}\"; no program prints \"{missing[0]}\"")
    print(f"{len(quoted)} quoted messages")
    return faults


def same_word(expected, printed):
    if expected == printed or expected == "...":
        return True
    if re.fullmatch(r"[0-9,.]+,[0-9,.]+", expected):
        a, b = expected.split(","), printed.split(",")
        return len(a) == len(b) and all(map(same_word, a, b))
    if re.fullmatch(r"[0-9a-f]{8,}", expected):
        return bool(re.fullmatch(r"[0-9a-f]{%d}" % len(expected), printed))
    try:
        a, b = float(expected.rstrip(":,")), float(printed.rstrip(":,"))
    except ValueError:
        return False
    return abs(a - b) <= 0.02 * max(abs(a), abs(b)) + 1e-9


def same_line(expected, printed):
    a, b = expected.split(), printed.split()
    if a and a[-1] == "..." and len(b) >= len(a) - 1:
        a, b = a[:-1], b[:len(a) - 1]
    return len(a) == len(b) and all(map(same_word, a, b))


def compare(expected, printed):
    """Returns None, or the first difference between the expected and the printed lines."""
    lines, at, skipping = printed.strip("\n").splitlines(), 0, False
    for line in expected.strip("\n").splitlines():
        if line.strip() == "...":
            skipping = True
            continue
        while skipping and at < len(lines) and not same_line(line, lines[at]):
            at += 1
        if at >= len(lines) or not same_line(line, lines[at]):
            return f"expected: {line}\nprinted:  {lines[at] if at < len(lines) else '(nothing more)'}"
        at, skipping = at + 1, False
    return None if skipping or at == len(lines) else f"printed besides: {lines[at]}"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run_page(root, bin_directory, page):
    blocks = []  # [commands, expected output or None]
    for language, example, block in FENCE.findall((root / page).read_text()):
        if language == "sh" and not example:
            blocks.append([block, None])
        elif language == "text" and blocks and blocks[-1][1] is None and not example:
            blocks[-1][1] = block
    assert blocks, f"{page} has no block to run"
    if not os.path.exists("/usr/share/datasets/fashion-mnist") and not any(
            pathlib.Path("/usr/share").glob("**/train-images-idx3-ubyte*")):
        print("skipped: the data set Fashion-MNIST is not installed (package dataset-fashion-mnist)")
        sys.exit(SKIPPED)
    script = "set -e -o pipefail\n"
    for number, (commands, _) in enumerate(blocks):
        script += f"printf '\\n@@ {number}\\n'\n{commands}"
    address = r"127\.0\.0\.1:(\d{4,5})\b"
    free = {port: free_port() for port in set(re.findall(address, script))}
    script = re.sub(address, lambda match: f"127.0.0.1:{free[match.group(1)]}", script)
    with tempfile.TemporaryDirectory() as directory:
        for entry in root.iterdir():
            # Excludes the output of builds, and of commands that a reader has run in the source tree.
            if entry.name not in ("build", ".git", "out") and not entry.name.startswith(("demo-out", "fedge-out")):
                os.symlink(entry, os.path.join(directory, entry.name))
        environment = {**os.environ, "PATH": bin_directory + ":" + os.environ["PATH"], "HOME": directory, "COLUMNS": "100"}
        for name in ("XDG_STATE_HOME", "FEDGE_DATA_DIR"):
            environment.pop(name, None)
        with open(os.path.join(directory, "printed"), "w+", encoding="utf-8") as printed:
            shell = subprocess.Popen(["/bin/bash", "-c", script], cwd=directory, env=environment, stdout=printed,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                code = shell.wait(SECONDS)
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            printed.seek(0)
            output = printed.read()
    if code != 0:
        return [f"{page}: its commands end with exit code {code}:\n{output[-4000:]}"]
    faults = []
    for number, text in zip(*[iter(re.split(r"^@@ (\d+)\n", output, flags=re.M)[1:])] * 2):
        commands, expected = blocks[int(number)]
        fault = compare(expected, text) if expected else None
        if fault:
            faults.append(f"{page}: {commands.strip()}\n{fault}")
    print(f"{page}: {len(blocks)} blocks run, {sum(1 for b in blocks if b[1])} with what they print")
    return faults


def main():
    root, bin_directory, case = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    if case == "links":
        faults = links(root)
    elif case == "messages":
        faults = messages(root)
    elif case == "options":
        faults = options(root, bin_directory)
    else:
        faults = run_page(root, bin_directory, pathlib.Path(case))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
