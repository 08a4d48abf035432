# SPDX-License-Identifier: GPL-2.0-or-later
"""What must be true of every cluster at every time, whatever its tests do (pure).

`check(record)` looks at what was recorded from a cluster's start to its end:

no_idle_vm      no VM without a job or a static node for longer than its grace
lease_covers    a job that ran had VMs that outlived its time limit, or was told so before
one_request     the nodes of a job that lack VMs are in one request
wanted_request  a request is for a job that exists, a static node, or an admin's POWER_UP
drain_kept      a drain that is an admin's stays, with its reason, until the admin takes it away
"""
import math
import re
import time
from dataclasses import dataclass, field

from .timeline import NEVER, joined, length, overlap, subtract

NAMES = ("no_idle_vm", "lease_covers", "one_request", "wanted_request", "drain_kept")
# The machine may be busy, and slurmctld is looked at twice a second.
SLACK = 25.0
BLINK = 3.0
# The sweeper needs two looks at a VM to know when it ends, and that it is another job's.
TWO_LOOKS = 5.0
MOST_NODES = 1000
# Rounds by hand after which nobody may say that there was no time.
ROUNDS = 5
# Of a job's state: COMPLETED, FAILED and TIMEOUT.
BASE_STATE, HAVE_RUN = 0xff, (3, 5, 6)
# What tells a job's author that the VMs may end before the job does.
TOLD = re.compile(r"flex: .*(capped: VMs live|asked for VMs that live|before the job's time limit|has no time limit|"
                  r"warned: VMs end)")


@dataclass
class Violation:
    invariant: str
    what: str
    at: float
    nodes: frozenset = frozenset()
    job: int = 0
    request: str = ""

    def text(self, began):
        clock = time.strftime("%H:%M:%S", time.gmtime(self.at))
        return f"{self.invariant}: {self.what} (at {clock}, {self.at - began:.1f} s after the cluster's start)"


@dataclass
class Expected:
    """A violation that a test brings about on purpose."""
    invariant: str
    why: str
    nodes: frozenset = frozenset()
    jobs: frozenset = frozenset()
    words: str = ""            # in the violation's text
    is_certain: bool = True    # False: it may or may not happen
    seen: int = field(default=0, compare=False)

    def covers(self, violation):
        return (violation.invariant == self.invariant and self.words in violation.what
                and (not self.nodes or (violation.nodes and violation.nodes <= self.nodes))
                and (not self.jobs or violation.job in self.jobs))


def judge(violations, expected):
    """(violations that nobody declared, declarations that did not come true)."""
    left = []
    for violation in violations:
        found = [one for one in expected if one.covers(violation)]
        for one in found:
            one.seen += 1
        if not found:
            left.append(violation)
    return left, [one for one in expected if one.is_certain and not one.seen]


def check(record):
    """All violations, in the order of time."""
    found = []
    for rule in (no_idle_vm, lease_covers, one_request, split_job, bounded_wait, wanted_request, drain_kept):
        found += rule(record)
    return sorted(found, key=lambda violation: violation.at)


# No VM without a job or a static node


def working(record):
    """When somebody could have done something about it."""
    whole = [(record.began, record.ended)]
    return subtract(whole, [*record.down["slurmctld"], *record.down["emulator"], *record.down["sweeper"]])


def grace_of(record, facts):
    graces = record.graces
    suspend = facts["suspend_time"] if facts["suspend_time"] is not None else 0
    return suspend + facts["suspend_timeout"] + graces["orphan_grace"] + 3 * graces["interval"] + SLACK


def _is_hung(record, vm, gap):
    """Its slurmd does not answer: it has boot_timeout to come back."""
    looks = record.node_looks.get(vm.name)
    hung = looks.intervals(lambda look: {"DOWN", "NOT_RESPONDING"} <= set(look["state"].split("+"))) if looks else []
    return bool(overlap(gap, hung))


def _stays_up(look):
    """The node is up, as slurmctld sees it."""
    words = set(look["state"].split("+"))
    return not words & {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "DOWN"}


