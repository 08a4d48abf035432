# SPDX-License-Identifier: GPL-2.0-or-later
"""A job's nodes that have no VM are in one request, which is long enough for all jobs on them.

No sweeper runs beside the rounds that a test makes by hand. Zone c has no room until a test makes some.
"""
import re

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION
from sweeper_desk import Desk

A, B, C, F = ({"zones": [f"{REGION}-{letter}"]} for letter in "abcf")
SHARED = {"OverSubscribe": "NO", "ResumeTimeout": "36000"}
LONG = {"ResumeTimeout": "36000"}
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "1s", "empty_mig_grace": "1h", "listen": "127.0.0.1:0",
                        "finished_request_grace": "1h"},
            "defaults": {"incomplete_timeout": "3s"}}
NODESETS = [
    Nodeset("resume", 4, C, LONG, boots=False),
    Nodeset("own", 4, {**C, "mig_scope": "job"}, LONG, boots=False),
    Nodeset("split", 4, C, LONG, boots=False),
    Nodeset("heir", 2, C, LONG, boots=False),
    Nodeset("short", 2, A, LONG, boots=False),
    Nodeset("half", 3, B, LONG, boots=False),
    Nodeset("up", 2, F, {**LONG, "SuspendTime": "300"}),
    Nodeset("raise", 1, C, LONG, boots=False),
    Nodeset("boot", 1, A, LONG, boots=False),
    Nodeset("join", 1, C, SHARED, boots=False),
    Nodeset("fence", 1, C, SHARED, boots=False),
    Nodeset("east", 1, A, {**LONG, "Nodes": "east-0,west-0"}, boots=False),
    Nodeset("west", 1, C, LONG, boots=False),
    Nodeset("north", 1, F, {**LONG, "SuspendTime": "300", "Nodes": "north-0,south-0"}),
    Nodeset("south", 1, C, LONG, boots=False),
    Nodeset("ours", 3, B, SHARED, boots=False),
]
MINUTES = 60
MARGIN = 15 * MINUTES


@pytest.fixture(scope="module")
def desk(build):
    desk = Desk(build, NODESETS, SETTINGS)
    with desk.cluster:
        desk.cluster.set_no_boot([*nodes("short", 0, 1), *nodes("half", 0, 1, 2), "up-1"])
        yield desk


def nodes(nodeset, *numbers):
    return [f"{nodeset}-{number}" for number in numbers]


def active(now, nodeset):
    """Nodes of the nodeset's active requests."""
    return sorted(sorted(request.nodes) for request in now.requests
                  if request.is_active and request.nodes[0].startswith(f"{nodeset}-"))


def job_of(request):
    return int(re.match(r"j(\d+)-", request.name)[1])


def told(desk, job, words):
    """Whether the job's author has been told so: the next comment may be there already."""
    return any(words in text for _, text in desk.cluster.admin_comments(job))


def requested(desk, job):
    """Until flex-resume has asked for the job's nodes."""
    desk.cluster.wait_for(lambda: f"event=requested job={job} " in desk.cluster.log("flex-resume.log"), 60,
                          f"flex-resume to ask for job {job}")
    desk.emulator.wait(operations=0)


def replace(desk, nodeset, first, second):
    """One job is cancelled when its request waits, another comes at once: their ids."""
    gone = desk.submit(nodeset, *first)
    requested(desk, gone)
    assert len(active(desk.now, nodeset)) == 1
    desk.cluster.scancel(gone)
    desk.cluster.wait_job(gone, {"CANCELLED"})
    job = desk.submit(nodeset, *second)
    desk.cluster.wait_job(job, {"CONFIGURING"})
    return gone, job


@pytest.mark.parametrize("nodeset", ["resume", "own"])
def test_a_job_on_nodes_of_one_that_is_gone_has_one_request(desk, nodeset):
    _, job = replace(desk, nodeset, ["-N2"], ["-N4"])
    requested(desk, job)
    now = desk.now
    assert active(now, nodeset) == [nodes(nodeset, 0, 1, 2, 3)], "after flex-resume"
    assert job_of(now.active(f"{nodeset}-0")) == job
    for _ in range(3):
        now = desk.round()
    assert active(now, nodeset) == [nodes(nodeset, 0, 1, 2, 3)], "after the sweeper"
    assert now.state(job) == "CONFIGURING"
    assert len(desk.emulator.requests_of(job)) == 1, "asked for more than once"


def test_two_jobs_do_not_inherit_one_request(desk):
    """slurmctld wakes nobody: all the nodes come up already."""
    _, first = replace(desk, "split", ["-N4"], ["-N2"])
    second = desk.submit("split", "-N2")
    desk.cluster.wait_job(second, {"CONFIGURING"})
    for _ in range(6):
        now = desk.round()
        desk.emulator.wait(operations=0)
    assert active(now, "split") == [nodes("split", 0, 1), nodes("split", 2, 3)]
    assert {job_of(now.active("split-0")), job_of(now.active("split-2"))} == {first, second}


