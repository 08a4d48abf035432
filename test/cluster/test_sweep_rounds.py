# SPDX-License-Identifier: GPL-2.0-or-later
"""Rounds of the sweeper by hand: what one round, two or three do about a job, and that they do nothing
to the job beside it."""
import re
import time

import pytest

from sweeper_desk import INSERT, LATE, NEVER, QUOTA


@pytest.fixture(autouse=True)
def faultless(desk):
    yield
    desk.emulator.clear_faults()


class Bystander:
    """A job that waits in the same nodeset: nothing of it may change."""

    def __init__(self, desk, nodeset, node):
        self.desk, self.node = desk, node
        self.job = desk.submit(nodeset, "-w", node, "-N1")
        self.request = desk.queued(node)[0]

    def check(self):
        now = self.desk.now
        assert now.queued(self.node) == self.request
        assert now.state(self.job) == "CONFIGURING"
        assert "POWERING_UP" in now.words(self.node) and "ALLOCATED" in now.words(self.node)
        assert now.restarts(self.job) == 0
        writes = [call["path"] for call in self.desk.emulator.journal() if call["verb"] != "GET"]
        assert not [path for path in writes if self.request in path]


# Cancelled

def test_a_cancelled_job_s_request_and_nodes_go_and_the_other_job_stays(desk):
    other = Bystander(desk, "left", "left-2")
    job = desk.submit("left", "-w", "left-[0-1]", "-N2")
    name = desk.queued("left-0")[0]
    desk.round()
    assert desk.now.queued("left-0") == name
    desk.cluster.scancel(job)
    desk.rounds(lambda now: not now.active("left-0"), most=2)
    desk.wait(lambda now: now.is_off("left-0", "left-1"), 30, "the nodes to be powered down")
    other.check()
    desk.round()
    other.check()
    desk.finish(other.job)


# Failed

def test_a_request_that_fails_for_good_holds_its_job_and_the_other_job_stays(desk):
    other = Bystander(desk, "bad", "bad-1")
    desk.emulator.fault(INSERT, "request_failed", **NEVER)
    job = desk.asked("bad", "-w", "bad-0", "-N1")
    name = desk.emulator.requests_of(job)[0].name
    desk.rounds(lambda now: now.is_held(job))
    assert "flex: no VMs" in desk.now.comment(job) and "not to be had" in desk.now.comment(job)
    desk.wait(lambda now: now.is_off("bad-0"), 30, "its node to be powered down")
    desk.rounds(lambda now: name not in [request.name for request in now.requests])
    assert desk.now.is_held(job) and desk.now.is_off("bad-0")
    other.check()
    desk.finish(job, other.job)


def test_a_request_that_fails_in_time_is_asked_for_again_and_the_other_job_stays(desk):
    other = Bystander(desk, "again", "again-1")
    desk.emulator.fault(INSERT, "request_failed", **LATE)
    job = desk.asked("again", "-w", "again-0", "-N1")
    first = desk.emulator.requests_of(job)[0]
    assert first.state == "FAILED"
    desk.rounds(lambda now: now.queued("again-0"), most=4)
    second = desk.now.queued("again-0")
    assert second != first.name and second.startswith(f"j{job}-")
    desk.rounds(lambda now: first.name not in [request.name for request in now.requests])
    now = desk.now
    assert now.queued("again-0") == second
    assert now.state(job) == "CONFIGURING" and now.restarts(job) == 0
    other.check()
    desk.finish(job, other.job)


# Timed out

def test_a_job_that_has_waited_too_long_is_held_and_the_younger_one_stays(desk):
    job = desk.submit("hold", "-w", "hold-0", "-N1")
    desk.queued("hold-0")
    began = time.monotonic()
    time.sleep(4.5)
    other = Bystander(desk, "hold", "hold-1")
    desk.round()
    assert desk.now.queued("hold-0"), "cancelled before its time"
    time.sleep(max(0.0, began + 8 - time.monotonic()))
    desk.rounds(lambda now: now.is_held(job), most=1)
    other.check()
    now = desk.now
    assert not now.active("hold-0")
    assert "flex:" in now.comment(job) and "provision_timeout" in now.comment(job)
    desk.wait(lambda now: now.is_off("hold-0"), 30, "its node to be powered down")
    desk.finish(job, other.job)