def wanted(record, vm):
    """The intervals in which somebody has a use for the VM."""
    node, facts = vm.name, record.nodesets[record.nodeset_of[vm.name]]
    found = [(begin, end) for begin, end, _ in record.held(node)] + record.static(node)
    looks = record.node_looks.get(node)
    if looks is not None and (facts["suspend_time"] is None or node in facts["excluded"]):
        found += looks.intervals(_stays_up)
    for act in record.admin_acts(node, "power_up"):
        # It comes up for nobody, and SuspendTime begins when it is there.
        is_there = [begin for begin, _, look in looks or () if begin > act["at"] + 2
                    and "POWERING_UP" not in look["state"] and "POWER_UP" not in look["state"]]
        found.append((act["at"], min(is_there, default=record.ended)))
    elder = [(other.made, other.gone) for other in record.vms
             if other.name == node and other.id != vm.id and other.made <= vm.made < other.gone]
    return subtract(joined(found), elder)


def no_idle_vm(record):
    """For longer than it takes slurmctld to power the node down, or the sweeper to find an orphan."""
    found, able = [], working(record)
    for vm in record.vms:
        facts = record.nodesets[record.nodeset_of[vm.name]]
        life = (vm.made, min(vm.gone, record.ended))
        for gap in subtract([life], wanted(record, vm)):
            # Of a gap only counts when the programs could work, or the rounds that a test made by hand.
            idle = length(overlap(gap, able))
            grace = grace_of(record, facts) + (facts["boot_timeout"] if _is_hung(record, vm, gap) else 0)
            rounds = [begin for begin, _ in record.rounds if gap[0] + grace < begin < gap[1]]
            if idle <= grace and len(rounds) < ROUNDS:
                continue
            jobs = sorted(job for _, end, job in record.held(vm.name) if vm.made - BLINK <= end <= gap[0] + BLINK)
            last = f"since job {jobs[-1]} left it" if jobs else "from its start"
            found.append(Violation(
                "no_idle_vm", f"the VM of {vm.name} (request {vm.request or 'none'}, run {vm.run_seconds:.0f} s) had neither a "
                f"job nor a static node for {gap[1] - gap[0]:.0f} s, {last}; its grace is "
                f"{grace:.0f} s; it {'was still there' if vm.gone > record.ended else 'ended: ' + vm.how}",
                gap[0], frozenset([vm.name]), jobs[-1] if jobs else 0, vm.request))
    return found


# A job's VMs outlive its limit


@dataclass
class _Run:
    """One run of a job: from its allocation, and from its start on the nodes."""
    job: int
    allocated: float
    started: float
    ended: float
    nodes: list
    limit: float


def runs_of(record, number):
    """A job that is requeued has several."""
    found, allocated = [], None
    for begin, end, look in record.job_looks[number]:
        limit = NEVER if look["limit"] is None else look["limit"]
        if look["pending"] or look["finished"]:
            # It may have run between two looks.
            is_new = allocated is not None and not (found and found[-1].allocated == allocated)
            if is_new and look["finished"] and look["state"] & BASE_STATE in HAVE_RUN:
                found.append(_Run(number, allocated, begin, begin, look["nodes"], limit))
            allocated = None
            continue
        allocated = begin if allocated is None else allocated
        if look["configuring"] or not look["running"]:
            continue
        if found and found[-1].allocated == allocated:
            found[-1].ended = end
            continue
        # A limit that was raised between its start and this look was another one at its start.
        is_later = any(job == number and look["start"] <= at <= begin for at, job in record.limits)
        found.append(_Run(number, allocated, begin, end, look["nodes"], 0 if is_later else limit))
    return found


def _shortfall(record, run, vm, margin):
    """By how many seconds the VM falls short of the job's limit."""
    ends = record.end_of(vm, run.started)
    if ends is None:
        return 0
    if vm.made >= run.allocated - BLINK:
        # Made for it. Leases may run faster than the wall: what counts is what was asked for.
        return run.limit + min(margin, run.started - vm.made) - vm.run_seconds
    return run.started + run.limit - ends


def _able(record):
    """When somebody could have told a job's author. Where there is no sweeper at all, flex-resume must have."""
    found = working(record)
    return found or subtract([(record.began, record.ended)], [*record.down["slurmctld"], *record.down["emulator"]])