def test_a_request_for_exactly_these_nodes_is_inherited(desk):
    _, job = replace(desk, "heir", ["-N2"], ["-N2"])
    request = desk.now.active("heir-0").name
    for _ in range(4):
        now = desk.round()
    assert now.active("heir-0").name == request
    assert now.state(job) == "CONFIGURING"


def test_vms_that_end_too_early_for_a_job_on_them_are_replaced(desk):
    """They came for a short job that is gone; the nodes have not registered."""
    desk.emulator.set_capacity(a=2)
    gone = desk.submit("short", "-N2")
    desk.wait(lambda now: set(nodes("short", 0, 1)) <= set(now.vms), 60, "the first job's VMs")
    desk.emulator.set_capacity(a=0)
    desk.cluster.scancel(gone)
    job = desk.cluster.sbatch("-p", "short", "-N2", "--time=600")
    desk.cluster.wait_job(job, {"CONFIGURING"})
    now = desk.rounds(lambda now: now.active("short-0") and job_of(now.active("short-0")) == job, 8)
    assert active(now, "short") == [nodes("short", 0, 1)]
    assert now.state(job) == "CONFIGURING" and now.restarts(job) == 0
    desk.cluster.scancel(job)


def test_a_part_of_a_job_does_not_wait_for_ever_for_the_rest(desk):
    """One VM of three is lost and there is no room for another: in the end one request is for all three."""
    desk.emulator.set_capacity(b=3)
    job = desk.submit("half", "-N3")
    desk.wait(lambda now: set(nodes("half", 0, 1, 2)) <= set(now.vms), 60, "three VMs")
    desk.emulator.set_capacity(b=0)
    desk.emulator.kill_instance("half-2")
    # The first may be over between two looks of a busy machine.
    desk.rounds(lambda now: active(now, "half") in ([nodes("half", 2)], [nodes("half", 0, 1, 2)]), 8, 0.5)
    now = desk.rounds(lambda now: active(now, "half") == [nodes("half", 0, 1, 2)], 20, 0.5)
    assert now.state(job) == "CONFIGURING" and now.restarts(job) == 0
    assert told(desk, job, "incomplete_timeout")
    desk.cluster.scancel(job)


def test_a_part_that_has_registered_is_given_back_and_the_job_requeued(desk):
    desk.emulator.set_capacity(f=2)
    job = desk.submit("up", "-N2")
    desk.wait(lambda now: now.is_up("up-0") and "up-1" in now.vms, 90, "one node of two")
    desk.emulator.set_capacity(f=0)
    desk.emulator.kill_instance("up-1")
    now = desk.rounds(lambda now: now.state(job) == "PENDING", 25, 0.5)
    assert now.restarts(job) == 1 and not now.is_held(job)
    assert told(desk, job, "incomplete_timeout")
    desk.wait(lambda now: "up-0" not in now.vms, 60, "the VM to go")
    assert desk.rounds(lambda now: not active(now, "up"), 6)
    desk.cluster.scancel(job)


def test_vms_of_one_nodeset_do_not_wait_for_ever_for_another(desk):
    """They are asked for again, with a whole lease before them; the part that waits keeps its place."""
    desk.cluster.set_no_boot(["east-0"])
    desk.emulator.set_capacity(a=1)
    job = desk.submit("east", "-N2")
    desk.wait(lambda now: "east-0" in now.vms, 60, "the VM of one nodeset")
    desk.emulator.set_capacity(a=0)
    [place] = desk.queued("west-0")
    now = desk.rounds(lambda now: active(now, "east") == [["east-0"]], 25, 0.5)
    assert "east-0" not in now.vms and now.queued("west-0") == place
    assert now.state(job) == "CONFIGURING" and now.restarts(job) == 0
    assert told(desk, job, "incomplete_timeout")
    desk.cluster.scancel(job)


def test_a_registered_part_of_one_nodeset_is_given_back_and_the_job_requeued(desk):
    desk.emulator.set_capacity(f=1)
    job = desk.submit("north", "-N2")
    desk.wait(lambda now: now.is_up("north-0"), 90, "the node of one nodeset")
    desk.emulator.set_capacity(f=0)
    now = desk.rounds(lambda now: now.state(job) == "PENDING", 25, 0.5)
    assert now.restarts(job) == 1 and not now.is_held(job)
    assert told(desk, job, "incomplete_timeout")
    desk.cluster.scontrol("hold", str(job))
    desk.wait(lambda now: "north-0" not in now.vms, 60, "the VM to go")
    assert desk.rounds(lambda now: not active(now, "north") and not active(now, "south"), 6)
    desk.cluster.scancel(job)


