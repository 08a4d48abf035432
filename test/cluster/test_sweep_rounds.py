# SPDX-License-Identifier: GPL-2.0-or-later
"""Rounds of the sweeper by hand: what one round, two or three do about a job, and that they do nothing
to the job beside it."""
import json
import re
import time

import pytest

from harness import procs
from sweeper_desk import GROUP, INSERT, LATE, NEVER, QUOTA
from sweeper_site import is_write


class Bystander:
    """A job that waits in the same nodeset: nothing of it may change."""

    def __init__(self, desk, job, node):
        self.desk, self.job, self.node = desk, job, node
        self.request = desk.queued(node)[0]

    def check(self):
        now = self.desk.now
        assert now.queued(self.node) == self.request
        assert now.state(self.job) == "CONFIGURING"
        assert "POWERING_UP" in now.words(self.node) and "ALLOCATED" in now.words(self.node)
        assert now.restarts(self.job) == 0
        writes = [call["path"] for call in self.desk.emulator.journal() if is_write(call)]
        assert not [path for path in writes if self.request in path]


# In all nodesets at once, so that slurmctld's pace is waited for once.
BESIDE = {"left": "left-2", "bad": "bad-1", "again": "again-1", "refused": "refused-1"}
CANCELLED = {"left": "left-[0-1]", "dry": "dry-0", "spare": "spare-0"}


@pytest.fixture(scope="module")
def jobs(desk):
    """Jobs that others will be cancelled or will fail beside, and jobs to be cancelled."""
    ids = {name: desk.submit(name, "-w", node) for name, node in CANCELLED.items()}
    beside = {name: desk.submit(name, "-w", node) for name, node in BESIDE.items()}
    desk.queued("left-0", "left-1", "dry-0", "spare-0", *BESIDE.values())
    ids["beside"] = {name: Bystander(desk, beside[name], node) for name, node in BESIDE.items()}
    desk.round()
    return ids


@pytest.fixture(autouse=True)
def faultless(desk):
    yield
    desk.emulator.clear_faults()


# Cancelled

def test_a_cancelled_job_s_request_and_nodes_go_and_the_other_job_stays(desk, jobs):
    name = desk.now.queued("left-0")
    assert desk.now.queued("left-1") == name, "not one request for both"
    desk.cluster.scancel(jobs["left"])
    desk.rounds(lambda now: not now.active("left-0"), most=2)
    desk.round()
    jobs["beside"]["left"].check()


# Failed

def test_a_request_that_fails_for_good_holds_its_job_and_the_other_job_stays(desk, jobs):
    desk.emulator.fault(INSERT, "request_failed", **NEVER)
    job = desk.asked("bad", "-w", "bad-0")
    name = desk.emulator.requests_of(job)[0].name
    desk.rounds(lambda now: now.is_held(job))
    assert "flex: no VMs" in desk.now.comment(job) and "not to be had" in desk.now.comment(job)
    desk.rounds(lambda now: name not in [request.name for request in now.requests])
    assert desk.now.is_held(job)
    jobs["beside"]["bad"].check()


def test_a_request_that_fails_in_time_is_asked_for_again_and_the_other_job_stays(desk, jobs):
    desk.emulator.fault(INSERT, "request_failed", **LATE)
    job = desk.asked("again", "-w", "again-0")
    first = desk.emulator.requests_of(job)[0]
    assert first.state == "FAILED"
    desk.rounds(lambda now: now.queued("again-0"), apart=1.1)
    second = desk.now.queued("again-0")
    assert second != first.name and second.startswith(f"j{job}-")
    desk.rounds(lambda now: first.name not in [request.name for request in now.requests])
    now = desk.now
    assert now.queued("again-0") == second
    assert now.state(job) == "CONFIGURING" and now.restarts(job) == 0
    jobs["beside"]["again"].check()
    desk.cluster.scancel(job)


# Refused when it was asked for

def test_a_request_that_a_quota_refused_is_asked_for_later(desk, jobs):
    desk.emulator.fault(INSERT, "operation_error", count=2, **QUOTA)
    job = desk.asked("quota")
    assert not desk.emulator.requests_of(job)
    # flex-resume has met the first refusal, the sweeper meets the second.
    codes = []
    while not desk.now.queued("quota-0"):
        assert len(codes) < 6, (codes, desk.cluster.situation())
        codes.append(desk.cluster.sweep().returncode)
        desk.emulator.wait(operations=0)
        time.sleep(0.6)
    assert set(codes) == {0}, codes  # to wait for one's turn is no failure
    assert desk.now.state(job) == "CONFIGURING" and desk.now.restarts(job) == 0
    assert [fault["hits"] for fault in desk.emulator.faults()] == [2]
    desk.cluster.scancel(job)