def _was_told(record, run, vm):
    """Before it began: what comes later comes too late to do without. Only if it began as soon as the VM was there, or its
    limit was raised, the sweeper has had no time, and tells it soon after."""
    # Raised before its VM was there, it should have had another VM.
    known = max([vm.made] + [at for at, job in record.limits if job == run.job and at <= run.started])
    told = min((begin for begin, _, look in record.job_looks[run.job] if TOLD.search(look["admin_comment"] or "")
                and (begin <= run.started or begin <= run.ended)), default=NEVER)
    if told <= run.started:
        return True
    able = _able(record)
    if length(overlap((known, run.started), able)) >= TWO_LOOKS:
        return False
    return length(overlap((known, min(told, run.ended, record.ended)), able)) <= TWO_LOOKS + SLACK


def lease_covers(record):
    found = []
    for number in record.job_looks:
        for run in runs_of(record, number):
            short = []
            for node in run.nodes:
                vm = record.vm_at(node, run.started)
                facts = record.nodesets.get(record.nodeset_of.get(node, ""))
                if vm is None or facts is None:
                    continue
                if (lack := _shortfall(record, run, vm, facts["margin"])) > BLINK and not _was_told(record, run, vm):
                    short.append((node, vm, lack))
            if not short:
                continue
            node, vm, lack = max(short, key=lambda item: item[2])
            found.append(Violation(
                "lease_covers", f"job {number} began with a time limit of {run.limit:.0f} s on {node}, whose VM (request "
                f"{vm.request or 'none'}, run {vm.run_seconds:.0f} s, {run.started - vm.made:.0f} s old) ends {lack:.0f} s "
                f"before that, and was not told", run.started, frozenset(item[0] for item in short), number, vm.request))
    return found


# All of a job in one request


def _nodes_of(record, number, nodeset, begin, end):
    """Its nodes in the nodeset, if they were the same all the time; else none."""
    looks = record.job_looks.get(number)
    seen = None
    for first, last, look in looks or ():
        if last < begin or first > end:
            continue
        nodes = frozenset(look["nodes"]) if look["running"] and not look["finished"] else frozenset()
        if seen is not None and nodes != seen:
            return frozenset()
        seen = nodes
    return frozenset(node for node in seen or () if record.nodeset_of.get(node) == nodeset)


def _is_anothers(record, node, number, at):
    """Another job, which shares the node, has asked for it."""
    here = {job for begin, end, job in record.held(node) if begin - BLINK <= at <= end and job != number}
    return any(request.job in here and node in request.nodes and request.made <= at <= request.ended
               for request in record.requests)


def one_request(record):
    """Each request has all nodes of its job that have no VM; one that has not is gone at once."""
    found = []
    for request in record.requests:
        end = min(request.ended, record.ended)
        if not request.job or request.name in record.by_hand or end - request.made < SLACK and request.state != "SUCCEEDED":
            continue
        nodes = _nodes_of(record, request.job, request.nodeset, request.made - 1, request.made + 1)
        # Static nodes have requests of their own: they outlive the job.
        nodes = [node for node in nodes if node in request.nodes or not record.is_static(node, request.made, end)]
        missing = {node for node in nodes if record.vm_at(node, request.made) is None
                   and (node in request.nodes or not _is_anothers(record, node, request.job, request.made))}
        if not missing & request.nodes or missing <= request.nodes or len(missing) > MOST_NODES:
            continue
        rest = missing - request.nodes
        elsewhere = [other.name for other in record.requests if other is not request and other.nodes & rest
                     and other.made <= end and other.ended >= request.made]
        found.append(Violation(
            "one_request", f"request {request.name} in {request.group} has {','.join(sorted(request.nodes))} of job "
            f"{request.job}, but not {','.join(sorted(rest))}, which has no VM either "
            f"(in {', '.join(sorted(set(elsewhere))) or 'no request'}); it was {request.state or 'active'} after "
            f"{end - request.made:.0f} s", request.made, frozenset(missing), request.job, request.name))
    return found


