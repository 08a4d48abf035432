# SPDX-License-Identifier: GPL-2.0-or-later
"""The invariants on data that is made up: each is silent on what is good and finds what is bad."""
import pytest

from harness import invariants
from harness.hostlist import expand
from harness.invariants import Expected, judge
from harness.known_violations import known
from harness.recorder import asked_nodes, nodeset_facts, seconds
from harness.conf import Nodeset
from harness.timeline import Record, joined, overlap, subtract

GROUP = "slurm-flex-start cluster=c nodeset=n"
END = 1000.0


class Story:
    """Tells what happens; `broken()` are the names of the invariants that it breaks."""

    def __init__(self, count=4, **facts):
        self.facts = {"nodes": [f"n-{number}" for number in range(count)], "suspend_time": 4.0, "suspend_timeout": 3.0,
                      "boot_timeout": 300, "repair_reasons": ["xid"], "excluded": [], "margin": 900, "incomplete_timeout": 100, "is_queued": True, **facts}
        self.history, self.jobs, self.nodes, self.admin, self.calls = [], {}, {}, [], []
        self.down = {"slurmctld": [], "emulator": [], "sweeper": []}
        self.rounds, self.configs, self.by_hand, self.limits, self.power_downs = [], [(0.0, {})], [], [], []
        self._ids = 0

    def vm(self, node, made, gone=None, run=1500, request="j1-a", how="deleted", description=GROUP):
        self._ids += 1
        common = {"id": self._ids, "name": node, "zone": "z"}
        self.history.append({**common, "event": "vm_made", "time": made, "virtual_time": made, "description": description,
                             "request": request, "run_seconds": run})
        if gone is not None:
            self.history.append({**common, "event": "vm_gone", "time": gone, "virtual_time": gone, "how": how})
        return self

    def request(self, name, nodes, made, ended=None, state="SUCCEEDED", run=1500, group="c-n"):
        self._ids += 1
        self.history.append({"event": "request_made", "id": self._ids, "name": name, "group": group, "nodes": nodes,
                             "group_description": GROUP, "run_seconds": run, "time": made, "virtual_time": made})
        if ended is not None:
            self.history.append({"event": "request_ended", "id": self._ids, "time": ended, "state": state})
        return self

    def job(self, number, *looks):
        """Looks are (at, state, nodes, limit, comment); the states are words."""
        self.jobs[number] = [
            {"at": at, "job": number, "pending": state == "pending", "configuring": state == "configuring",
             "running": state in ("configuring", "running"), "finished": state == "finished", "nodes": list(nodes),
             "start": int(at), "limit": limit, "admin_comment": comment, "state": 3 if state == "finished" else 0}
            for at, state, nodes, limit, comment in (look + ("", ) * (5 - len(look)) for look in looks)]
        return self

    def node(self, name, *looks):
        self.nodes[name] = [{"at": at, "node": name, "state": state, "reason": reason} for at, state, reason in looks]
        return self

    def scontrol(self, at, nodes, state, reason=""):
        self.admin.append({"at": at, "nodes": nodes, "state": state, "reason": reason})
        return self

    def ask(self, at, *nodes):
        self.calls.append({"at": at, "method": "x.createInstances", "nodes": list(nodes)})
        return self

    def record(self):
        return Record("c", 0.0, END, {"n": self.facts}, self.history, self.calls, self.jobs, self.nodes, self.admin,
                      self.configs, self.by_hand, self.down, self.rounds, self.power_downs, self.limits, {"orphan_grace": 2.0, "interval": 1.0})

    def violations(self):
        return invariants.check(self.record())

    def broken(self):
        return [violation.invariant for violation in self.violations()]


def good():
    """A job of two nodes, from its submission to the end of its VMs."""
    nodes = ["n-0", "n-1"]
    return (Story().job(1, (10, "pending", [], 600), (12, "configuring", nodes, 600), (60, "running", nodes, 600),
                        (100, "finished", nodes, 600))
            .request("j1-a", nodes, 13, 50).vm("n-0", 50, 110).vm("n-1", 50, 110))


def test_a_job_that_has_what_it_needs_breaks_nothing():
    assert good().broken() == []


# No idle VM


