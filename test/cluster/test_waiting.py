# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that wait for VMs and that slurmctld would not let start any more: they are given back before a VM is bought.

There is no slurmdbd here; test_accounting.py has one.
"""
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

C = {"zones": [f"{REGION}-c"]}  # has no room
NAMES = ("course", "maint", "late", "down", "account", "hands", "brief", "drained", "short", "inside", "cores",
         "overlap", "floating")
SOON = 30 * 60


class Waiting:
    """A job in each partition, for the one node of it, an hour long; all wait in Google's queue."""

    def __init__(self, cluster):
        self.cluster, self.emulator = cluster, cluster.emulator
        options = {name: [] for name in NAMES}
        options["late"] = ["--time=1", "--deadline=now+100"]
        options["account"] = ["--account=physics"]
        options["hands"] = ["--no-requeue"]
        options["short"] = ["--time=20"]
        for name, flags in (("inside", ()), ("overlap", ("flags=overlap",))):
            user = cluster.sandbox.account.pw_name
            cluster.scontrol("create", "reservation", f"reservationname=own-{name}", "starttime=now", "duration=600", f"users={user}",
                             f"nodes={name}-0", *flags)
            options[name] = [f"--reservation=own-{name}"]
        # It is there before the job, which fits at first.
        self.reserve("course", 3600 + 45)
        # It is always an hour away, and jobs of an hour start.
        self.reserve("floating", 3600, "flags=time_float")
        self.jobs = {name: cluster.sbatch("-p", name, "-N1", "--time=60", *options[name]) for name in NAMES}
        self.requests = {}
        for name in NAMES:
            cluster.wait_for(lambda name=name: self.active(name), 60, f"the request of {name}")
            self.requests[name] = self.active(name)
        self.disturb()

    def disturb(self):
        """All at once: each test looks at its own."""
        self.reserve("brief", SOON, "flags=ignore_jobs")
        self.cluster.scontrol("delete", "reservation=brief")
        self.reserve("maint", SOON, "flags=maint,ignore_jobs")
        self.reserve("short", SOON, "flags=ignore_jobs")
        self.reserve("inside", SOON, "flags=maint,ignore_jobs")
        self.reserve("overlap", SOON, "flags=overlap,ignore_jobs")
        self.reserve("cores", SOON, "corecnt=1", "flags=ignore_jobs")
        for name in ("down", "hands"):
            self.cluster.scontrol("update", f"partitionname={name}", "state=down")
        self.cluster.scontrol("update", "partitionname=drained", "state=drain")
        self.cluster.scontrol("update", "partitionname=account", "allowaccounts=chemistry")
        self.disturbed = time.monotonic()

    def reserve(self, name, seconds, *more):
        start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))
        self.cluster.scontrol("create", "reservation", f"reservationname={name}", f"starttime={start}", "duration=60", "users=root",
                              f"nodes={name}-0", *more)

    def active(self, name):
        """The names of its requests in the queue."""
        job = self.jobs[name]
        return sorted(request.name for request in self.emulator.requests_of(job) if request.is_active)

    def comment(self, name):
        return self.cluster.job(self.jobs[name]).get("AdminComment", "")

    def given_back(self, name, seconds=25):
        """Its request is cancelled, its node off, and the job is in the queue with slurmctld's own reason; it stays so."""
        cluster, job = self.cluster, self.jobs[name]
        cluster.wait_for(lambda: not self.active(name), seconds, f"the request of {name} to be cancelled")
        cluster.wait_for(lambda: cluster.is_off(f"{name}-0"), 30, f"{name}-0 to be off")
        record = cluster.job(job)
        assert record["JobState"] == "PENDING" and record["Restarts"] == "1", record
        # Requeued jobs start again after about 13 s here.
        cluster.wait_for(lambda: cluster.job(job)["Reason"] not in ("None", "BeginTime", "(null)"), 40, "slurmctld's reason")
        until = time.monotonic() + 6
        while time.monotonic() < until:
            record = cluster.job(job)
            assert record["JobState"] == "PENDING" and record["Restarts"] == "1", record
            assert not self.active(name)
            time.sleep(0.5)
        return record["Reason"]

    def asked_again(self, name):
        self.cluster.wait_for(lambda: self.active(name), 60, f"{name} to be asked for again")


@pytest.fixture(scope="module")
def waiting(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-c": 0})
    with Cluster([Nodeset(name, 1, C) for name in NAMES], build=build, emulator=emulator, sweeper=True,
                 name="waiting") as cluster:
        yield Waiting(cluster)


def test_a_reservation_of_others_on_its_node(waiting):
    """One that it did not reach into when it got its node."""
    reason = waiting.given_back("course", 60)
    assert "reservation course has its nodes from" in waiting.comment("course")
    assert "back in the queue" in waiting.comment("course")
    assert reason.startswith(("ReqNodeNotAvail", "Resources", "Reservation", "Nodes_required")), reason
    waiting.cluster.scontrol("delete", "reservation=course")
    waiting.asked_again("course")


def test_a_maintenance_of_its_node(waiting):
    waiting.given_back("maint")
    assert "reservation maint has its nodes from" in waiting.comment("maint")


def test_a_maintenance_over_its_own_reservation(waiting):
    waiting.given_back("inside")
    assert "reservation inside has its nodes from" in waiting.comment("inside")


def test_some_cores_of_a_node_that_it_needs_whole(waiting):
    waiting.given_back("cores")
    assert "reservation cores has its nodes from" in waiting.comment("cores")


def test_a_partition_that_is_down(waiting):
    reason = waiting.given_back("down")
    assert reason == "PartitionDown"
    assert "partition down is down or inactive" in waiting.comment("down")
    waiting.cluster.scontrol("update", "partitionname=down", "state=up")
    waiting.asked_again("down")


def test_a_partition_that_is_closed_to_its_account(waiting):
    reason = waiting.given_back("account")
    assert "ccount" in reason, reason
    assert "partition account is closed to account physics" in waiting.comment("account")
    waiting.cluster.scontrol("update", "partitionname=account", "allowaccounts=all")
    waiting.asked_again("account")


def test_a_job_that_cannot_be_requeued_is_cancelled(waiting):
    cluster, job = waiting.cluster, waiting.jobs["hands"]
    cluster.wait_job(job, "CANCELLED", 25)
    assert not waiting.active("hands")
    assert "partition hands is down or inactive" in waiting.comment("hands")
    cluster.wait_off("hands-0")


def test_its_deadline(waiting):
    """slurmctld ends it when it is back in its hands."""
    cluster, job = waiting.cluster, waiting.jobs["late"]
    cluster.wait_for(lambda: not waiting.active("late"), 90, "the request to be cancelled")
    assert "it cannot end before its deadline" in waiting.comment("late")
    cluster.wait_job(job, "DEADLINE", 60)
    cluster.wait_off("late-0")
    assert "late-0" not in waiting.emulator.vms()


def test_what_slurmctld_would_let_start_keeps_its_place(waiting):
    """A reservation that was there for a moment, one that it ends before, one that its own may overlap, one that is
    always an hour away, and a partition that takes no new jobs."""
    time.sleep(max(0.0, waiting.disturbed + 20 - time.monotonic()))
    for name in ("brief", "short", "drained", "overlap", "floating"):
        assert waiting.active(name) == waiting.requests[name], name
        assert waiting.cluster.job(waiting.jobs[name])["Restarts"] == "0"