def _split(record, number, nodeset):
    """[((from, to), missing nodes, requests)] in which requests have some of its missing nodes and none has all."""
    mine = [request for request in record.requests if request.nodeset == nodeset]
    for begin, end, look in record.job_looks[number]:
        nodes = [node for node in look["nodes"] if record.nodeset_of.get(node) == nodeset and not record.is_static(node, begin, end)]
        if not look["configuring"] or look["finished"] or len(nodes) < 2:
            continue
        near = [request for request in mine if request.nodes & set(nodes) and request.made < end and request.ended > begin]
        vms = [vm for vm in record.vms if vm.name in nodes]
        moments = {begin, *(at for request in near for at in (request.made, request.ended)),
                   *(at for vm in vms for at in (vm.made, vm.gone)),
                   *(last + 0.001 for node in nodes for _, last, _ in record.held(node))}
        moments = sorted(at for at in moments if begin <= at < end) + [end]
        for first, last in zip(moments, moments[1:]):
            missing = {node for node in nodes if record.vm_at(node, first) is None
                       and not _is_anothers(record, node, number, first)}
            active = [request for request in near if request.made <= first < request.ended and request.nodes & missing]
            if active and len(missing) <= MOST_NODES and not any(missing <= request.nodes for request in active):
                yield (first, last), missing, active


def split_job(record):
    """The same, seen from the job: requests of jobs before it do not count as one of its own."""
    found = []
    told = {violation.job for violation in one_request(record)}
    for number, looks in record.job_looks.items():
        for nodeset in {record.nodeset_of.get(node, "") for look in looks.looks for node in look["nodes"]} - {""}:
            parts = list(_split(record, number, nodeset)) if number not in told else []
            for begin, end in joined([part for part, _, _ in parts], gap=BLINK):
                if length(overlap((begin, end), working(record))) <= SLACK:
                    continue
                _, missing, active = next(part for part in parts if part[0][0] >= begin)
                names = ", ".join(f"{request.name} ({','.join(sorted(request.nodes))})" for request in active)
                found.append(Violation(
                    "one_request", f"job {number} waited {end - begin:.0f} s for {','.join(sorted(missing))}, which no single "
                    f"request has: {names}", begin, frozenset(missing), number))
    return found


def _incomplete(record, number, nodeset):
    """The intervals in which some nodes of the job had VMs and others waited."""
    found = []
    for begin, end, look in record.job_looks[number]:
        if not look["configuring"] or look["finished"]:
            continue
        nodes = [node for node in look["nodes"] if record.nodeset_of.get(node) == nodeset and not record.is_static(node, begin, end)]
        has = {node: overlap((begin, end), [(vm.made, vm.gone) for vm in record.vms if vm.name == node]) for node in nodes}
        some = joined([part for parts in has.values() for part in parts])
        lacking = joined([part for parts in has.values() for part in subtract([(begin, end)], parts)])
        found += [part for one in some for part in overlap(one, lacking)]
    return joined(found, gap=BLINK)


def bounded_wait(record):
    """A job of which some nodes have VMs does not wait for the others for ever."""
    found = []
    for number, looks in record.job_looks.items():
        for nodeset in {record.nodeset_of.get(node, "") for look in looks.looks for node in look["nodes"]} - {""}:
            facts = record.nodesets[nodeset]
            limit = facts["incomplete_timeout"]
            for part in _incomplete(record, number, nodeset) if limit else ():
                if facts["is_queued"] and length(overlap(part, working(record))) > limit + SLACK:
                    found.append(Violation(
                        "one_request", f"job {number} had some of its VMs in {nodeset} and waited for the others for "
                        f"{part[1] - part[0]:.0f} s; incomplete_timeout is {limit:.0f} s", part[0], frozenset(), number))
    return found


# Requests for somebody


def _asked(record):
    """(at, what, job or None, nodes) of everything that asks for VMs."""
    for request in record.requests:
        yield request.made, f"request {request.name} in {request.group}", request.job, request.nodes, request.name
    for call in record.calls:
        yield call["at"], call["method"].rpartition(".")[2], None, frozenset(call["nodes"]), ""


def _around(record, at):
    """Looks that tell what slurmctld had then: where it was away, also the first ones after that."""
    begin, end = at - SLACK / 2, at + BLINK
    for first, last in record.down["slurmctld"]:
        if first <= at <= last + BLINK:
            begin, end = min(begin, first - SLACK / 2), max(end, last + 2 * BLINK)
    return begin, end