def test_a_vm_that_stays_when_its_job_is_gone_is_found():
    story = good().vm("n-0", 120, 400)
    violation, = story.violations()
    assert violation.invariant == "no_idle_vm" and violation.nodes == {"n-0"}
    assert "n-0" in violation.text(0) and "280 s" in violation.text(0)


def test_a_vm_may_stay_for_its_grace_or_for_a_static_node():
    assert good().vm("n-0", 120, 145).broken() == []
    story = good().vm("n-0", 120, 400)
    story.configs = [(0.0, {"n": ["n-0"]})]
    assert story.broken() == []
    story.configs = [(0.0, {"n": ["n-0"]}), (150.0, {"n": []})]
    assert story.broken() == ["no_idle_vm"]


def test_a_vm_stays_where_slurmctld_never_powers_down_until_it_does():
    def story(state, **facts):
        told = Story(**facts).vm("n-0", 120, 400).node("n-0", (100, "IDLE+CLOUD+" + state, ""))
        return told.broken()
    assert story("X", suspend_time=None) == []
    assert story("X", excluded=["n-0"]) == []
    assert story("POWERED_DOWN", suspend_time=None) == ["no_idle_vm"]
    assert story("X") == ["no_idle_vm"]


def test_a_vm_whose_slurmd_hangs_has_time_to_come_back():
    def story(gone):
        return Story().vm("n-0", 120, gone).node("n-0", (110, "IDLE+CLOUD", ""), (130, "DOWN+CLOUD+NOT_RESPONDING", "")).broken()
    assert story(400) == []
    assert story(600) == ["no_idle_vm"]


def test_time_in_which_nobody_could_do_anything_does_not_count():
    story = good().vm("n-0", 120, 400)
    story.down["sweeper"] = [(0.0, 390.0)]
    assert story.broken() == []
    story.rounds = [(at, at + 1) for at in range(200, 206)]
    assert story.broken() == ["no_idle_vm"], "rounds by hand could have"
    story.rounds = story.rounds[:3]
    assert story.broken() == []


def test_of_two_vms_of_one_node_only_the_first_is_wanted():
    nodes = ["n-0"]
    def story(until):
        return (Story().job(1, (10, "configuring", nodes, 600), (60, "running", nodes, 600), (500, "finished", nodes, 600))
                .vm("n-0", 50, 510).vm("n-0", 55, until))
    assert story(70).broken() == []
    assert story(300).broken() == ["no_idle_vm"]


def test_an_admin_may_power_a_node_up():
    def story(*acts):
        told = Story().vm("n-0", 120, 150).node("n-0", (0, "IDLE+POWERED_DOWN", ""), (110, "IDLE+POWERING_UP", ""),
                                                (130, "IDLE", "")).request("j0-a", ["n-0"], 112, 120)
        for at, state in acts:
            told.scontrol(at, ["n-0"], state)
        return told.broken()
    assert story((109, "power_up")) == []
    assert story((109, "power_down")) == ["wanted_request"]


def test_vms_of_others_are_not_looked_at():
    assert Story().vm("n-0", 10, description="theirs").vm("x-9", 10).broken() == []


# The lease covers the limit


def run(limit=600, lease=1500, made=50, comment="", told_at=12, raised=None):
    nodes = ["n-0"]
    looks = [(10, "configuring", nodes, limit), (told_at, "configuring", nodes, limit, comment),
             (60, "running", nodes, raised or limit, comment), (100, "finished", nodes, raised or limit, comment)]
    return Story().job(1, *looks).vm("n-0", made, 110, run=lease).broken()


def test_a_job_whose_vm_ends_too_early_has_to_be_told():
    assert run() == []
    assert run(lease=600) == ["lease_covers"], "the time to boot counts, too"
    assert run(limit=36000) == ["lease_covers"]
    assert run(limit=36000, comment="flex: time limit 10:00:00 capped: VMs live at most 00:25:00 from their start") == []
    assert run(limit=36000, comment="flex: waiting for 1 VM") == ["lease_covers"]
    late = "flex: VMs end 02:41, before the job's time limit 12:17: it will be requeued then"
    story = Story().job(1, (10, "configuring", ["n-0"], 36000), (60, "running", ["n-0"], 36000),
                        (61, "running", ["n-0"], 36000, late)).vm("n-0", 50)
    assert story.broken() == ["lease_covers"], "after its start is too late"
    assert run(limit=None) == ["lease_covers"]


