# SPDX-License-Identifier: GPL-2.0-or-later
"""The sweeper as a daemon beside a real slurmctld: what it mends, and what it leaves alone.

The scenes are in sweeper_scenes.py and are all played at the same time, from the first test of the
sweeper on. What concerns them all at once, an outage, comes after them.
"""
import time

import pytest

from sweeper_scenes import FOREIGN, SCENES, foreign
from sweeper_site import Moment, is_write

OUTAGE = 20


@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(stage, scene):
    stage.outcome(scene)


def test_two_jobs_of_one_nodeset_never_share_a_fate(stage):
    """All the time, whatever happened around it."""
    stage.wait_all()
    names = {now.queued("cancel-2") for now in stage.history if now.queued("cancel-2")}
    assert len(names) == 1
    assert stage.now.state(stage.job["right"]) == "CONFIGURING"


# All at once

def writes(stage, since):
    return [call for call in stage.emulator.journal(since) if is_write(call)]


def last_call(stage):
    return max(call["seq"] for call in stage.emulator.journal())


def nodes_of(moment, *without):
    return {name: moment.words(name) for name in moment.nodes if name not in without}


@pytest.fixture
def after_scenes(stage):
    """The scenes are over, and there are still jobs in the queue, a job at work, static nodes."""
    stage.wait_all()
    cluster = stage.cluster
    cluster.wait_for(lambda: Moment(cluster).is_up("orphan-0", "fixed-0", "fixed-1", "short-0"), 60,
                     "nodes in use")
    yield stage
    stage.emulator.clear_faults()


def quiet(stage):
    """A moment in which neither the sweeper nor slurmctld has anything under way."""
    cluster = stage.cluster

    def quiet_moment():
        before = last_call(stage)
        time.sleep(2.5)
        now = Moment(cluster)
        is_quiet = not writes(stage, before) and not any("POWERING_DOWN" in now.words(name) for name in now.nodes)
        return now if is_quiet else None
    return cluster.wait_for(quiet_moment, 60, "a quiet moment", interval=0)


def test_while_the_api_is_away_nothing_happens_and_afterwards_it_goes_on(after_scenes):
    stage, cluster = after_scenes, after_scenes.cluster
    before = quiet(stage)
    stage.emulator.fault("*", "503", count=10**9)
    start = last_call(stage)
    stage.emulator.advance(300)
    stage.emulator.kill_instance("fixed-0")
    cluster.scancel(stage.job["right"])
    began, middle = time.monotonic(), None
    while time.monotonic() < began + OUTAGE:
        now = Moment(cluster)
        if middle is None and time.monotonic() > began + OUTAGE / 2:
            middle = last_call(stage)
        assert nodes_of(now, "cancel-2", "fixed-0") == nodes_of(before, "cancel-2", "fixed-0")
        assert "POWERING_UP" in now.words("cancel-2")
        # slurmctld itself misses the VM soon; SlurmdTimeout is 60 s.
        assert now.words("fixed-0") - {"NOT_RESPONDING"} == {"IDLE", "CLOUD"}
        assert set(before.vms) - set(now.vms) == {"fixed-0"}
        assert set(now.groups) == set(before.groups)
        assert now.queued("cancel-2") == before.queued("cancel-2")
        time.sleep(0.5)
    calls = stage.emulator.journal(start)
    assert all(call["status"] == 503 for call in calls)
    assert calls, "the sweeper did not try again"
    # It backs off: fewer calls than the rounds that the interval of 1 s would give, and ever fewer.
    second = [call for call in calls if call["seq"] > middle]
    assert len(calls) <= 2 * OUTAGE, len(calls)
    assert len(second) <= max(3, len(calls) - len(second)), (len(calls), len(second))
    stage.emulator.clear_faults()
    cluster.wait_for(lambda: Moment(cluster).is_off("cancel-2"), 60, "the cancelled job's node to be powered down")
    cluster.wait_for(lambda: not Moment(cluster).active("cancel-2"), 20, "its request to be cancelled")
    cluster.wait_for(lambda: Moment(cluster).is_up("fixed-0"), 60, "the lost static node to come back")


