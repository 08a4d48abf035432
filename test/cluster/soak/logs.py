# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs' log lines and the emulator's journal, side by side (pure)."""
import calendar
import re
import time
from dataclasses import dataclass

from harness.hostlist import expand

WORD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')
# Lines that say what was seen or left, not what was done.
NOT_ACTS = {"left_alone", "already_gone", "foreign_nodes", "wanted_again", "round", "request_kept"}
# flex-resume and flex-suspend write their lines at their end, which faults can put off; the sweeper before it acts, and a slurmctld that is
# away holds up the actions after that.
BEFORE, AFTER = 15, 90


@dataclass(frozen=True)
class Line:
    at: float
    words: dict
    names: frozenset   # of groups, requests and nodes
    text: str

    @property
    def event(self):
        return self.words.get("event", "")


def parse_line(text):
    """None for what is no line of a program."""
    stamp = text.partition(" ")[0]
    try:
        at = calendar.timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
    words = {key: value.strip('"') for key, value in WORD.findall(text)}
    names = set(expand(words.get("nodes", "")))
    for key in ("group", "request", "target", "node"):
        names.update(word for word in words.get(key, "").split("/") if word)
    return Line(at, words, frozenset(names), text)


def parse_lines(text):
    return [line for line in map(parse_line, text.splitlines()) if line is not None]


@dataclass(frozen=True)
class Write:
    """A call that changes something, with the names of which a log line must have one set."""
    method: str
    at: float
    until: float
    names: tuple   # alternatives; each a set of names that one line has
    nodeset: str = ""   # of a new group: a line about nodes of the nodeset explains it, too


def _short(method):
    return ".".join(method.split(".")[-2:])


def write_of(entry):
    """None for a call that only reads, or that was refused and so changed nothing."""
    method = _short(entry["method"])
    verb = method.rpartition(".")[2]
    if entry["verb"] == "GET" or verb in ("listManagedInstances", "wait", "listErrors"):
        return None
    was_lost = entry["status"] == 0 and entry.get("fault") == "lost_reply"
    if entry["status"] != 200 and not was_lost:
        return None
    nodeset = re.search(r" nodeset=(\S+)", str((entry.get("body") or {}).get("description", "")))
    return Write(method, entry["started"], entry["ended"], _names(method, entry),
                 nodeset[1] if nodeset else "")


def _names(method, entry):
    body, parts = entry.get("body") or {}, entry["path"].split("/")
    collection, _, verb = method.rpartition(".")
    if collection.endswith("ResizeRequests"):
        if verb == "insert":
            nodes = frozenset(item["name"] for item in body.get("instances", []))
            return (frozenset([body["name"]]), nodes)
        return (frozenset([parts[parts.index("resizeRequests") + 1]]),)
    if collection.endswith("InstanceGroupManagers"):
        if verb == "insert":
            return (frozenset([body["name"]]),)
        if verb == "createInstances":
            return (frozenset(item["name"] for item in body.get("instances", [])),)
        if verb == "deleteInstances":
            return (frozenset(name.rpartition("/")[2] for name in body.get("instances", [])),)
        return (frozenset([parts[parts.index("instanceGroupManagers") + 1]]),)
    if verb == "bulkInsert":
        return (frozenset(value.get("name", key) for key, value in (body.get("perInstanceProperties") or {}).items()),)
    return (frozenset([parts[-1], body.get("name", "")]) - {""},)


def all_names(write):
    return frozenset().union(*write.names)


def is_explained(write, lines):
    for line in lines:
        if line.event in NOT_ACTS or not write.at - BEFORE <= line.at <= write.until + AFTER:
            continue
        if any(names and names <= line.names for names in write.names):
            return True
        # Killed between a group and the requests in it, a program has only said for which nodes.
        if write.nodeset and any(name.startswith(write.nodeset + "-") for name in line.names):
            return True
    return False


def unexplained(journal, lines):
    """Writes that no program says it made."""
    writes = [write for write in map(write_of, journal) if write is not None]
    return [write for write in writes if not is_explained(write, lines)]


def circles(lines, most=5, gap=2.5):
    """Actions that the sweeper took again and again, round after round: (times, the last line)."""
    found, chains = {}, {}
    for line in lines:
        if line.event != "action":
            continue
        key = tuple(line.words.get(word, "") for word in ("rule", "what", "target", "job", "nodes"))
        at, times = chains.get(key, (0, 0))
        times = times + 1 if line.at - at <= gap else 1
        chains[key] = (line.at, times)
        if times > most:
            found[key] = (times, line.text)
    return list(found.values())