def test_a_job_that_ran_between_two_looks_has_run():
    story = Story().job(1, (10, "configuring", ["n-0"], 36000), (60, "finished", ["n-0"], 36000)).vm("n-0", 50, 70)
    assert story.broken() == ["lease_covers"]
    story.jobs[1][1]["state"] = 4
    assert story.broken() == [], "it was cancelled while it waited"


def test_a_limit_that_was_raised_before_the_start_counts():
    assert run(raised=36000) == ["lease_covers"]
    assert run(raised=300) == []
    story = Story().job(1, (10, "configuring", ["n-0"], 600), (60.4, "running", ["n-0"], 36000)).vm("n-0", 50)
    story.limits = [(60.2, 1)]
    assert story.broken() == [], "raised after the start"
    story.limits = [(20.0, 1)]
    assert story.broken() == ["lease_covers"]


OVERRUN = "flex: VMs end 02:41, before the job's time limit 12:17: it will be requeued then"


def late(told_at, *, raised_at=None, made=50, ended=200, comment=OVERRUN, sweeper_away=()):
    """A job that begins at 60 on a VM that ends too early, and is told at `told_at`."""
    first = 600 if raised_at else 36000
    looks = [(10, "configuring", ["n-0"], first), (60, "running", ["n-0"], 36000, "flex: VMs end 02:41"),
             (told_at, "running", ["n-0"], 36000, comment), (ended, "finished", ["n-0"], 36000, comment)]
    if raised_at:
        looks.insert(1, (raised_at, "configuring", ["n-0"], 36000, "flex: VMs end 02:41"))
    story = Story().job(1, *looks).vm("n-0", made, ended + 5)
    story.limits = [(raised_at, 1)] if raised_at else []
    story.down["sweeper"] = list(sweeper_away)
    return story.broken()


def test_a_limit_that_is_raised_just_before_the_start_is_told_soon_after():
    assert late(75, raised_at=58) == []
    assert late(100, raised_at=58) == ["lease_covers"], "30 s are enough"
    assert late(75, raised_at=58, comment="flex: VMs end 02:41") == ["lease_covers"], "when they end is not all"
    assert late(75, raised_at=52) == ["lease_covers"], "there was time to tell it before"
    assert late(59.5, raised_at=52) == []
    assert late(75, raised_at=52, sweeper_away=[(51, 61)]) == [], "nobody was there to tell it"
    assert late(199, raised_at=58, ended=70) == [], "it was over first"


def test_a_job_that_begins_as_soon_as_the_vm_is_there_is_told_soon_after():
    assert late(75, made=57) == []
    assert late(75, made=50) == ["lease_covers"], "there was time to tell it before"
    assert late(100, made=57) == ["lease_covers"], "30 s are enough"
    assert late(75, made=57, comment="flex: VMs end 02:41") == ["lease_covers"]


def test_a_job_that_joins_a_vm_needs_what_is_left_of_it():
    def story(lease):
        return (Story().job(1, (10, "configuring", ["n-0"], 600), (60, "running", ["n-0"], 600), (90, "finished", ["n-0"], 600))
                .job(2, (400, "running", ["n-0"], 600), (420, "finished", ["n-0"], 600))
                .vm("n-0", 50, 110 if lease is None else 450, run=lease or 1500))
    assert "lease_covers" in story(lease=800).broken()
    assert "lease_covers" not in story(lease=1500).broken()


def test_leases_that_run_faster_are_judged_by_what_was_asked_for():
    story = good()
    story.history.insert(0, {"event": "time_changed", "time": 0.0, "virtual_time": 1.0, "factor": 100.0})
    assert story.broken() == []


# One request


def test_a_job_is_split_over_two_requests():
    nodes = ["n-0", "n-1"]
    def story(ended, state):
        return (Story().job(1, (10, "configuring", nodes, 600))
                .request("j1-a", ["n-0"], 13, ended, state).request("j1-b", ["n-1"], 14, ended, state))
    assert story(None, "").broken() == ["one_request"] * 2
    assert story(20, "CANCELLED").broken() == [], "mended at once"
    assert story(20, "SUCCEEDED").broken() == ["one_request"] * 2
    violation = story(None, "").violations()[0]
    assert violation.job == 1 and "n-1" in violation.text(0) and "j1-b" in violation.text(0)


