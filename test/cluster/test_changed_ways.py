# SPDX-License-Identifier: GPL-2.0-or-later
"""A configuration that changes while groups, requests and VMs of the old one are there: template, zones of a race, a group
per job, and mode. On a real slurmctld, with rounds of the sweeper by hand. Zones c and d never have room, zone a always has."""
import re
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION
from sweeper_desk import Desk

TEMPLATES = [{"name": "flex-template"}, {"name": "new-template"}, {"name": "third-template"}]
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "1h", "empty_mig_grace": "1s", "listen": "127.0.0.1:0",
                        "finished_request_grace": "1h"}}
CHANGED = "-c[0-9a-z]{6}"


def zones(letters):
    return {"zones": [f"{REGION}-{letter}" for letter in letters]}


WAYS = ("queued", "individual", "bulk_insert")
MODES = [(old, new) for old in WAYS for new in WAYS if old != new]


def nodeset_of(old, new):
    return f"{old[0]}to{new[0]}"


NODESETS = [
    Nodeset("shape", 3, zones("c"), boots=False),
    Nodeset("lanes", 2, {**zones("cd"), "race": 2}, boots=False),
    Nodeset("own", 2, {**zones("c"), "mig_scope": "job"}, boots=False),
    Nodeset("again", 1, {**zones("c"), "resubmit_after": "3s"}, boots=False),
] + [Nodeset(nodeset_of(old, new), 2, {**zones("a"), "mode": old}, boots=False) for old, new in MODES]


class Changes(Desk):
    def __init__(self, build):
        super().__init__(build, NODESETS, SETTINGS, {f"{REGION}-d": 0})
        self.emulator.settings["regions"] = {REGION: [f"{REGION}-{letter}" for letter in "abcd"]}
        self.emulator.settings["templates"] = TEMPLATES

    def active(self, node):
        return [request for request in self.emulator.requests() if request.is_active and node in request.nodes]

    def wait_active(self, node, count=1):
        self.cluster.wait_for(lambda: len(self.active(node)) == count, 60, f"{count} requests for {node}")
        return self.active(node)

    def change(self, nodeset, **settings):
        config = {**self.cluster.flex_config, "nodesets": dict(self.cluster.flex_config["nodesets"])}
        config["nodesets"][nodeset] = {**config["nodesets"][nodeset], **settings}
        self.cluster.write_flex_config(config)

    def made_with(self, group):
        """Template and zones that the group was made with."""
        body = next(call["body"] for call in self.emulator.calls("regionInstanceGroupManagers.insert")
                    if call["body"]["name"] == group)
        template = body.get("instanceTemplate") or body["versions"][0]["instanceTemplate"]
        return template.rpartition("/")[2], [zone["zone"].rpartition("/")[2] for zone in body["distributionPolicy"]["zones"]]

    def until_gone(self, *groups):
        self.rounds(lambda now: not set(groups) & set(self.emulator.groups()), most=10, apart=1)


@pytest.fixture(scope="module")
def desk(build):
    desk = Changes(build)
    with desk.cluster:
        yield desk


def test_a_changed_template_makes_a_new_group_and_the_old_one_goes(desk):
    jobs, groups = [], []
    for number, template in enumerate(("flex-template", "new-template", "third-template")):
        desk.change("shape", instance_template=template)
        jobs.append(desk.submit("shape", "-w", f"shape-{number}"))
        [request] = desk.wait_active(f"shape-{number}")
        groups.append(request.group)
        assert desk.made_with(request.group)[0] == template
    assert groups[0] == "desk-shape" and len(set(groups)) == 3
    assert all(re.fullmatch(f"desk-shape{CHANGED}", group) for group in groups[1:]), groups
    # What waits in the old groups goes on, whatever the rounds do.
    for _ in range(2):
        desk.round()
    assert [len(desk.active(f"shape-{number}")) for number in range(3)] == [1, 1, 1]
    desk.cluster.scancel(*jobs[:2])
    desk.until_gone(*groups[:2])
    assert desk.active("shape-2")
    # Back to the first: its group is gone, so it is made again under its first name.
    desk.change("shape", instance_template="flex-template")
    desk.cluster.scancel(jobs[2])
    desk.until_gone(groups[2])
    desk.cluster.wait_off("shape-0")
    desk.submit("shape", "-w", "shape-0")
    [request] = desk.wait_active("shape-0")
    assert request.group == "desk-shape"