def test_a_request_that_is_refused_for_good_holds_its_job_and_the_other_job_stays(desk, jobs):
    desk.emulator.fault(INSERT, "operation_error", count=2, **NEVER)
    job = desk.asked("refused", "-w", "refused-0")
    for _ in range(3):
        desk.cluster.sweep()
        if desk.now.is_held(job):
            break
    now = desk.now
    assert now.is_held(job), desk.cluster.situation()
    assert "flex: no VMs" in now.comment(job) and "not to be had" in now.comment(job)
    assert not now.active("refused-0")
    jobs["beside"]["refused"].check()


# Timed out

def test_a_job_that_has_waited_too_long_is_held_and_the_younger_one_stays(desk, jobs):
    job = desk.submit("hold", "-w", "hold-0")
    desk.queued("hold-0")
    began = time.monotonic()
    time.sleep(2)
    other = Bystander(desk, desk.submit("hold", "-w", "hold-1"), "hold-1")
    desk.round()
    time.sleep(max(0.0, began + 7 - time.monotonic()))
    desk.rounds(lambda now: now.is_held(job), most=1)
    other.check()
    inserted, cancelled = (
        [call for call in desk.emulator.calls(f"resizeRequests.{verb}") if f"j{job}-" in json.dumps(call["path"]) + json.dumps(call["body"])]
        for verb in ("insert", "cancel"))
    # By whole seconds: Google's times have no more.
    assert cancelled[0]["started"] - inserted[0]["started"] > 6, "cancelled before its time"
    now = desk.now
    assert not now.active("hold-0")
    assert "flex:" in now.comment(job) and "provision_timeout" in now.comment(job)
    desk.cluster.scancel(other.job)


def test_a_job_that_has_waited_too_long_is_requeued(desk, jobs):
    job = desk.submit("back")
    first = desk.queued("back-0")[0]
    time.sleep(3)
    desk.rounds(lambda now: now.restarts(job) == 1, most=1)
    now = desk.now
    assert now.state(job) == "PENDING" and not now.is_held(job)
    assert "provision_timeout" in now.comment(job)
    assert not now.active("back-0")
    jobs["back"], jobs["back request"] = job, first  # for later: Slurm lets it wait for some seconds


# Without doing anything

HISTORY = "history.jsonl"  # flex-resume writes to it, too


def files(desk):
    return {path.name: path.read_bytes() for path in desk.cluster.sweeper_dir.iterdir() if path.is_file()}


def test_dry_run_says_what_it_would_do_and_does_nothing(desk, jobs):
    name = desk.now.queued("dry-0")
    desk.cluster.scancel(jobs["dry"])
    desk.round()
    before, kept = desk.now, files(desk)
    seen = max(call["seq"] for call in desk.emulator.journal())
    done = desk.run("--once", "--dry-run", "--log-file", desk.cluster.dir / "log" / "dry.log")
    assert done.returncode == 0, done.stderr
    line = [line for line in done.stdout.splitlines() if name in line]
    assert len(line) == 1 and "stale_request" in line[0], done.stdout
    assert re.search(r"POWER_DOWN_FORCE.*dry-0", done.stdout), done.stdout
    now = desk.now
    assert now.queued("dry-0") == name
    assert now.words("dry-0") == before.words("dry-0")
    # The requeued job's turn may come at any time, and flex-resume with it.
    assert not [call for call in desk.emulator.journal(seen) if is_write(call) and "back-0" not in str(call["body"])]
    assert {**files(desk), HISTORY: b""} == {**kept, HISTORY: b""}
    desk.rounds(lambda now: not now.active("dry-0"), most=2)


def test_a_round_that_could_not_see_everything_ends_with_1_and_does_nothing(desk, jobs):
    name = desk.now.queued("spare-0")
    desk.cluster.scancel(jobs["spare"])
    desk.round()
    desk.emulator.fault("regionInstanceGroupManagers.listManagedInstances", "503", count=10**6)
    done = desk.cluster.sweep(timeout=180)
    assert done.returncode == 1
    assert desk.now.queued("spare-0") == name
    assert "POWERING_UP" in desk.now.words("spare-0")
    desk.emulator.clear_faults()
    desk.rounds(lambda now: not now.active("spare-0"), most=2)