def test_a_part_does_not_wait_for_ever_for_a_node_that_another_job_has_asked_for(desk):
    desk.cluster.set_no_boot(nodes("ours", 0, 1, 2))
    desk.emulator.set_capacity(b=0)
    other = desk.submit("ours", "-N2", "-n2", "-w", "ours-[1-2]")
    place, _ = desk.queued("ours-1", "ours-2")
    job = desk.submit("ours", "-N2", "-n2", "-w", "ours-[0-1]")
    requested(desk, job)
    assert active(desk.now, "ours") == [["ours-0"], nodes("ours", 1, 2)]
    desk.emulator.set_capacity(b=1)
    desk.wait(lambda now: "ours-0" in now.vms, 60, "the VM of the job's own node")
    desk.emulator.set_capacity(b=0)
    now = desk.rounds(lambda now: now.state(job) == "PENDING", 25, 0.5)
    assert now.restarts(job) == 1 and not now.is_held(job)
    assert told(desk, job, "incomplete_timeout")
    desk.cluster.scontrol("hold", str(job))
    desk.wait(lambda now: "ours-0" not in now.vms, 60, "the VM to go")
    now = desk.round()
    assert now.queued("ours-1") == now.queued("ours-2") == place and now.state(other) == "CONFIGURING"
    desk.cluster.scancel(job, other)


def run_of(request):
    return request.seconds


def test_a_raised_time_limit_renews_the_request(desk):
    job = desk.submit("raise", "-N1")
    [first] = desk.queued("raise-0")
    desk.cluster.scontrol("update", f"jobid={job}", "timelimit=10:00:00")
    now = desk.rounds(lambda now: [r for r in now.requests_for("raise-0") if r.is_active and r.name != first], 4)
    now = desk.rounds(lambda now: len([r for r in now.requests_for("raise-0") if r.is_active]) == 1, 4)
    request = now.active("raise-0")
    assert request.name != first and run_of(request) == 600 * MINUTES + MARGIN
    calls = [call["method"].split(".")[-1] for call in desk.emulator.journal()
             if call.get("verb") == "POST" and call["method"].endswith(("Requests.insert", "Requests.cancel"))
             and ("raise" in str(call.get("body", "")) or first in str(call))]
    assert calls[:2] == ["insert", "insert"], "the old place is given up only for the new one"
    assert told(desk, job, "10:15:00 instead of 00:25:00")
    assert now.state(job) == "CONFIGURING"
    desk.cluster.scontrol("update", f"jobid={job}", "timelimit=00:10:00")
    for _ in range(3):
        now = desk.round()
    assert now.active("raise-0").name == request.name, "a lowered limit changes nothing"


def test_a_time_limit_raised_while_the_vms_boot_is_told_before_the_job_begins(desk):
    desk.cluster.set_no_boot(["boot-0"])
    desk.emulator.set_capacity(a=1)
    job = desk.submit("boot", "-N1")
    desk.wait(lambda now: "boot-0" in now.vms, 60, "the VM")
    desk.emulator.set_capacity(a=0)
    desk.rounds(lambda now: "VMs end" in now.comment(job), 3)
    assert "time limit" not in desk.now.comment(job)
    desk.cluster.scontrol("update", f"jobid={job}", "timelimit=10:00:00")
    # At once: note_interval is a minute.
    now = desk.rounds(lambda now: "before the job's time limit of 10:00:00" in now.comment(job), 2)
    assert now.state(job) == "CONFIGURING"
    desk.cluster.scancel(job)
    desk.emulator.kill_instance("boot-0")


def test_a_request_suffices_for_a_longer_job_that_joins(desk):
    first = desk.submit("join", "-n1")
    [request] = desk.queued("join-0")
    second = desk.cluster.sbatch("-p", "join", "-n1", "--time=600")
    desk.cluster.wait_job(second, {"CONFIGURING"})
    assert desk.cluster.job_nodes(second) == ["join-0"]
    desk.rounds(lambda now: [r for r in now.requests_for("join-0") if r.is_active and r.name != request], 4)
    now = desk.rounds(lambda now: len([r for r in now.requests_for("join-0") if r.is_active]) == 1, 4)
    assert run_of(now.active("join-0")) == 600 * MINUTES + MARGIN
    assert {now.state(first), now.state(second)} == {"CONFIGURING"}


def test_a_node_that_waits_for_its_vm_is_fenced(desk):
    desk.submit("fence", "-n1", "--time=60")
    desk.queued("fence-0")
    desk.round()
    longer = desk.cluster.sbatch("-p", "fence", "-n1", "--time=600")
    shorter = desk.cluster.sbatch("-p", "fence", "-n1", "--time=60")
    desk.cluster.wait_job(shorter, {"CONFIGURING"})
    assert desk.cluster.job_state(longer) == "PENDING"
    before = fences(desk)
    for _ in range(3):
        desk.round()
    assert fences(desk) - before <= 1, "an update every round"


def fences(desk):
    """How often fence-0 was put in a reservation."""
    return len(re.findall(r"event=action rule=lease_end what=(?:create|update)_reservation .*fence-0", desk.cluster.log("flex-sweeper.log")))
