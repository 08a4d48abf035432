# SPDX-License-Identifier: GPL-2.0-or-later
"""More than one request for the same nodes: what on_stockout tries next, races, renewals. One scene each."""
import re

from harness.conf import Nodeset
from harness.emulator import REGION
from modes_site import HELLO, NAME, zone, zones
from modes_scenes import hellos
from sweeper_site import pause, until


def then(**step):
    """An entry of on_stockout: after 3 s."""
    return {"wait": "3s", **step}


NODESETS = [
    Nodeset("tozone", 2, {**zones("i"), "on_stockout": [then(**zones("j"))]}),
    Nodeset("toone", 2, {**zones("k"), "on_stockout": [then(mode="individual")]}),
    Nodeset("tobulk", 2, {**zones("c"), "on_stockout": [then(mode="bulk_insert", **zones("a"))]}),
    Nodeset("chain", 2, {**zones("c"), "on_stockout": [
        then(**zones("l")), then(mode="individual"), then(mode="queued", **zones("a"))]}),
    Nodeset("stay", 2, {**zones("m"), "on_stockout": [then(**zones("v"))]}),
    Nodeset("leave", 2, {**zones("c"), "on_stockout": [then(**zones("n")), then(mode="individual")]}),
    Nodeset("first", 2, {**zones("op"), "race": 2}),
    Nodeset("both", 2, {**zones("qr"), "race": 2}),
    Nodeset("nostep", 2, {**zones("w"), "retry": {"base": "1s", "max": "2s"},
                          "on_stockout": [then(instance_template="missing-template")]}),
    Nodeset("nozone", 2, {"zones": [zone("x"), f"{REGION}-ai1a"], "race": 2}),
    Nodeset("invain", 2, {**zones("y"), "retry": {"base": "1s", "max": "1s", "limit": 2},
                          "on_stockout": [then(mode="bulk_insert", **zones("c"))]}),
    Nodeset("renew", 2, {**zones("s"), "resubmit_after": "4s"}),
    Nodeset("again", 2, {**zones("ut"), "race": 2, "resubmit_after": "4s"}),
]
CAPACITY = {letter: 0 for letter in "ijklmnopqrstuvwxy"}


def submit(stage, nodeset):
    return stage.submit(nodeset, "-p", nodeset, "-N2", "--time=10", script=HELLO)


def seq_of(stage, method, word, since=0):
    """Numbers of the calls that were taken and whose path or body has the word."""
    return [call["seq"] for call in stage.calls(method) if call["seq"] > since
            and (word in call["path"] or word in str(call["body"]))]


def never_without(stage, began, *nodes):
    """From then on every look has shown an active request, a VM or an entry of each node."""
    for now in stage.since(began):
        for node in nodes:
            assert now.waiting(node) or now.copies(node) or now.waits_alone(node), f"{node} was not asked for"


def runs_and_goes(stage, nodeset, job, letters):
    """Steps: the job runs on one VM for each node, in these zones, and nothing of it is left."""
    nodes = stage.nodes(nodeset)
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
    assert hellos(stage, job) == nodes
    assert stage.now.restarts(job) == 0
    used = {zone for now in stage.history for zone in now.zones_of(*nodes)}
    assert used <= set(letters), used
    yield until(lambda now: now.is_clean(nodeset, *nodes), 60, "everything of it to be gone")


def first_request(now, nodeset):
    """The name of the first step's request, once it is in the queue. A slow look may see the next step beside it."""
    found = [request.name for request in now.waiting(f"{nodeset}-0")
             if request.group == f"{NAME}-{nodeset}" and request.state == "ACCEPTED"]
    return found[0] if found else ""


def to_another_zone(stage):
    """Both zones are full: the request moves to the second, and is cancelled in the first when it has."""
    job, nodes = submit(stage, "tozone"), stage.nodes("tozone")
    first = yield until(lambda now: first_request(now, "tozone"), 40, "a queued request")
    began = stage.now
    yield until(lambda now: [request for request in now.waiting("tozone-0") if request.name != first
                             or request.group != f"{NAME}-tozone"], 30, "the next step")
    yield until(lambda now: len(now.waiting("tozone-0")) == 1 and
                now.waiting("tozone-0")[0].group == f"{NAME}-tozone-s1", 30, "the first to be cancelled")
    never_without(stage, began, *nodes)
    # While the second was not in the queue the first was.
    for now in stage.since(began):
        states = {request.group: request.state for request in now.requests_for("tozone-0")}
        if states[f"{NAME}-tozone"] != "ACCEPTED":
            assert states[f"{NAME}-tozone-s1"] == "ACCEPTED"
    group = [call["body"] for call in stage.calls("regionInstanceGroupManagers.insert")
             if call["body"]["name"] == f"{NAME}-tozone-s1"]
    assert [entry["zone"].rpartition("/")[2] for entry in group[0]["distributionPolicy"]["zones"]] == [zone("j")]
    assert stage.log("event=action", "rule=on_stockout", "tozone-[0-1]")
    assert stage.log("event=action", "rule=surplus_request", f"target={NAME}-tozone/")
    stage.give(i=2, j=2)
    yield from runs_and_goes(stage, "tozone", job, "j")


