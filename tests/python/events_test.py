"""Checks that docs/reference/events.md lists exactly the events that the programs can log, with their severities. Also
checks that the table in docs/RELIABILITY.md lists exactly the actions of the audit log.

    events_test.py SOURCE_DIRECTORY
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MODULES = ["apps", "client", "server", "sim"]
NAME = r'"([a-z_]+\.[a-z_]+)"'
NAMES = NAME + r"(?:\s*:\s*" + NAME + ")?"
# Matches: Severity::kInfo, "run.started" and pending ? Severity::kInfo : Severity::kWarning, pending ? "a.b" : "c.d"
EVENT = re.compile(r"(?:Severity::k(\w+)\s*:\s*)?Severity::k(\w+),\s*(?:[^\";{}]*\?\s*)?" + NAMES)
WARNING = re.compile(r"\babout\(" + NAME)  # matches about("client.awaiting_approval", ...) in gatekeeper.cc
ACTION = re.compile(r"(?:AuditEvent event\{|AuditEvent\{|return \{|record\(\{|add\(\{|append\(\{)\s*"
                    r"(?:operator_name\(\)|\"audit log\"|\"key \"[^,]*),\s*(?:[^\";]*\?\s*)?" + NAMES)
RUN_ACTION = re.compile(r"\bask\(call, .*?" + NAME + r"|\bevent_about\([\w.]*actor(?:\(\))?, " + NAME + r"|\brecord\(" + NAME)
ACTOR_ACTION = re.compile(r"\bevent_by\(\s*[\w.]+(?:\(\))?,\s*" + NAME)
FAILED_ACTION = re.compile(r"\b(?:kChangeFailed|kKeyRotated) = " + NAME)


def sources():
    for module in MODULES:
        for path in sorted((ROOT / module).rglob("*")):
            if path.suffix in (".cc", ".h"):
                yield path.read_text()


def events_in(text):
    for *severities, first, second in EVENT.findall(text):
        severities = [severity.lower() for severity in severities if severity]
        pairs = [(first, severities[:1]), (second, severities[1:])] if second and len(severities) == 2 else \
            [(first, severities), (second, severities)]
        yield from ((name, severity) for name, found in pairs if name for severity in found)
    yield from ((name, "warning") for name in WARNING.findall(text))


def in_code():
    events, actions = {}, set()
    for text in sources():
        for name, severity in events_in(text):
            events.setdefault(name, set()).add(severity)
        found = ACTION.findall(text) + RUN_ACTION.findall(text)
        found += [(name, "") for pattern in (FAILED_ACTION, ACTOR_ACTION) for name in pattern.findall(text)]
        actions.update(name for names in found for name in names if name)
    return events, actions


def in_page():
    rows = {}
    for line in (ROOT / "docs/reference/events.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and (name := re.fullmatch(r"`([a-z_]+\.[a-z_]+)`", cells[1])):
            rows.setdefault(name.group(1), set()).update(re.findall(r"debug|info|warning|error", cells[2]))
    return rows


def audited():
    table = (ROOT / "docs/RELIABILITY.md").read_text()
    rows = [line for line in table.splitlines() if re.match(r"\| `[a-z_]+\.[a-z_]+`", line)]
    return {name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row.split("|")[1])}


def main():
    events, actions = in_code()
    page, table = in_page(), audited()
    problems = [f"the program logs {name}, which docs/reference/events.md does not have" for name in events.keys() - page]
    problems += [f"docs/reference/events.md has {name}, which no program logs" for name in page.keys() - events]
    problems += [f"docs/reference/events.md: {name} is {' or '.join(sorted(events[name]))}"
                 for name in page.keys() & events if page[name] != events[name]]
    problems += [f"the audit log has {name}, which docs/RELIABILITY.md does not have" for name in actions - table]
    problems += [f"docs/RELIABILITY.md has {name}, which is no action of the audit log" for name in table - actions]
    for problem in sorted(problems):
        print(problem)
    if len(events) < 50 or len(actions) < 10:  # the patterns above no longer match the code
        sys.exit(f"only {len(events)} events and {len(actions)} actions found in the code")
    print(f"{len(events)} events, {len(actions)} actions")
    sys.exit(1 if problems else 0)


main()
