# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin in a real Slurm: what jobs ask for with its options, and what they see of their VMs.

The scenes are in plugin_wishes.py and plugin_scenes.py, all under way from the first test on. The tests after
them have the cluster for themselves, without a sweeper, and the last one kills slurmctld.
"""
import re
import signal
import time

import pytest

from plugin_scenes import DELAY, assert_sees
from plugin_scenes import SCENES as RUNNING
from plugin_site import REFUSED, TRIED_BY, sights
from plugin_wishes import SCENES as WISHES
from sweeper_site import Moment

pytestmark = pytest.mark.usefixtures("plugged")


# At submission

@pytest.mark.parametrize("how", TRIED_BY)
@pytest.mark.parametrize("name, value", REFUSED, ids=[f"{name}={value[:12]}" for name, value in REFUSED])
def test_a_bad_value_is_refused(plugged, how, name, value):
    done = plugged.refusals[how, name, value]
    assert done.returncode != 0, done
    assert done.stdout == ""
    told = [line for line in done.stderr.splitlines() if f"{name}=" in line]
    assert len(told) == 1, done.stderr
    assert told[0].startswith(f"{how.split()[0]}: error: "), told
    assert f"{name}={value[:20]}" in told[0] and len(told[0]) < 250, told
    assert len(done.stderr.splitlines()) <= 2, done.stderr


def test_nothing_that_was_refused_was_submitted(plugged):
    first, jobs, last = plugged.around_refusals
    assert jobs == [first, last] and last == first + 1


@pytest.mark.parametrize("scene", list(WISHES))
def test_wish(plugged, scene):
    plugged.outcome(scene)


# On the node

@pytest.mark.parametrize("scene", list(RUNNING))
def test_scene(plugged, scene):
    plugged.outcome(scene)


def test_a_step_from_outside_without_the_environment_sees_the_end(plugged):
    plugged.outcome("running")
    found = sights(plugged.outside)
    assert len(found) == 1
    assert_sees(plugged, found, "run-0", "run")


def test_a_job_submitted_from_inside_inherits_nothing(plugged):
    plugged.outcome("running")
    inner = sights(plugged.output("inner.out"))
    assert [(sight.node, sight.is_nothing) for sight in inner] == [("plain-0", True)]
    assert plugged.cluster.job(plugged.inner).get("Comment", "(null)") == "(null)"


def test_nothing_of_ours_is_said_in_a_job_that_asked_for_nothing_more(plugged):
    """Its steps do not take the job's own options for theirs."""
    plugged.outcome("running")
    lines = [line for line in plugged.cluster.output(plugged.job["run"]).splitlines() if not line.startswith("sees ")]
    assert lines == [str(plugged.inner)]


def test_an_option_for_a_step_is_told_not_to_count(plugged):
    plugged.outcome("option for a step")
    assert_sees(plugged, sights(plugged.step_saw), "run-0", "run")
    told = plugged.step_said.splitlines()
    assert len(told) == 1 and "the --flex options are for new jobs" in told[0], told


# Without the sweeper and with nobody else at work

def node_calls(cluster):
    """How often slurmctld was asked for nodes."""
    count = 0
    # On a busy machine slurmctld may close the connection under it.
    text = cluster.wait_for(lambda: cluster.slurm("sdiag", check=False).stdout, 30, "an answer to sdiag")
    for line in text.splitlines():
        if line.strip().startswith(("REQUEST_NODE_INFO ", "REQUEST_NODE_INFO_SINGLE ")):
            count += int(line.partition("count:")[2].split()[0])
    return count


@pytest.fixture(scope="module")
def alone(plugged):
    """The cluster with one job, and nobody on the way: two-0 and two-1 are up and idle."""
    plugged.wait_all()
    cluster = plugged.cluster
    cluster.scancel(*[job for job in Moment(cluster).jobs if job != plugged.job["run"]])

    def is_quiet():
        now = Moment(cluster)
        return (now.is_up("two-0", "two-1") and all(now.is_up(node) or now.is_off(node) for node in now.nodes)
                and not [request for request in now.requests if request.is_active])
    cluster.wait_for(is_quiet, 90, "a quiet cluster")
    cluster.stop_sweeper()
    return plugged


@pytest.fixture
def idle(alone):
    """The nodes two-0 and two-1 without a job."""
    cluster = alone.cluster
    cluster.wait_for(lambda: all(cluster.node_state(node) == {"IDLE", "CLOUD"} for node in ("two-0", "two-1")), 60,
                     "idle nodes")
    with cluster.recorder.looks_away():
        yield alone


@pytest.mark.parametrize("options, nodes", [(["-N1", "-w", "two-0"], 1), (["-N2"], 2)])
def test_one_call_per_node_and_job(idle, options, nodes):
    cluster = idle.cluster
    before = node_calls(cluster)
    job = cluster.sbatch("-p", "two", "--time=5", *options,
                         script=f"{idle.sees} batch; for i in 1 2 3 4; do srun {idle.sees} step; done; {idle.sees} end")
    cluster.wait_for(lambda: idle.seen(job, "end"), 60, "the job to run")
    assert len(idle.seen(job)) == 2 + 4 * nodes
    assert all(sight.end for sight in idle.seen(job)), idle.seen(job)
    assert 1 <= node_calls(cluster) - before <= nodes
    kept = [cluster.dir / "spool" / node / "flex-start" / str(job) for node in ("two-0", "two-1")]
    cluster.wait_for(lambda: not [path for path in kept if path.exists()], 30, "what was known of the job to be forgotten")