def wanted_request(record):
    found = []
    for at, what, job, nodes, name in _asked(record):
        begin, end = _around(record, at)
        if name in record.by_hand:
            continue
        looks = record.job_looks.get(job) if job else None
        if looks is not None and any(first <= end and last >= begin and not look["finished"] for first, last, look in looks):
            continue
        for_nobody = [node for node in nodes if node in record.nodeset_of and not record.jobs_on(node, begin, end)
                      and not record.is_static(node, begin, end)
                      and not any(act["at"] <= at + BLINK for act in record.admin_acts(node, "power_up"))]
        if for_nobody:
            found.append(Violation(
                "wanted_request", f"{what} asked for {','.join(sorted(for_nobody))}: neither a job nor a static node nor an "
                "admin's POWER_UP", at, frozenset(for_nobody), job or 0, name))
    return found


# Drains of others


ENDS_DRAIN = ("undrain", "resume", "idle", "power_down", "power_down_force", "power_down_asap", "down", "future")


def _asks_for_repair(record, node, act):
    """Such a drain is the sweeper's business: it ends with a new VM."""
    facts = record.nodesets.get(record.nodeset_of.get(node, ""), {})
    return any(text.lower() in act["reason"].lower() for text in facts.get("repair_reasons", ()))


def drain_kept(record):
    found, able = [], working(record)
    for node, looks in record.node_looks.items():
        ends = [act["at"] for act in record.admin_acts(node, *ENDS_DRAIN)]
        drains = record.admin_acts(node, "drain")
        for act in drains:
            if _asks_for_repair(record, node, act):
                continue
            until = min([at for at in ends if at > act["at"]] + [other["at"] for other in drains if other["at"] > act["at"]],
                        default=record.ended)
            # It takes a moment until it is seen; what is put back at once was not lost.
            lost = [part for part in looks.intervals(lambda look: "DRAIN" not in look["state"].split("+"))]
            parts = overlap((act["at"] + BLINK, until), lost)
            reason = looks.intervals(lambda look: look["reason"] != act["reason"])  # noqa: B023
            for what, intervals in (("its drain", parts), ("the drain's reason", overlap((act["at"] + BLINK, until), reason))):
                # Only time counts in which somebody could have put it back, or rounds that a test made by hand.
                lost_for = {part: length(overlap(part, able)) for part in intervals}
                bad = [part for part in intervals if lost_for[part] > SLACK / 2 or
                       len([begin for begin, _ in record.rounds if part[0] + SLACK / 2 < begin < part[1]]) >= ROUNDS]
                if not bad:
                    continue
                at, end = max(bad, key=lambda part: part[1] - part[0])
                look = looks.at(at)
                found.append(Violation(
                    "drain_kept", f"{node} lost {what} ({act['reason']!r}), which was not ours, for {end - at:.0f} s: it was "
                    f"{look['state']}, reason {look['reason']!r}", at, frozenset([node])))
                break
    return found


def story(record, violation):
    """What happened to the nodes, job and request of a violation, in order."""
    lines = []
    for vm in record.vms:
        if vm.name in violation.nodes:
            lines.append((vm.made, f"VM {vm.name} is made (request {vm.request or 'none'}, run {vm.run_seconds:.0f} s)"))
            if vm.gone <= record.ended:
                lines.append((vm.gone, f"VM {vm.name} ends: {vm.how}"))
    for request in record.requests:
        if request.nodes & violation.nodes or (violation.request and request.name == violation.request):
            lines.append((request.made, f"request {request.name} in {request.group} for {','.join(sorted(request.nodes))}"
                          f" (run {request.run_seconds:.0f} s)"))
            if request.ended <= record.ended:
                lines.append((request.ended, f"request {request.name} is {request.state}"))
    for number, looks in record.job_looks.items():
        for begin, _, look in looks:
            if number == violation.job or violation.nodes & set(look["nodes"]):
                what = [word for word in ("pending", "configuring", "running", "finished") if look[word]]
                lines.append((begin, f"job {number} {'+'.join(what)} on {','.join(look['nodes'])} limit {look['limit']} "
                              f"{look['admin_comment']}".rstrip()))
    for node in violation.nodes:
        for begin, _, look in record.node_looks.get(node, ()):
            lines.append((begin, f"node {node} {look['state']} {look['reason']}".rstrip()))
    lines += [(act["at"], f"admin: {act['state']} {','.join(act['nodes'])} {act['reason']}") for act in record.admin
              if violation.nodes & set(act["nodes"])]
    near = [line for line in sorted(lines) if violation.at - 90 <= line[0] <= violation.at + 120]
    return [f"  {math.floor((at - record.began) * 10) / 10:8.1f} {text}" for at, text in near[:60]]
