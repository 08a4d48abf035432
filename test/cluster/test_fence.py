# SPDX-License-Identifier: GPL-2.0-or-later
"""The fence before a VM's end on a real slurmctld: where it begins, that no change of it opens it, and how many
reservations it is made of.

FLEX_FENCE_SWAPS: how often the fence changes in the test of that; 10000 takes some minutes.
"""
import os
import re
import time
from pathlib import Path

import pytest

from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster
from lease_scenes import ours, reservations

HERE = Path(__file__).resolve().parent
SWAPS = int(os.environ.get("FLEX_FENCE_SWAPS", "600"))
KILL_WAIT, OVER_TIME_LIMIT = 2, 60
# What slurmctld takes to end a job whose time is over: its tick of 30 s, OverTimeLimit, KillWait, and the epilog.
LEAD = 30 + OVER_TIME_LIMIT + KILL_WAIT + 60
STAYS = {"OverSubscribe": "NO", "SuspendTime": "INFINITE"}


def seconds(text):
    """Of scontrol's local time."""
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


# Changes of the fence

@pytest.fixture(scope="module")
def swapping(build):
    """Three nodes that are up, and many that only slurm.conf knows."""
    stand_in = HERE / "harness" / "stand_in.py"
    programs = {"ResumeProgram": (stand_in, "resume"), "SuspendProgram": (stand_in, "suspend")}
    nodesets = [Nodeset("n", 3, partition={"SuspendTime": "7200"}), Nodeset("many", 672, boots=False)]
    with Cluster(nodesets, build=build, programs=programs, name="swapping",
                 slurm_extra=["SlurmctldDebug=info", "SlurmctldParameters=idle_on_node_suspend"]) as cluster:
        cluster.tool = cluster.sandbox.install(build / "test" / "bench" / "fence-tool")
        cluster.scontrol("update", "nodename=n-[0-2]", "state=power_up")
        cluster.wait_for(lambda: all(cluster.node_state(f"n-{number}") == {"IDLE", "CLOUD"} for number in range(3)), 60,
                         "the nodes to be up")
        yield cluster


def run_tool(cluster, *words):
    return cluster.sandbox.run([cluster.tool, *map(str, words)], env=cluster.env(), check=False,
                               timeout=max(500, SWAPS))


def test_no_change_of_the_fence_lets_a_job_through(swapping):
    cluster = swapping
    far = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3600))
    cluster.scontrol("create", "reservation", "reservationname=at-first", f"starttime={far}", "duration=10-0", "users=root",
                     "nodes=n-[0-2]", "flags=maint,ignore_jobs")
    job = cluster.sbatch("-p", "n", "-N1", "--time=5-0", script="sleep 1000")
    done = run_tool(cluster, "swap", "n-[0-2]", 1, job)
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.scontrol("delete", "reservation=at-first")
    began = time.monotonic()
    done = run_tool(cluster, "swap", "n-[0-2]", SWAPS, job)
    print(f"{done.stdout.strip()} in {time.monotonic() - began:.0f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert cluster.job_state(job) == "PENDING" and cluster.job(job)["Restarts"] == "0"
    # A job that fits comes at once.
    short = cluster.sbatch("-p", "n", "-N1", "--time=60")
    cluster.wait_job(short, "COMPLETED")
    cluster.scancel(job)


def test_a_week_of_ends_takes_about_fifty_reservations(swapping):
    """672 VMs, one a quarter of an hour."""
    for name in ours(swapping):
        swapping.scontrol("delete", f"reservation={name}")
    done = run_tool(swapping, "spread", "many-[0-671]", 900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.match(r"(\d+) reservations", done.stdout)[1]) <= 54, done.stdout
    fenced = [node for nodes in ours(swapping).values() for node in nodes]
    assert sorted(fenced) == sorted(f"many-{number}" for number in range(672))


# Where it begins

@pytest.fixture(scope="module")
def site(build):
    """VMs of ten minutes; jobs may run a minute longer than their limit, and 2 s more after SIGTERM."""
    emulator = Emulator(build / "emulator" / "flex-gce-emulator")
    nodesets = [Nodeset(name, 1, {"run_duration_margin": "9m"}, STAYS) for name in ("tight", "cut", "over")]
    nodesets.append(Nodeset("rest", 1, partition={"SuspendTime": "300"}))
    with Cluster(nodesets, build=build, emulator=emulator, sweeper=True, name="fence",
                 slurm_extra=[f"OverTimeLimit={OVER_TIME_LIMIT // 60}", f"KillWait={KILL_WAIT}"]) as cluster:
        cluster.first = {name: cluster.sbatch("-p", name, "-N1", "--time=1") for name in ("tight", "cut", "over")}
        yield cluster


def fence_of(cluster, name):
    """When the fence of the nodeset's node begins, and when its VM ends; once its first job is over and it is idle."""
    node = f"{name}-0"
    cluster.wait_job(cluster.first[name], "COMPLETED")
    cluster.wait_for(lambda: any(node in nodes for nodes in ours(cluster).values()), 30, "the node's reservation")
    start = min(seconds(record["StartTime"]) for label, (nodes, record) in reservations(cluster).items()
                if node in nodes and label in ours(cluster))
    end = next(vm["ends"] for vm in cluster.emulator.state()["vms"] if vm["name"] == node)
    return start, end


def test_it_begins_as_much_earlier_as_slurmctld_takes_to_end_a_job(site):
    start, end = fence_of(site, "tight")
    assert 0 <= end - LEAD - start < 120, f"it begins {end - start:.0f} s before the end"
    # It would end before the VM does, but is not gone by then.
    tight = site.sbatch("-p", "tight", "-N1", "--time=8")
    fits = site.sbatch("-p", "tight", "-N1", "--time=2")
    site.wait_job(fits, "COMPLETED")
    assert time.time() + 480 < end, "the machine is too slow for this test"
    assert site.job_state(tight) == "PENDING", site.job(tight)
    site.scancel(tight)


def test_a_job_that_takes_less_is_cut_to_its_beginning(site):
    start, end = fence_of(site, "cut")
    job = site.sbatch("-p", "cut", "-N1", "--time=60", "--time-min=1", script="sleep 5")
    site.wait_job(job, {"RUNNING", "COMPLETED"})
    record = site.job(job)
    days, _, clock = record["TimeLimit"].rpartition("-")
    hours, minutes, rest = map(int, clock.split(":"))
    limit = int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest
    assert limit >= 60
    assert seconds(record["StartTime"]) + limit <= start <= end - LEAD, record


def test_a_job_whose_time_was_over_when_its_vm_went_is_not_run_again(site):
    fence_of(site, "over")
    job = site.sbatch("-p", "over", "-N1", "--time=5", script="trap '' TERM; sleep 300 & wait; sleep 300")
    site.wait_job(job, "RUNNING")
    site.scontrol("update", f"jobid={job}", "endtime=now+2")
    end = seconds(site.job(job)["EndTime"])
    site.wait_for(lambda: time.time() > end + 1, 10, "the job's time to be over")
    assert site.job_state(job) == "RUNNING"
    site.emulator.kill_instance("over-0")
    site.wait_for(lambda: site.job_state(job) not in ("RUNNING", "COMPLETING"), OVER_TIME_LIMIT + 60, "the job to end")
    assert site.job_state(job) == "TIMEOUT" and site.job(job)["Restarts"] == "0", site.job(job)
    assert "its VM" not in site.job(job).get("AdminComment", "") or "requeue" not in site.job(job)["AdminComment"]
    site.wait_off("over-0")