def to_one_by_one(stage):
    job, nodes = submit(stage, "toone"), stage.nodes("toone")
    yield until(lambda now: first_request(now, "toone"), 40, "a queued request")
    began = stage.now
    yield until(lambda now: all(now.waits_alone(node) for node in nodes), 30, "entries one by one")
    yield until(lambda now: not now.waiting("toone-0"), 20, "the request to be cancelled")
    never_without(stage, began, *nodes)
    assert len(stage.creates("toone-0")) == 1
    stage.give(k=2)
    yield from runs_and_goes(stage, "toone", job, "k")


def to_bulk(stage):
    """VMs without a group come at once; the request in the full zone goes."""
    job, nodes = submit(stage, "tobulk"), stage.nodes("tobulk")
    yield until(lambda now: first_request(now, "tobulk"), 40, "a queued request")
    yield until(lambda now: now.has_vms(*nodes), 40, "VMs")
    assert {vm["group"] for node in nodes for vm in stage.now.copies(node)} == {""}
    yield until(lambda now: not now.waiting("tobulk-0"), 20, "the request to be cancelled")
    yield from runs_and_goes(stage, "tobulk", job, "a")


def chain_of_steps(stage):
    """Each step after the one before it, until there are VMs."""
    job, nodes = submit(stage, "chain"), stage.nodes("chain")
    yield until(lambda now: first_request(now, "chain"), 40, "a queued request")
    began = stage.now
    yield until(lambda now: now.has_vms(*nodes), 60, "VMs")
    never_without(stage, began, *nodes)
    made = [call["body"]["name"] for call in stage.calls("regionInstanceGroupManagers.insert")
            if call["body"]["name"].startswith(f"{NAME}-chain")]
    assert made == [f"{NAME}-chain{end}" for end in ("", "-s1", "-s2", "-s3")]
    yield until(lambda now: not now.waiting("chain-0") and not any(now.waits_alone(node) for node in nodes), 30,
                "the earlier steps to be taken back")
    yield from runs_and_goes(stage, "chain", job, "a")


def room_in_both(stage):
    """There is room in both zones just when the next step is asked for: the VMs come only once."""
    job, nodes = submit(stage, "stay"), stage.nodes("stay")
    yield until(lambda now: first_request(now, "stay"), 40, "a queued request")
    yield until(lambda now: len(stage.inserts("stay-0")) == 2, 30, "the next step")
    stage.give(m=2, v=2)
    yield until(lambda now: now.has_vms(*nodes) and not now.waiting("stay-0"), 30, "one VM for each node")
    assert len(stage.now.zones_of(*nodes)) == 1, "VMs of one job in two zones"
    yield from runs_and_goes(stage, "stay", job, "mv")


def cancelled_on_the_way(stage):
    """Cancelled after the steps: whatever was tried is taken back."""
    job, nodes = submit(stage, "leave"), stage.nodes("leave")
    yield until(lambda now: all(now.waits_alone(node) for node in nodes), 60, "the last step")
    stage.cluster.scancel(job)
    yield until(lambda now: now.is_clean("leave", *nodes), 60, "everything of it to be gone")
    stage.give(n=2)
    assert all(now.has_no_vm(*nodes) for now in stage.history)


def first_wins(stage):
    """Two requests in two zones; the one that is served wins and the other is cancelled."""
    job, nodes = submit(stage, "first"), stage.nodes("first")
    yield until(lambda now: [request.state for request in now.waiting("first-0")] == ["ACCEPTED"] * 2, 40,
                "two queued requests")
    assert {request.group for request in stage.now.waiting("first-0")} == {f"{NAME}-first-zo", f"{NAME}-first-zp"}
    assert len({request.name for request in stage.now.waiting("first-0")}) == 1
    stage.give(p=2)
    yield until(lambda now: now.has_vms(*nodes), 20, "its VMs")
    yield until(lambda now: not now.waiting("first-0"), 20, "the other to be cancelled")
    stage.give(o=2)
    yield from runs_and_goes(stage, "first", job, "p")