def test_a_requeued_job_asks_again(desk, jobs):
    desk.wait(lambda now: now.queued("back-0") not in ("", jobs["back request"]), 40, "its second request")


def test_in_the_end_only_the_others_are_left(desk, jobs):
    """Every node but theirs is powered down, every request but theirs is over."""
    desk.cluster.scancel(jobs["back"])
    gone = [node for nodeset in desk.cluster.nodesets.values() for node in nodeset.nodes
            if node not in BESIDE.values() and nodeset.name != "race"]
    desk.rounds(lambda now: not [node for node in gone if now.active(node)])
    desk.wait(lambda now: now.is_off(*gone), 30, "their nodes to be powered down")
    for other in jobs["beside"].values():
        other.check()


# Beside flex-resume

def inserts(desk, node):
    return [call["body"] for call in desk.emulator.calls("resizeRequests.insert") if node in str(call["body"])]


def resumes(desk):
    return [pid for pid in desk.cluster.sandbox.processes() if "real/flex-resume" in procs.describe(pid)]


def slow_resume(desk, fault, *job):
    """(job, its flex-resume, which has looked and hangs at its first write)."""
    desk.emulator.clear_faults()
    desk.emulator.fault(fault, "latency", ms=14000)
    number = desk.cluster.sbatch("--time=10", *job[:-1], script=job[-1])
    desk.wait(lambda now: desk.emulator.faults()[0]["hits"], 30, "flex-resume to wait for its first write")
    return number, resumes(desk)


def goes_on(desk, fault, late):
    desk.cluster.wait_for(lambda: [call for call in desk.emulator.calls(fault)
                                   if call["ended"] - call["started"] > 10], 40, "flex-resume to go on")
    desk.cluster.wait_for(lambda: not set(late) & set(resumes(desk)), 30, "flex-resume to end")


def test_flex_resume_that_comes_second_leaves_the_served_request_alone(desk):
    """It looked before the sweeper asked, and asks after the VMs are there."""
    job, late = slow_resume(desk, GROUP, "-p", "race", "-N2", "sleep 100")
    desk.rounds(lambda now: {"race-0", "race-1"} <= set(now.vms), most=3)
    assert late and set(late) <= set(resumes(desk)), "flex-resume was not the second"
    first = inserts(desk, "race-0")
    assert len(first) == 1
    goes_on(desk, GROUP, late)
    assert {body["name"] for body in inserts(desk, "race-0")} == {first[0]["name"]}
    desk.cluster.scancel(job)
    desk.wait(lambda now: not {"race-0", "race-1"} & set(now.vms), 40, "the VMs to go")


def test_flex_resume_that_goes_on_after_its_job_has_ended_asks_for_nothing(desk):
    """Meanwhile the sweeper has asked, the job has run, and its VMs are gone."""
    _, late = slow_resume(desk, INSERT, "-p", "race", "-N2", "exit 0")
    desk.rounds(lambda now: {"race-0", "race-1"} <= set(now.vms), most=3)
    names = {body["name"] for body in inserts(desk, "race-0")}
    desk.wait(lambda now: not {"race-0", "race-1"} & set(now.vms), 20, "the VMs to go")
    assert late and set(late) <= set(resumes(desk)), "flex-resume was not late"
    goes_on(desk, INSERT, late)
    assert {body["name"] for body in inserts(desk, "race-0")} == names
    assert not desk.now.active("race-0")


def test_flex_resume_whose_job_is_cancelled_while_the_group_is_made_asks_for_nothing(desk):
    job, late = slow_resume(desk, GROUP, "-p", "late", "-N2", "exit 0")
    desk.cluster.scancel(job)
    goes_on(desk, GROUP, late)
    assert not inserts(desk, "late-0")


@pytest.mark.parametrize("options", [["--no-such-option"], ["--interval", "soon"], ["--rounds", "-1"],
                                     ["--config", "/nonexistent.yaml"], ["extra"]])
def test_bad_usage_and_bad_config_end_with_2(desk, options):
    done = desk.run("--once", *options)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip()


def test_another_user_than_slurm_s_ends_with_2_and_is_told_what_to_do(desk):
    conf = desk.cluster.sandbox.write(
        "etc/of-root.conf", re.sub(r"(?m)^SlurmUser=.*", "SlurmUser=root", (desk.cluster.dir / "etc" / "slurm.conf").read_text()))
    done = desk.run("--once", "--config", desk.cluster.dir / "etc" / "flex-start.yaml", env={"SLURM_CONF": str(conf)}, timeout=120)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "SlurmUser" in done.stderr and "User=0" in done.stderr, done.stderr