def test_no_call_at_all_where_the_lease_is_off(idle):
    cluster = idle.cluster
    cluster.write_plugstack("required", "lease=off")
    try:
        before = node_calls(cluster)
        job = cluster.sbatch("-p", "two", "-N1", "--time=5", script=f"{idle.sees} batch; srun {idle.sees} step")
        cluster.wait_for(lambda: idle.seen(job, "step"), 60, "the job to run")
        assert all(sight.is_nothing for sight in idle.seen(job))
        assert node_calls(cluster) == before
    finally:
        cluster.write_plugstack("required")


def step(stage, job, label, prolog=None):
    """A step from outside; what it saw, and how long that took. `prolog` runs when slurmctld has made the step.

    srun itself may wait longer, for slurmctld to take note of the step's end.
    """
    began, log = time.monotonic(), f"step-{job}-{label}.out"
    stage.spawn("srun", f"--jobid={job}", "--overlap", "-N1", "-n1", *([f"--prolog={prolog}"] if prolog else []),
                stage.sees, label, log=log)
    found = stage.cluster.wait_for(lambda: stage.sights_in(log), 60, "a step", interval=0.02)
    took = time.monotonic() - began
    print(f"{label}: took {took:.2f} s")
    return found, took


def test_a_job_whose_end_is_not_known_yet_sees_it_later(idle):
    """The sweeper or Google was away when it began. Asked again after five minutes, which the file of its node counts."""
    cluster = idle.cluster
    known = cluster.node("two-0")["Extra"]
    cluster.scontrol("update", "nodename=two-0", "extra=")
    try:
        job = allocation(idle, "two-0")
        found, _ = step(idle, job, "early")
        assert [sight.is_nothing for sight in found] == [True], found
    finally:
        cluster.scontrol("update", "nodename=two-0", f"extra={known}")
    found, _ = step(idle, job, "soon")
    assert [sight.is_nothing for sight in found] == [True], "within five minutes slurmctld is not asked again"
    kept = cluster.dir / "spool" / "two-0" / "flex-start" / str(job)
    text = kept.read_text(encoding="ascii")
    # In place: it belongs to slurmd's user.
    kept.write_text(re.sub(r"\d+", lambda number: str(int(number[0]) - 301), text), encoding="ascii")
    found, _ = step(idle, job, "later")
    assert_sees(idle, found, "two-0", "two")
    cluster.scancel(job)


def hit_slurmctld(stage, name):
    """A script that sends it this signal."""
    pid = stage.cluster.ctld.pid
    return stage.cluster.sandbox.write(f"bin/hit-{name}", f"#!/bin/sh\nkill -{name} {pid}\n", 0o755)


def allocation(stage, node):
    """A job without a batch script, so that nothing is known on its node yet."""
    name = f"alloc-{node}-{time.monotonic_ns()}"
    stage.cluster.slurm("salloc", "--no-shell", "-p", node.partition("-")[0], "-w", node, "-N1", "--time=5",
                        f"--job-name={name}")
    text = stage.cluster.slurm("squeue", "-h", f"--name={name}", "-o", "%i").stdout
    return int(text)


def test_a_slurmctld_that_does_not_answer_hardly_delays_a_step(idle):
    cluster = idle.cluster
    job = allocation(idle, "two-0")
    reference = allocation(idle, "plain-0")
    _, usual = step(idle, reference, "usual")
    stop = hit_slurmctld(idle, "STOP")
    try:
        found, took = step(idle, job, "stopped", stop)
    finally:
        cluster.ctld.send_signal(signal.SIGCONT)
    assert [sight.is_nothing for sight in found] == [True], found
    assert took <= DELAY + 20 * usual, (took, usual)
    found, took = step(idle, job, "later")
    assert len(found) == 1 and took <= DELAY + 20 * usual, (found, took, usual)
    cluster.scancel(job, reference)


def test_a_slurmctld_that_does_not_answer_is_not_asked_again(idle):
    """What is known of the job's VMs stays known."""
    cluster, job = idle.cluster, idle.job["run"]
    stop = hit_slurmctld(idle, "STOP")
    try:
        found, _ = step(idle, job, "stopped", stop)
    finally:
        cluster.ctld.send_signal(signal.SIGCONT)
    assert_sees(idle, found, "run-0", "run")


def test_a_dead_slurmctld_hardly_delays_a_step(idle):
    """The last test: slurmctld stays dead."""
    cluster = idle.cluster
    job = allocation(idle, "two-1")
    reference = allocation(idle, "plain-0")
    _, usual = step(idle, reference, "usual")
    found, took = step(idle, job, "dead", hit_slurmctld(idle, "KILL"))
    cluster.ctld.wait(10)
    assert [sight.is_nothing for sight in found] == [True], found
    assert took <= DELAY + 20 * usual, (took, usual)