def test_a_job_that_has_waited_too_long_is_requeued_and_asks_again(desk):
    job = desk.submit("back")
    first = desk.queued("back-0")[0]
    time.sleep(3)
    desk.rounds(lambda now: now.restarts(job) == 1, most=1)
    now = desk.now
    assert now.state(job) == "PENDING" and not now.is_held(job)
    assert "provision_timeout" in now.comment(job)
    assert not now.active("back-0")
    desk.wait(lambda now: now.queued("back-0") not in ("", first), 40, "its second request")
    desk.finish(job)


# Refused when it was asked for

def test_a_request_that_a_quota_refused_is_asked_for_later(desk):
    desk.emulator.fault(INSERT, "operation_error", count=2, **QUOTA)
    job = desk.asked("quota")
    assert not desk.emulator.requests_of(job)
    # flex-resume has met the first refusal, the sweeper meets the second.
    for _ in range(8):
        time.sleep(1.05)
        desk.cluster.sweep()
        desk.emulator.wait(operations=0)
        if desk.now.queued("quota-0"):
            break
    assert desk.now.queued("quota-0"), desk.cluster.situation()
    assert desk.now.state(job) == "CONFIGURING" and desk.now.restarts(job) == 0
    assert [fault["hits"] for fault in desk.emulator.faults()] == [2]
    desk.finish(job)


def test_a_request_that_is_refused_for_good_holds_its_job_and_the_other_job_stays(desk):
    other = Bystander(desk, "refused", "refused-1")
    desk.emulator.fault(INSERT, "operation_error", count=2, **NEVER)
    job = desk.asked("refused", "-w", "refused-0", "-N1")
    for _ in range(4):
        time.sleep(1.05)
        desk.cluster.sweep()
        if desk.now.is_held(job):
            break
    now = desk.now
    assert now.is_held(job), desk.cluster.situation()
    assert "flex: no VMs" in now.comment(job) and "not to be had" in now.comment(job)
    desk.wait(lambda now: now.is_off("refused-0"), 30, "its node to be powered down")
    assert not desk.now.active("refused-0")
    other.check()
    desk.finish(job, other.job)


# Without doing anything

def test_dry_run_says_what_it_would_do_and_does_nothing(desk):
    job = desk.submit("dry")
    name = desk.queued("dry-0")[0]
    desk.round()
    desk.cluster.scancel(job)
    desk.round()
    before = desk.now
    seen = max(call["seq"] for call in desk.emulator.journal())
    time.sleep(1.05)
    done = desk.run("--once", "--dry-run", "--log-file", desk.cluster.dir / "log" / "dry.log")
    assert done.returncode == 0, done.stderr
    line = [line for line in done.stdout.splitlines() if name in line]
    assert len(line) == 1 and "stale_request" in line[0], done.stdout
    assert re.search(r"POWER_DOWN_FORCE.*dry-0|dry-0.*POWER_DOWN_FORCE", done.stdout), done.stdout
    now = desk.now
    assert now.queued("dry-0") == name
    assert now.words("dry-0") == before.words("dry-0")
    assert all(call["verb"] == "GET" for call in desk.emulator.journal(seen))
    desk.rounds(lambda now: not now.active("dry-0"), most=2)
    desk.wait(lambda now: now.is_off("dry-0"), 30, "the node to be powered down")


@pytest.mark.parametrize("options", [["--no-such-option"], ["--interval", "soon"], ["--rounds", "-1"],
                                     ["--config", "/nonexistent.yaml"], ["extra"]])
def test_bad_usage_and_bad_config_end_with_2(desk, options):
    done = desk.run("--once", *options)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip()


def test_a_round_that_could_not_see_everything_ends_with_1_and_does_nothing(desk):
    job = desk.submit("spare")
    name = desk.queued("spare-0")[0]
    desk.round()
    desk.cluster.scancel(job)
    desk.round()
    desk.emulator.fault("regionInstanceGroupManagers.listManagedInstances", "503", count=10**6)
    done = desk.cluster.sweep(timeout=180)
    assert done.returncode == 1
    assert desk.now.queued("spare-0") == name
    assert "POWERING_UP" in desk.now.words("spare-0")
    desk.emulator.clear_faults()
    desk.rounds(lambda now: not now.active("spare-0"), most=2)