def test_while_slurmctld_is_away_nothing_happens_and_afterwards_it_goes_on(after_scenes):
    stage, cluster = after_scenes, after_scenes.cluster
    before = quiet(stage)
    cluster.stop_slurmctld()
    start = last_call(stage)
    stage.emulator.kill_instance("fixed-1")
    time.sleep(10)
    assert not writes(stage, start)
    assert len(stage.emulator.journal(start)) <= 10 * (1 + 2 * len(before.groups))
    cluster.start_slurmctld()
    after = Moment(cluster)
    assert after.queued("gone-0") == before.queued("gone-0")
    assert after.state(stage.job["orphan"]) == "RUNNING"
    cluster.scancel(stage.job["gone"])
    cluster.wait_for(lambda: not Moment(cluster).active("gone-0"), 60, "the cancelled job's request to be cancelled")
    cluster.wait_for(lambda: Moment(cluster).is_off("gone-0"), 30, "its node to be powered down")
    cluster.wait_for(lambda: Moment(cluster).is_up("fixed-1"), 60, "the lost static node to come back")


def test_nothing_of_others_was_touched(after_scenes):
    stage = after_scenes
    assert foreign(stage.emulator) == stage.foreign
    assert stage.emulator.journal()[0]["seq"] <= stage.journal_start, "the journal has lost its beginning"
    calls = writes(stage, stage.journal_start)
    assert len(calls) > 50
    for call in calls:
        assert "us-central1-d" not in f"{call['path']} {call['body']}", call
        parts = call["path"].split("/")
        assert not set(FOREIGN) & set(parts), call


def test_every_action_was_explained(after_scenes):
    log = after_scenes.cluster.log("flex-sweeper.log")
    actions = [line for line in log.splitlines() if " event=action " in f" {line} "]
    assert len(actions) > 20
    assert all("rule=" in line and "what=" in line and 'why="' in line for line in actions)
    rules = {line.partition("rule=")[2].split()[0] for line in actions}
    assert rules >= {"unrequested_node", "stale_request", "keep_waiting", "boot_timeout", "unbacked_node",
                     "orphan_instance", "static_node", "empty_mig", "finished_request", "job_note"}


def test_every_call_was_right(after_scenes):
    """None outside the API, none that was refused for its shape."""
    calls = after_scenes.emulator.journal(after_scenes.journal_start)
    # A request for a group that another process is just creating: not ready, and taken when it is.
    taken = {(call["path"], call["body"]["name"]) for call in calls
             if call["method"].endswith("ResizeRequests.insert") and call["status"] in (200, 409)}
    for call in calls:
        assert call["method"], call
        is_early = call["method"].endswith("ResizeRequests.insert") and (
            call["path"], call["body"]["name"]) in taken
        assert call["status"] < 400 or call["status"] in (404, 409, 412) or call.get("fault") or (
            call["status"] == 400 and is_early), call


# Cost

def test_a_day_of_rounds_takes_few_calls_and_no_more_memory(still):
    assert still.join() == 0, still.cluster.log("day.out")
    calls = still.calls_made()
    groups = len(still.now.groups)
    assert groups == 2
    # What no nodeset here needs is looked for after the first round, and four times an hour.
    seldom = {"regions.get", "instances.list", "resourcePolicies.list"}
    assert all(calls.pop(method, 0) <= 12 for method in seldom), calls
    assert set(calls) <= {"regionInstanceGroupManagers.list", "regionInstanceGroupManagers.listManagedInstances",
                          "regionInstanceGroupManagerResizeRequests.list"}, calls
    # A call that a busy machine does not answer in time is made again.
    assert sum(calls.values()) <= still.ROUNDS * (1 + 2 * groups) * 1.01, calls
    assert sum(calls.values()) >= still.ROUNDS, calls
    settled = [size for number, size in still.sizes if number >= still.SETTLED]
    assert len(settled) >= 5, still.sizes
    print(f"VmRSS in KiB: after {still.SETTLED} rounds {settled[0]}, at the end {settled[-1]}, most {max(settled)}")
    assert settled[-1] - settled[0] <= 2048, settled
    assert still.now.queued("wait-0") and still.now.is_up("up-0", "up-1")
