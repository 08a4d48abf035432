# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin in a real Slurm: what jobs ask for with its options, and what they see of their VMs.

The scenes are in plugin_wishes.py and plugin_scenes.py, all under way from the first test on. The tests after
them have the cluster for themselves, without a sweeper, and the last one kills slurmctld.
"""
import signal
import time

import pytest

from plugin_scenes import DELAY, assert_sees
from plugin_scenes import SCENES as RUNNING
from plugin_site import REFUSED, TRIED_BY, sights
from plugin_wishes import SCENES as WISHES

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
    for line in cluster.slurm("sdiag").stdout.splitlines():
        if line.strip().startswith(("REQUEST_NODE_INFO ", "REQUEST_NODE_INFO_SINGLE ")):
            count += int(line.partition("count:")[2].split()[0])
    return count


@pytest.fixture
def alone(plugged):
    """The cluster with nobody else in it; the nodes two-0 and two-1 are up and idle."""
    plugged.wait_all()
    cluster = plugged.cluster
    cluster.stop_sweeper()
    cluster.wait_for(lambda: cluster.node_state("two-0") == cluster.node_state("two-1") == {"IDLE", "CLOUD"}, 30,
                     "idle nodes")
    return plugged


@pytest.mark.parametrize("options, nodes", [(["-N1", "-w", "two-0"], 1), (["-N2"], 2)])
def test_one_call_per_node_and_job(alone, options, nodes):
    cluster = alone.cluster
    before = node_calls(cluster)
    job = cluster.sbatch("-p", "two", "--time=5", *options,
                         script=f"{alone.sees} batch; for i in 1 2 3 4; do srun {alone.sees} step; done; {alone.sees} end")
    cluster.wait_for(lambda: alone.seen(job, "end"), 60, "the job to run")
    assert len(alone.seen(job)) == 2 + 4 * nodes
    assert all(sight.end for sight in alone.seen(job)), alone.seen(job)
    assert 1 <= node_calls(cluster) - before <= nodes
    kept = [cluster.dir / "spool" / node / "flex-start" / str(job) for node in ("two-0", "two-1")]
    cluster.wait_for(lambda: not [path for path in kept if path.exists()], 30, "what was known of the job to be forgotten")


def test_no_call_at_all_where_the_lease_is_off(alone):
    cluster = alone.cluster
    cluster.write_plugstack("required", "lease=off")
    try:
        before = node_calls(cluster)
        job = cluster.sbatch("-p", "two", "-N1", "--time=5", script=f"{alone.sees} batch; srun {alone.sees} step")
        cluster.wait_for(lambda: alone.seen(job, "step"), 60, "the job to run")
        assert all(sight.is_nothing for sight in alone.seen(job))
        assert node_calls(cluster) == before
    finally:
        cluster.write_plugstack("required")


def step(stage, job, label, prolog=None):
    """A step from outside; what it saw, and how long it took. `prolog` runs when slurmctld has made the step."""
    began = time.monotonic()
    done = stage.cluster.slurm("srun", f"--jobid={job}", "--overlap", "-N1", "-n1",
                               *([f"--prolog={prolog}"] if prolog else []), stage.sees, label)
    return sights(done.stdout), time.monotonic() - began


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


def test_a_slurmctld_that_does_not_answer_hardly_delays_a_step(alone):
    cluster = alone.cluster
    job = allocation(alone, "two-0")
    reference = allocation(alone, "plain-0")
    _, usual = step(alone, reference, "usual")
    stop = hit_slurmctld(alone, "STOP")
    try:
        found, took = step(alone, job, "stopped", stop)
    finally:
        cluster.ctld.send_signal(signal.SIGCONT)
    assert [sight.is_nothing for sight in found] == [True], found
    assert took <= DELAY + 20 * usual, (took, usual)
    found, took = step(alone, job, "later")
    assert len(found) == 1 and took <= DELAY + 20 * usual, (found, took, usual)
    cluster.scancel(job, reference)


def test_a_slurmctld_that_does_not_answer_is_not_asked_again(alone):
    """What is known of the job's VMs stays known."""
    cluster, job = alone.cluster, alone.job["run"]
    stop = hit_slurmctld(alone, "STOP")
    try:
        found, _ = step(alone, job, "stopped", stop)
    finally:
        cluster.ctld.send_signal(signal.SIGCONT)
    assert_sees(alone, found, "run-0", "run")


def test_a_dead_slurmctld_hardly_delays_a_step(alone):
    """The last test: slurmctld stays dead."""
    cluster = alone.cluster
    job = allocation(alone, "two-1")
    reference = allocation(alone, "plain-0")
    _, usual = step(alone, reference, "usual")
    found, took = step(alone, job, "dead", hit_slurmctld(alone, "KILL"))
    cluster.ctld.wait(10)
    assert [sight.is_nothing for sight in found] == [True], found
    assert took <= DELAY + 20 * usual, (took, usual)
