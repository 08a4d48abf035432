# SPDX-License-Identifier: GPL-2.0-or-later
"""What the sweeper looks at, and what it can do without: jobs that wait survive ResumeTimeout while slurmctld takes
its time, while a list that nobody needs is refused, and while Compute Engine is away from the start."""
import shutil
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

TIMEOUT = 24  # ResumeTimeout, seconds
TICK = 8      # between two looks of slurmctld's power saving


class Site:
    """A region without room, and a slurmctld that wakes nodes some seconds after it gave them to a job."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-a": 0})
        self.cluster = Cluster(
            [Nodeset(name, 1, boots=False, partition={"ResumeTimeout": str(TIMEOUT)}) for name in ("late", "list", "away")],
            build=build, emulator=self.emulator, log_level="info",
            slurm_extra=[f"SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,power_save_min_interval={TICK}"])

    def submit(self, nodeset):
        return self.cluster.sbatch("-p", nodeset, "-N1", "--time=10")

    def words(self, node):
        return self.cluster.node(node)["State"].split("+")

    def waking(self, nodeset):
        """Until slurmctld wakes its node and its request waits; when that began, at the earliest."""
        node, before = f"{nodeset}-0", time.monotonic()

        def is_waking():
            nonlocal before
            if "POWERING_UP" in self.words(node):
                return True
            before = time.monotonic()
            return False

        self.cluster.wait_for(is_waking, 60, f"{node} to be woken")
        return before

    def outlives(self, job, since):
        """The job waits on, in its first life, when its node's ResumeTimeout would be over."""
        cluster = self.cluster
        while time.monotonic() < since + TIMEOUT + TICK + 4:
            record = cluster.job(job)
            assert (record["JobState"], record["Restarts"]) == ("CONFIGURING", "0"), \
                f"{record['JobState']}, restarts {record['Restarts']}\n{cluster.situation()}"
            time.sleep(1)


@pytest.fixture(scope="module")
def site(build):
    site = Site(build)
    with site.cluster:
        yield site


@pytest.fixture(autouse=True)
def alone(site):
    """What one test leaves is not the next one's trouble."""
    yield
    site.emulator.clear_faults()
    site.cluster.stop_sweeper()
    for name in site.cluster.nodesets:
        site.cluster.slurm("scancel", "-p", name, check=False)


def test_a_node_that_slurmctld_wakes_late_is_seen_and_kept_waiting(site):
    """Allocated and still powered down for seconds: before 24.05 slurmctld does not count the change that follows."""
    cluster = site.cluster
    cluster.start_sweeper()
    cluster.wait_for(lambda: cluster.sweeper_status().get("round", 0) > 2, 30, "the sweeper's rounds")
    job = site.submit("late")
    seen = []
    cluster.wait_for(lambda: seen.append(site.words("late-0")) or "ALLOCATED" in seen[-1], 40, "late-0 to have its job")
    since = site.waking("late")
    assert any("ALLOCATED" in words and "POWERED_DOWN" in words for words in seen + [site.words("late-0")]) \
        or cluster.version >= (24, 5), seen
    site.outlives(job, since)


def test_a_list_that_no_nodeset_needs_holds_nothing_up(site):
    """VMs of no group are asked for where a nodeset may have some; here none may."""
    cluster, emulator = site.cluster, site.emulator
    shutil.rmtree(cluster.sweeper_dir, ignore_errors=True)
    for method in ("instances.aggregatedList", "instances.list", "resourcePolicies.list", "regions.get"):
        emulator.fault(method, "503", count=10**6)
    cluster.start_sweeper()
    job = site.submit("list")
    site.outlives(job, site.waking("list"))
    assert cluster.sweeper_status()["last_round"]["complete"]


def test_a_sweeper_that_starts_while_compute_engine_is_away_keeps_jobs_waiting(site):
    cluster, emulator = site.cluster, site.emulator
    cluster.start_sweeper()
    job = site.submit("away")
    site.waking("away")
    cluster.wait_for(lambda: emulator.requests_of(job), 40, "its request")
    before = cluster.sweeper_status()["round"]
    cluster.wait_for(lambda: cluster.sweeper_status()["round"] > before + 2, 30, "the sweeper to see it")
    cluster.kill_sweeper()
    emulator.fault("regionInstanceGroupManagers.list", "503", count=10**6)
    since = time.monotonic()
    cluster.start_sweeper()
    site.outlives(job, since)
    assert "Google cannot be seen" in cluster.log("flex-sweeper.log")
    assert [request.name for request in emulator.requests_of(job) if request.is_active]