def test_a_static_node_has_a_request_of_its_own():
    nodes = ["n-0", "n-1"]
    story = (Story().job(1, (10, "configuring", nodes, 600))
             .request("j0-a", ["n-0"], 13, 20, "SUCCEEDED").request("j1-b", ["n-1"], 14, 20, "SUCCEEDED"))
    assert "one_request" in story.broken()
    story.configs = [(0.0, {"n": ["n-0"]})]
    assert "one_request" not in story.broken()


def test_a_job_on_the_nodes_of_requests_before_it_is_split():
    nodes = ["n-0", "n-1"]
    def story(*held, ended=None):
        told = Story().job(1, (5, "configuring", ["n-0"], 600), (8, "finished", ["n-0"], 600))
        told.job(2, (5, "configuring", ["n-1"], 600), (8, "finished", ["n-1"], 600)).job(3, (10, "configuring", nodes, 600))
        for number, part in enumerate(held, 1):
            told.request(f"j{number}-a", part, 6, ended, "CANCELLED" if ended else "")
        return told.broken()
    assert story(["n-0"], ["n-1"]) == ["one_request"]
    assert story(["n-0"], ["n-1"], ended=15) == []
    assert story(nodes) == [], "one has all"
    assert story() == [], "nothing has been asked for yet"


def test_a_shared_node_that_another_job_has_asked_for_is_not_asked_for_again():
    def story(first_ends):
        told = Story().job(1, (5, "configuring", ["n-0"], 600), (first_ends, "finished", ["n-0"], 600))
        told.job(2, (10, "configuring", ["n-0", "n-1"], 600), (399, "finished", ["n-0", "n-1"], 600))
        return told.request("j1-a", ["n-0"], 6).request("j2-a", ["n-1"], 12).broken()
    assert story(398) == []
    assert story(9) == ["one_request"], "that job is gone"
    assert story(200) == ["one_request"], "and from then on it counts"


def test_a_job_that_has_some_vms_asks_for_the_others():
    nodes = ["n-0", "n-1"]
    def story(until):
        return (Story().job(1, (10, "configuring", nodes, 600), (until, "pending", [], 600)).vm("n-0", 5, until + 2)
                .request("j1-a", ["n-1"], 13))
    assert story(60).broken() == []
    assert story(400).broken() == ["one_request"], "incomplete_timeout bounds the wait"


def test_requests_in_several_lanes_have_the_same_nodes():
    nodes = ["n-0", "n-1"]
    story = Story().job(1, (10, "configuring", nodes, 600))
    story.request("j1-a", nodes, 13, group="c-n-za").request("j1-b", nodes, 13, group="c-n-zb")
    assert story.broken() == []


def test_more_than_a_request_can_hold_is_in_several():
    names = [f"n-{number}" for number in range(1500)]
    story = Story(1500).job(1, (10, "configuring", names, 600))
    story.request("j1-a", names[:1000], 13).request("j1-b", names[1000:], 13)
    assert story.broken() == []


# Requests for somebody


def test_a_request_for_nobody_is_found():
    assert Story().request("j0-a", ["n-0"], 100).broken() == ["wanted_request"]
    assert Story().request("j7-a", ["n-0"], 100).broken() == ["wanted_request"]
    assert Story().ask(100, "n-0").broken() == ["wanted_request"]
    gone = good().request("j1-b", ["n-0"], 300)
    assert gone.broken() == ["wanted_request"], "the job has been over for long"


def test_a_request_for_a_job_or_a_static_node_is_not():
    assert good().request("j1-b", ["n-0"], 101, 102, "CANCELLED").broken() == [], "it was over just now"
    story = Story().request("j0-a", ["n-0"], 100).ask(100, "n-0")
    story.configs = [(0.0, {"n": ["n-0"]})]
    assert story.broken() == []
    story = Story().request("j0-a", ["n-0"], 100)
    story.by_hand = ["j0-a"]
    assert story.broken() == [], "the test made it itself"
    assert Story().job(3, (90, "configuring", ["n-0"], 60)).ask(100, "n-0").broken() == []


def test_a_request_that_is_made_while_slurmctld_is_away_is_judged_when_it_is_back():
    def story(seen):
        made = Story().request("j3-a", ["n-0"], 100, 101, "CANCELLED").job(3, (seen, "configuring", ["n-0"], 60))
        made.down["slurmctld"] = [(95.0, 110.0)]
        return made.broken()
    assert story(112) == [], "it was started a moment before slurmctld went"
    assert story(130) == ["wanted_request"]


