# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that wait for VMs while what the accounting, or a limit of their partition, allows is changed under them: given
back where slurmctld would not start them now, and left alone where it would."""
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

C = {"zones": [f"{REGION}-c"]}  # has no room
GIVEN_BACK = ("held", "above", "cpus", "walls", "ownwall", "closed", "deleted", "maxtime", "maxnodes")
KEPT = ("submit", "bigger", "enough")
NAMES = GIVEN_BACK + KEPT
QOS = {"walls": "brief", "closed": "extra", "deleted": "doomed", "bigger": "generous"}


class Waiting:
    """For each name a partition with one node, an account, and a job of an hour; all wait in Google's queue."""

    def __init__(self, cluster):
        self.cluster, self.emulator, self.accounting = cluster, cluster.emulator, cluster.accounting
        accounting = self.accounting
        accounting.sacctmgr("add", "qos", ",".join(QOS.values()))
        accounting.limit_qos("generous", MaxWall="1-00:00:00")
        accounting.sacctmgr("add", "account", "faculty")
        for name in NAMES:
            parent = ["parent=faculty"] if name == "above" else []
            accounting.sacctmgr("add", "account", name, *parent)
            accounting.sacctmgr("add", "user", accounting.user, f"account={name}", f"qos=normal,{','.join(QOS.values())}")
        self.jobs = {name: self.submit(name) for name in NAMES}
        self.requests = {}
        for name in NAMES:
            cluster.wait_for(lambda name=name: self.active(name), 60, f"the request of {name}")
            self.requests[name] = self.active(name)
        # A look at each job before anything changes.
        time.sleep(3)
        self.disturb()

    def submit(self, name):
        return self.cluster.sbatch("-p", name, "-N1", "--time=60", "-A", name, f"--qos={QOS.get(name, 'normal')}")

    def disturb(self):
        """All at once: each test looks at its own."""
        accounting = self.accounting
        accounting.limit_user("held", MaxJobs=0)
        accounting.limit_account("faculty", GrpJobs=0)
        accounting.limit_account("cpus", GrpTRES="cpu=0")
        accounting.limit_qos("brief", MaxWall=30)
        accounting.limit_user("ownwall", MaxWall=30)
        accounting.sacctmgr("modify", "user", accounting.user, "where", "account=closed", "set", "qos-=extra")
        self.cluster.scontrol("update", "partitionname=maxtime", "maxtime=30")
        self.cluster.scontrol("update", "partitionname=maxnodes", "maxnodes=0")
        accounting.sacctmgr("delete", "qos", "doomed")
        accounting.limit_user("submit", MaxSubmitJobs=0)
        accounting.limit_user("bigger", MaxWall=30)
        accounting.limit_account("enough", GrpTRES="cpu=2,node=1", GrpJobs=1)
        self.disturbed = time.monotonic()

    def active(self, name):
        """The names of its requests in the queue."""
        job = self.jobs[name]
        return sorted(request.name for request in self.emulator.requests_of(job) if request.is_active)

    def given_back(self, name, seconds=30):
        """Its request is cancelled, its node off, and the job is in the queue; slurmctld's own reason."""
        cluster, job = self.cluster, self.jobs[name]
        cluster.wait_for(lambda: not self.active(name), seconds, f"the request of {name} to be cancelled")
        cluster.wait_for(lambda: cluster.is_off(f"{name}-0"), 30, f"{name}-0 to be off")
        cluster.wait_for(lambda: cluster.job(job)["Reason"] not in ("None", "BeginTime", "(null)"), 60, "slurmctld's reason")
        until = time.monotonic() + 4
        while time.monotonic() < until:
            record = cluster.job(job)
            assert record["JobState"] == "PENDING" and record["Restarts"] == "1", record
            assert not self.active(name)
            time.sleep(0.5)
        assert "back in the queue" in record["AdminComment"], record
        return record["Reason"], record["AdminComment"]

    def asked_again(self, name):
        self.cluster.wait_for(lambda: self.active(name), 60, f"{name} to be asked for again")


@pytest.fixture(scope="module")
def waiting(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-c": 0})
    with Cluster([Nodeset(name, 1, C) for name in NAMES], build=build, emulator=emulator, sweeper=True,
                 name="accounting", accounting=True) as cluster:
        yield Waiting(cluster)


def test_a_held_user_association(waiting):
    reason, comment = waiting.given_back("held")
    assert reason == "AssocMaxJobsLimit"
    assert f"MaxJobs of user {waiting.accounting.user} in account held does not allow it" in comment
    waiting.accounting.limit_user("held", MaxJobs=-1)
    waiting.asked_again("held")


def test_the_account_above_may_run_no_jobs(waiting):
    reason, comment = waiting.given_back("above")
    assert reason == "AssocGrpJobsLimit"
    assert "GrpJobs of account faculty does not allow it" in comment


def test_an_account_with_fewer_cpus_than_the_job(waiting):
    reason, comment = waiting.given_back("cpus")
    assert reason == "AssocGrpCpuLimit"
    assert "GrpTRES=cpu of " in comment


@pytest.mark.parametrize("name, reason, words", [
    ("walls", "QOSMaxWallDurationPerJobLimit", "MaxWall of QOS brief does not allow it"),
    ("ownwall", "AssocMaxWallDurationPerJobLimit", "MaxWall of user "),
    ("maxtime", "PartitionTimeLimit", "it is outside of MaxTime of partition maxtime"),
    ("maxnodes", "PartitionNodeLimit", "it is outside of MaxNodes of partition maxnodes")])
def test_a_limit_below_the_job(waiting, name, reason, words):
    told, comment = waiting.given_back(name)
    assert told == reason and words in comment


def test_a_qos_that_its_user_may_not_use_any_more(waiting):
    reason, comment = waiting.given_back("closed")
    assert reason == "InvalidQOS"
    assert f"user {waiting.accounting.user} may not use QOS extra any more" in comment


def test_a_qos_that_is_deleted(waiting):
    reason, comment = waiting.given_back("deleted")
    assert reason == "InvalidQOS"
    assert "its QOS does not exist any more" in comment


def test_what_slurmctld_would_start_keeps_its_place(waiting):
    """A limit on submitting, a QOS whose limit counts before the association's, and limits that the job just
    meets."""
    time.sleep(max(0.0, waiting.disturbed + 15 - time.monotonic()))
    for name in KEPT:
        assert waiting.active(name) == waiting.requests[name], name
        assert waiting.cluster.job(waiting.jobs[name])["Restarts"] == "0"


def test_and_slurmctld_would(waiting):
    """They are taken from their nodes by hand, and get them again."""
    for name in KEPT:
        waiting.cluster.scontrol("requeue", str(waiting.jobs[name]))
    for name in KEPT:
        job = waiting.jobs[name]
        waiting.cluster.wait_for(lambda job=job: waiting.cluster.job(job)["JobState"] == "CONFIGURING"
                                 and waiting.cluster.job(job)["Restarts"] == "1", 60, f"{name} to be given nodes again")


def test_an_association_cannot_be_removed_under_a_job_with_nodes(waiting):
    """slurmdbd sees to it: nothing for us to do."""
    accounting = waiting.accounting
    told = accounting.sacctmgr("delete", "user", accounting.user, "where", "account=submit", check=False)
    assert "Job(s) active" in told