def both_win(stage):
    """Both are served at the same moment: one VM of each name stays, and the job keeps it."""
    job, nodes = submit(stage, "both"), stage.nodes("both")
    yield until(lambda now: [request.state for request in now.waiting("both-0")] == ["ACCEPTED"] * 2, 40,
                "two queued requests")
    stage.give(q=2, r=2)
    # Two VMs of each name: where a look is slow, the sweeper has seen them first, and deleted one.
    yield until(lambda now: [request.state for request in now.requests_for("both-0")] == ["SUCCEEDED"] * 2, 20,
                "both to be served")
    yield until(lambda now: now.has_vms(*nodes), 30, "one of each to be deleted")
    assert len(stage.now.zones_of(*nodes)) == 1, "VMs of one job in two zones"
    kept = {node: stage.now.copies(node)[0]["zone"] for node in nodes}
    began = stage.now
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
    # A slow look may see the job run, and then one of the VMs gone already, which it gave back at its end.
    for now in stage.since(began):
        found = [(node, vm["zone"]) for node in nodes for vm in now.copies(node)]
        assert set(found) <= set(kept.items()) and len(found) == len(set(found)), (found, kept)
    yield from runs_and_goes(stage, "both", job, "qr")


def refused_beside(nodeset, letter, is_refused):
    """A scene: something beside the request is refused, again and again; the job waits on, and then runs."""
    def scene(stage):
        job = submit(stage, nodeset)
        name = yield until(lambda now: now.queued(f"{nodeset}-0"), 40, "a queued request")
        yield until(lambda now: is_refused(stage), 60, "refusals beside it")
        yield pause(4)
        assert stage.now.queued(f"{nodeset}-0") == name, "it has lost its place"
        assert stage.now.state(job) == "CONFIGURING" and stage.now.restarts(job) == 0
        stage.give(**{letter: 2})
        yield from runs_and_goes(stage, nodeset, job, letter)
    return scene


def refusals(method, word, count):
    """Whether so many calls of the method that name the word have been refused."""
    return lambda stage: len([call for call in stage.emulator.calls(method, stage.journal_start)
                              if call["status"] == 400 and word in str(call["body"])]) >= count


def renewed(stage):
    """Again and again in the other of two groups; the old one goes when the new one is in the queue."""
    job, nodes = submit(stage, "renew"), stage.nodes("renew")
    # On a busy machine the sweeper may have asked, and renewed, before flex-resume has done what it saw to do.
    yield until(lambda now: re.search(r"event=resumed .*renew-\[", stage.cluster.log("flex-resume.log")), 60, "flex-resume to end")
    yield until(lambda now: now.waiting("renew-0"), 40, "a queued request")
    began, earlier = stage.now, len(stage.inserts("renew-0"))
    yield until(lambda now: len(stage.inserts("renew-0")) >= earlier + 3, 60, "three renewals")
    never_without(stage, began, *nodes)
    for now in stage.since(began):
        assert [request for request in now.requests_for("renew-0") if request.state == "ACCEPTED"], \
            "no request was in the queue"
        assert len(now.waiting("renew-0")) <= 2
    asked = stage.inserts("renew-0")[earlier:]
    paths = [call["path"].rpartition("/instanceGroupManagers/")[2].partition("/")[0] for call in asked]
    assert all(left != right for left, right in zip(paths, paths[1:])), paths
    assert set(paths) == {f"{NAME}-renew", f"{NAME}-renew-r"}
    assert len({call["body"]["name"] for call in asked}) == len(asked)
    stage.give(s=-1)
    yield from runs_and_goes(stage, "renew", job, "s")


def race_renewed(stage):
    """Both lanes of a race are renewed; one wins, and all the others are cancelled."""
    job, nodes = submit(stage, "again"), stage.nodes("again")
    yield until(lambda now: len(now.waiting("again-0")) == 2, 40, "two requests")
    began = stage.now
    yield until(lambda now: len(stage.inserts("again-0")) >= 4, 60, "a renewal of both")
    never_without(stage, began, *nodes)
    stage.give(t=2)
    yield until(lambda now: now.has_vms(*nodes), 20, "its VMs")
    yield until(lambda now: not now.waiting("again-0"), 20, "all others to be cancelled")
    yield from runs_and_goes(stage, "again", job, "t")


SCENES = {
    "another zone": to_another_zone,
    "one by one": to_one_by_one,
    "without a group": to_bulk,
    "chain": chain_of_steps,
    "room in both": room_in_both,
    "cancelled on the way": cancelled_on_the_way,
    "first wins": first_wins,
    "both win": both_win,
    "step refused": refused_beside("nostep", "w", refusals("GroupManagers.insert", "missing-template", 2)),
    "zone refused": refused_beside("nozone", "x", refusals("GroupManagers.insert", "ai1a", 1)),
    "bulk in vain": refused_beside("invain", "y", lambda stage: len(stage.bulks("invain-0")) >= 4),
    "renewed": renewed,
    "race renewed": race_renewed,
}