# Drains


def drained(*looks, undrained=None, reason="broken"):
    story = Story().scontrol(100, ["n-0"], "drain", reason).node("n-0", (0, "IDLE", ""), *looks)
    if undrained:
        story.scontrol(undrained, ["n-0"], "undrain")
    return story.broken()


def test_a_drain_that_is_lost_is_found():
    assert drained((101, "IDLE+DRAIN", "broken"), (200, "IDLE+POWERED_DOWN", "")) == ["drain_kept"]
    assert drained((101, "IDLE+DRAIN", "broken"), (200, "IDLE+DRAIN", "flex: nodeset n is stopped")) == ["drain_kept"]


def test_a_drain_that_slurmctld_takes_by_itself_is_no_excuse():
    def left(reason, before="IDLE+DRAIN"):
        story = Story().scontrol(100, ["n-0"], "drain", "broken").node(
            "n-0", (0, "IDLE", ""), (101, "IDLE+DRAIN", "broken"), (199, before, "broken"), (200, "IDLE+POWERING_DOWN", reason))
        return [violation.invariant for violation in judge(story.violations(), known())[0]]
    assert left("broken") == ["drain_kept"]
    assert left("flex: no VMs within provision_timeout") == ["drain_kept"]
    assert left("broken", before="IDLE+DRAIN+POWER_DOWN") == ["drain_kept"]


def test_a_drain_that_is_put_back_or_taken_away_by_the_admin_is_not():
    assert drained((101, "IDLE+DRAIN", "broken")) == []
    assert drained((101, "IDLE+DRAIN", "NHC: Xid 79"), (200, "IDLE", ""), reason="NHC: Xid 79") == [], "it asks for a repair"
    assert drained((101, "IDLE+DRAIN", "broken"), (200, "IDLE+POWERING_DOWN", ""), (204, "IDLE+DRAIN", "broken")) == []
    assert drained((101, "IDLE+DRAIN", "broken"), (200, "IDLE", ""), undrained=199) == []


# Declarations and parts


def test_what_is_declared_is_no_failure_and_what_is_declared_in_vain_is():
    found = good().vm("n-0", 120, 400).violations()
    assert judge(found, [Expected("no_idle_vm", "why", frozenset(["n-0", "n-1"]))]) == ([], [])
    for other in (Expected("no_idle_vm", "why", frozenset(["n-1"])), Expected("one_request", "why", frozenset(["n-0"]))):
        assert judge(found, [other]) == (found, [other])


def test_a_story_tells_what_happened():
    record = good().vm("n-0", 120, 400).record()
    text = "\n".join(invariants.story(record, invariants.check(record)[0]))
    for words in ("VM n-0 is made", "request j1-a", "job 1 running", "VM n-0 ends: deleted"):
        assert words in text


def test_intervals():
    assert subtract([(0, 10)], [(2, 3), (8, 20)]) == [(0, 2), (3, 8)]
    assert overlap((0, 10), [(2, 3), (8, 20)]) == [(2, 3), (8, 10)]
    assert joined([(5, 6), (0, 2), (2, 3)]) == [(0, 3), (5, 6)]


@pytest.mark.parametrize("text,value", [("15m", 900), ("1h30m", 5400), ("500ms", 0.5), (None, 7), (20, 20)])
def test_durations(text, value):
    assert seconds(text, 7) == value


def test_what_is_known_of_a_nodeset():
    facts = nodeset_facts(Nodeset("n", 2, partition={"SuspendTime": "INFINITE"}),
                          {"defaults": {"run_duration_margin": "1m"}, "nodesets": {"n": {"mode": "individual"}}}, ["n-1"])
    assert facts["suspend_time"] is None and facts["margin"] == 60 and not facts["is_queued"] and facts["excluded"] == ["n-1"]
    assert expand("a-[0-2,5],b-1") == ["a-0", "a-1", "a-2", "a-5", "b-1"]
    assert asked_nodes({"body": {"instances": [{"name": "a"}], "perInstanceProperties": {"b": {}, "c": {"name": "d"}}}}) == \
        ["a", "b", "d"]
