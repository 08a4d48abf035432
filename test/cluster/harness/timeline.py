# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded of a cluster, put in order: lives of VMs and requests, what jobs held, how nodes were (pure).

All times are the wall's, in seconds. Intervals are (from, to).
"""
import bisect
import re
from dataclasses import dataclass, field

NEVER = float("inf")
COMPLETING = 0x8000   # JOB_COMPLETING in a job's state
OURS = re.compile(r"slurm-flex-start cluster=(\S+) nodeset=(\S+)")


@dataclass
class Vm:
    id: int
    name: str
    nodeset: str
    request: str
    made: float
    run_seconds: float
    virtual_end: float
    gone: float = NEVER
    how: str = ""


@dataclass
class Request:
    id: int
    name: str
    group: str
    nodeset: str
    nodes: frozenset
    run_seconds: float
    made: float
    ended: float = NEVER
    state: str = ""

    @property
    def job(self):
        found = re.match(r"j(\d+)-", self.name)
        return int(found[1]) if found else None


# Intervals


def subtract(intervals, holes):
    """What is left of the intervals without the holes."""
    left = list(intervals)
    for begin, end in holes:
        new = []
        for first, last in left:
            if end <= first or begin >= last:
                new.append((first, last))
                continue
            if first < begin:
                new.append((first, begin))
            if end < last:
                new.append((end, last))
        left = new
    return sorted(left)


def overlap(interval, others):
    """The parts of `interval` that are in one of the others."""
    outside = subtract([interval], others)
    return subtract([interval], outside)


def length(intervals):
    return sum(end - begin for begin, end in intervals)


def joined(intervals, gap=0.0):
    """Sorted, and those that touch as one."""
    found = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


class Looks:
    """What was seen of one job or node, in order: a look is so until the next one."""

    def __init__(self, looks, until):
        self.looks = sorted(looks, key=lambda look: look["at"])
        self._times = [look["at"] for look in self.looks]
        self._until = until

    def __iter__(self):
        """(from, to, look)"""
        for number, look in enumerate(self.looks):
            end = self._times[number + 1] if number + 1 < len(self.looks) else self._until
            yield look["at"], end, look

    def at(self, when):
        """None before the first one."""
        number = bisect.bisect_right(self._times, when)
        return self.looks[number - 1] if number else None

    def intervals(self, condition):
        return joined([(begin, end) for begin, end, look in self if condition(look)])


def holds_nodes(look):
    """Its nodes are its own: it waits for them, runs, or is being cleaned up, it may be after a requeue."""
    return bool(look["state"] & COMPLETING) or not (look["pending"] or look["finished"])


@dataclass
class Record:
    """See `harness/recorder.py` for what makes it."""
    cluster: str
    began: float
    ended: float
    nodesets: dict                                  # name to nodes, suspend_time, … (recorder.nodeset_facts)
    history: list = field(default_factory=list)     # the emulator's events
    calls: list = field(default_factory=list)       # the emulator's journal: calls that ask for VMs
    jobs: dict = field(default_factory=dict)        # number to looks
    nodes: dict = field(default_factory=dict)       # name to looks
    admin: list = field(default_factory=list)       # what the test did as an admin: at, nodes, state, reason
    configs: list = field(default_factory=list)     # [(at, nodeset to its static nodes)]
    by_hand: list = field(default_factory=list)     # names of requests that the test made itself
    down: dict = field(default_factory=dict)        # slurmctld, emulator, sweeper to intervals
    rounds: list = field(default_factory=list)      # (from, to) of rounds by hand that ended well
    power_downs: list = field(default_factory=list) # (at, node) of those that slurmctld was asked for
    limits: list = field(default_factory=list)      # (at, job) of time limits that the test changed
    graces: dict = field(default_factory=dict)      # orphan_grace, interval

    def __post_init__(self):
        self.job_looks = {int(number): Looks(looks, self.ended) for number, looks in self.jobs.items()}
        self.node_looks = {name: Looks(looks, self.ended) for name, looks in self.nodes.items()}
        self.nodeset_of = {node: name for name, facts in self.nodesets.items() for node in facts["nodes"]}
        self.vms, self.requests = [], []
        self._read_history()
        self._held = {}
        for number, looks in self.job_looks.items():
            for begin, end, look in looks:
                for node in look["nodes"] if holds_nodes(look) else ():
                    self._held.setdefault(node, []).append((begin, end, number))

    def _read_history(self):
        vms, requests = {}, {}
        self._clock = [(self.began, 0.0, 1.0)]
        for event in self.history:
            what = event["event"]
            if what == "vm_made":
                ours = OURS.match(event["description"])
                vm = Vm(event["id"], event["name"], ours[2] if ours and ours[1] == self.cluster else "",
                        event["request"], event["time"], event["run_seconds"],
                        event["virtual_time"] + event["run_seconds"])
                vms[vm.id] = vm
            elif what == "vm_gone" and event["id"] in vms:
                vms[event["id"]].gone, vms[event["id"]].how = event["time"], event["how"]
            elif what == "request_made":
                ours = OURS.match(event["group_description"])
                requests[event["id"]] = Request(
                    event["id"], event["name"], event["group"], ours[2] if ours and ours[1] == self.cluster else "",
                    frozenset(event["nodes"]), event["run_seconds"], event["time"])
            elif what == "request_ended" and event["id"] in requests:
                requests[event["id"]].ended, requests[event["id"]].state = event["time"], event["state"]
            elif what == "time_changed":
                self._clock.append((event["time"], event["virtual_time"], event["factor"]))
        self.vms = [vm for vm in vms.values() if vm.nodeset and vm.name in self.nodeset_of]
        self.requests = [request for request in requests.values() if request.nodeset]

    # Cloud

    def end_of(self, vm, at):
        """When, as one had to believe at `at`, the VM ends; None: it has no end."""
        if vm.run_seconds <= 0:
            return None
        wall, virtual, factor = self._clock[max(0, bisect.bisect_right(self._clock, (at, NEVER, NEVER)) - 1)]
        if not virtual:
            return vm.made + vm.run_seconds
        return wall + (vm.virtual_end - virtual) / factor

    def vm_at(self, node, at):
        """The node's VM then: of several the oldest."""
        there = [vm for vm in self.vms if vm.name == node and vm.made <= at < vm.gone]
        return min(there, key=lambda vm: vm.made, default=None)

    # Slurm

    def held(self, node):
        """[(from, to, job)] in which a job had the node."""
        return self._held.get(node, [])

    def jobs_on(self, node, begin, end):
        """Jobs that had it at some time in between."""
        return {job for first, last, job in self.held(node) if first <= end and last >= begin}

    def is_static(self, node, begin, end):
        """Whether it was a static node at some time in between."""
        return bool(overlap((begin, end + 0.001), self.static(node)))

    def static(self, node):
        nodeset = self.nodeset_of.get(node)
        times = [at for at, _ in self.configs[1:]] + [self.ended]
        return joined([(at, until) for (at, sets), until in zip(self.configs, times) if node in sets.get(nodeset, ())])

    def admin_acts(self, node, *states):
        return [act for act in self.admin if node in act["nodes"] and act["state"] in states]