def test_a_race_after_its_template_has_changed(desk):
    first = desk.submit("lanes", "-w", "lanes-0")
    old = sorted(request.group for request in desk.wait_active("lanes-0", 2))
    desk.change("lanes", instance_template="new-template")
    desk.submit("lanes", "-w", "lanes-1")
    new = sorted(request.group for request in desk.wait_active("lanes-1", 2))
    assert old == ["desk-lanes-zc", "desk-lanes-zd"]
    assert [desk.made_with(group) for group in new] == [("new-template", [f"{REGION}-c"]), ("new-template", [f"{REGION}-d"])]
    assert all(re.fullmatch(f"{before}{CHANGED}", group) for before, group in zip(old, new)), new
    for _ in range(2):
        desk.round()
    assert sorted(request.group for request in desk.active("lanes-0")) == old
    desk.cluster.scancel(first)
    desk.until_gone(*old)
    assert len(desk.active("lanes-1")) == 2


def test_a_group_per_job_after_the_zones_have_changed(desk):
    first = desk.submit("own", "-w", "own-0")
    [old] = desk.wait_active("own-0")
    desk.change("own", **zones("d"), instance_template="new-template")
    second = desk.submit("own", "-w", "own-1")
    [new] = desk.wait_active("own-1")
    assert (old.group, new.group) == (f"desk-own-j{first}", f"desk-own-j{second}")
    assert desk.made_with(new.group) == ("new-template", [f"{REGION}-d"])
    for _ in range(2):
        desk.round()
    assert [request.group for request in desk.active("own-0")] == [old.group]
    # The job's next life begins while its old group is still there.
    desk.cluster.scancel(first)
    desk.until_gone(old.group)
    assert desk.active("own-1")


def test_a_renewal_after_the_template_has_changed_goes_into_a_new_group(desk):
    """Each renewal is in another group than the one before it, so there are two new ones."""
    job = desk.submit("again")
    [old] = desk.wait_active("again-0")
    desk.change("again", instance_template="new-template", **zones("d"))
    groups = set()
    for _ in range(10):
        time.sleep(1)
        # A round whose renewal finds the names in use until the old request is gone ends with 1.
        assert desk.cluster.sweep().returncode in (0, 1)
        desk.emulator.wait(operations=0)
        groups = {request.group for request in desk.active("again-0")}
        if groups and old.group not in groups:
            break
    assert groups and old.group not in groups, groups
    assert {desk.made_with(group) == ("new-template", [f"{REGION}-d"]) for group in groups} == {True}, groups
    desk.cluster.scancel(job)
    desk.rounds(lambda now: not desk.active("again-0"), most=6, apart=1)


@pytest.mark.parametrize("old,new", MODES)
def test_vms_are_found_whatever_mode_has_made_them(desk, old, new):
    """A VM that runs is deleted when its node is given back, and the next job gets one as the new mode says."""
    cluster, emulator = desk.cluster, desk.emulator
    name = nodeset_of(old, new)
    node = f"{name}-0"
    job = desk.submit(name, "-w", node)
    cluster.wait_for(lambda: emulator.vms().get(node) == "RUNNING", 60, "the VM")
    desk.change(name, mode=new)
    # The sweeper knows the VM: it neither deletes it nor asks for another one.
    since = max(call["seq"] for call in emulator.journal())
    for _ in range(2):
        desk.round()
    assert emulator.vms().get(node) == "RUNNING"
    assert not [call for call in emulator.journal(since) if node in str(call["body"]) and "nsert" in call["method"]]
    cluster.scancel(job)
    cluster.give_back(node)
    cluster.wait_for(lambda: node not in emulator.vms(), 30, "the VM to go")
    assert not re.search(f"event=already_gone.*{node}", cluster.log("flex-suspend.log"))
    cluster.wait_off(node)
    second = desk.submit(name, "-w", node)
    cluster.wait_for(lambda: emulator.vms().get(node) == "RUNNING", 60, "the next job's VM")
    calls = emulator.journal(since)
    made = {"queued": "regionInstanceGroupManagerResizeRequests.insert",
            "individual": "regionInstanceGroupManagers.createInstances", "bulk_insert": "regionInstances.bulkInsert"}[new]
    assert [call for call in calls if call["method"] == made and node in str(call["body"])], \
        [(call["method"], call["status"]) for call in calls if "nsert" in call["method"] or "create" in call["method"]]
    cluster.scancel(second)


@pytest.mark.parametrize("old,new", [(old, new) for old, new in MODES if old == "queued"])
def test_a_request_that_waits_is_cancelled_whatever_the_mode_is_now(desk, old, new):
    cluster, emulator = desk.cluster, desk.emulator
    name = nodeset_of(old, new)
    node = f"{name}-1"
    desk.change(name, mode=old, **zones("c"))
    job = desk.submit(name, "-w", node)
    [request] = desk.wait_active(node)
    desk.change(name, mode=new, **zones("a"))
    for _ in range(2):
        desk.round()
    # It waits as before: nothing else is asked for beside it.
    assert [one.name for one in desk.active(node)] == [request.name]
    assert node not in emulator.vms()
    cluster.scancel(job)
    time.sleep(1)
    desk.rounds(lambda now: not desk.active(node), most=6, apart=1)
    desk.until_gone(request.group)
