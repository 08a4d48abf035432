# SPDX-License-Identifier: GPL-2.0-or-later
"""More jobs than a region takes requests: the rest waits its turn, longest waiting first, and no job fails."""
import re
import threading
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

JOBS, MOST = 150, 100
LATER = 10  # jobs that come together, in the end
INSERT = "resizeRequests.insert"


def job_of(request):
    return int(re.match(r"j(\d+)-", request)[1])


class Crowd:
    """150 jobs on a node each, which came one group after the other, and a region without room for VMs."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", boot_delay_ms=2000,
                                 capacity={f"{REGION}-a": 0, f"{REGION}-b": 0}, quota={"ACTIVE_RESIZE_REQUESTS": MOST})
        self.cluster = Cluster(
            [Nodeset("many", JOBS, partition={"SuspendTime": "INFINITE", "ResumeTimeout": "120"}),
             Nodeset("few", 12, {"zones": [f"{REGION}-b"]}, boots=False),
             Nodeset("capped", 4, {"zones": [f"{REGION}-b"], "max_nodes": 2}, boots=False)],
            build=build, emulator=self.emulator, cpus=1, cred_expire=120, log_level="info", sweeper=True,
            # All nodes boot at once on this one host.
            slurm_extra=["BatchStartTimeout=120", "SlurmdTimeout=300"],
            # Jobs that begin at once would end, and their VMs make room for others.
            quick_tick=False)
        self.most_active = 0
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start(self):
        self._watcher.start()

    def stop(self):
        self._is_over.set()
        self._watcher.join()

    def _watch(self):
        while not self._is_over.wait(0.2):
            try:
                self.most_active = max(self.most_active, len(self.active()))
            except OSError:  # the cluster is ending
                continue

    def active(self):
        return [request for request in self.emulator.requests() if request.is_active]

    def submit(self, count, nodeset="many"):
        """So many jobs more, each on a node of its own. Some at once: a task of an array is a job, and cheaper."""
        before = len(self.jobs(nodeset))
        arrays = [f"--array=1-{count}"] if nodeset == "many" else [""] * count
        for array in arrays:
            self.cluster.sbatch("-p", nodeset, "-N1", "--time=10", *filter(None, [array]))
        self.cluster.wait_for(lambda: len(self.jobs(nodeset)) == before + count, 30, f"{count} more jobs to have nodes")

    def jobs(self, nodeset="many"):
        """Ids of jobs that wait for their node, longest waiting first."""
        lines = self.cluster.slurm("squeue", "-h", "-r", "-p", nodeset, "-t", "CONFIGURING", "-o", "%S %A").stdout.splitlines()
        return [int(line.split()[1]) for line in sorted(lines, key=lambda line: (line.split()[0], int(line.split()[1])))]

    def asked(self):
        """Jobs for which there is or was a request."""
        return {job_of(call["body"]["name"]) for call in self.emulator.calls(INSERT) if call["status"] == 200}

    def refused(self):
        return [call for call in self.emulator.calls(INSERT) if call["status"] != 200]

    def wait_asked(self, jobs, seconds=40):
        """Until exactly these have been asked for."""
        self.cluster.wait_for(lambda: len(self.asked()) >= len(jobs), seconds, f"{len(jobs)} jobs to be asked for", interval=0.5)
        assert self.asked() == set(jobs)

    @property
    def queue_file(self):
        return self.cluster.sweeper_dir / "queue"


@pytest.fixture(scope="module")
def crowd(build):
    crowd = Crowd(build)
    with crowd.cluster:
        crowd.start()
        try:
            yield crowd
        finally:
            crowd.stop()


@pytest.fixture(autouse=True)
def usual_quota(crowd):
    """What one test sets is not the next one's trouble."""
    crowd.emulator.config(quota={"ACTIVE_RESIZE_REQUESTS": MOST})


def test_jobs_beyond_the_quota_wait_their_turn_and_all_run(crowd):
    cluster, emulator = crowd.cluster, crowd.emulator
    crowd.submit(MOST)
    crowd.wait_asked(crowd.jobs(), 60)
    for _ in range((JOBS - MOST) // LATER):
        time.sleep(1.1)  # StartTime has seconds
        crowd.submit(LATER)
    order = crowd.jobs()
    assert len(order) == JOBS
    cluster.wait_for(crowd.queue_file.exists, 20, "the sweeper to say that jobs wait")
    last = cluster.wait_for(lambda: re.search(r"waiting for its turn.*", cluster.job(order[-1]).get("AdminComment", "")), 90,
                            "the last job's comment")[0]
    assert f"{MOST} of {MOST} requests of region {REGION} are in use" in last
    assert re.search(r", \d+ jobs are before it \(since \d\d:\d\d\)$", last), last
    crowd.wait_asked(order[:MOST])

    # Room comes step by step: each time those who wait longest are asked for, and no others.
    for served in (10, 25, 45):
        emulator.set_capacity(a=served)
        crowd.wait_asked(order[:MOST + served])
        assert len(crowd.active()) == MOST
    emulator.set_capacity(a=-1)
    cluster.wait_for(lambda: not crowd.queue_file.exists(), 30, "nobody to wait any more")
    crowd.wait_asked(order)
    cluster.wait_for(lambda: len(done_jobs(cluster)) == JOBS, 240, "all jobs to run", interval=1)

    assert set(done_jobs(cluster)) == set(order)
    assert crowd.most_active <= MOST
    for job in order[::25]:
        record = cluster.job(job)
        assert (record["JobState"], record["Restarts"]) == ("COMPLETED", "0"), record
    # flex-resume asks once for a job, if at all; the sweeper knows how many there is room for.
    assert len(crowd.refused()) <= JOBS - MOST + 10, len(crowd.refused())
    assert "event=job_held" not in cluster.log("flex-sweeper.log") + cluster.log("flex-resume.log")


def done_jobs(cluster):
    lines = cluster.slurm("squeue", "-h", "-r", "-p", "many", "-t", "all", "-o", "%A %T").stdout.splitlines()
    states = {int(line.split()[0]): line.split()[1] for line in lines}
    bad = {job: state for job, state in states.items() if state in ("FAILED", "NODE_FAIL", "CANCELLED", "TIMEOUT", "BOOT_FAIL")}
    assert not bad, bad
    return [job for job, state in states.items() if state == "COMPLETED"]


def test_where_google_takes_fewer_than_the_config_says_few_calls_find_that_out(crowd):
    cluster, emulator = crowd.cluster, crowd.emulator
    emulator.config(quota={"ACTIVE_RESIZE_REQUESTS": 2})
    crowd.submit(6, "few")
    order = crowd.jobs("few")
    cluster.wait_for(crowd.queue_file.exists, 20, "the sweeper to say that jobs wait")
    comment = cluster.wait_for(lambda: re.search(r"Google takes no more.*", cluster.job(order[-1]).get("AdminComment", "")), 90,
                               "the last job's comment")[0]
    assert "ACTIVE_RESIZE_REQUESTS" in comment and "before it" in comment
    first, before = cluster.sweeper_status()["round"], len(crowd.refused())
    time.sleep(6)
    rounds = cluster.sweeper_status()["round"] - first
    assert rounds >= 2
    assert len(crowd.refused()) - before <= rounds + 1, "more than one call a round"
    # One more job: flex-resume does not ask past those who wait.
    calls = len(emulator.calls(INSERT))
    crowd.submit(1, "few")
    cluster.wait_for(lambda: re.search(r"left_to_sweeper.*few-\d+.*wait for their turn already", cluster.log("flex-resume.log")), 20,
                     "flex-resume to leave the job to the sweeper")
    assert len(emulator.calls(INSERT)) - calls <= cluster.sweeper_status()["round"] - first - rounds + 1
    # A request that ends makes room for the one that waits longest.
    asked = {job_of(request.name) for request in crowd.active()}
    waiting = [job for job in order if job not in asked]
    cluster.scancel(next(iter(asked)))
    cluster.wait_for(lambda: waiting[0] in crowd.asked(), 40, "the longest waiting job's request")
    assert not set(waiting[1:]) & crowd.asked()
    emulator.config(quota={"ACTIVE_RESIZE_REQUESTS": MOST})
    cluster.wait_for(lambda: set(waiting) <= crowd.asked(), 60, "all the others' requests")
    cluster.wait_for(lambda: not crowd.queue_file.exists(), 30, "nobody to wait any more")


def test_a_dead_sweeper_holds_nobody_up(crowd):
    cluster = crowd.cluster
    cluster.kill_sweeper()
    cluster.sandbox.write("state/flex-start/queue", f"7 {int(time.time()) - 600}\n")
    before = set(crowd.jobs("few"))
    crowd.submit(1, "few")
    job = (set(crowd.jobs("few")) - before).pop()
    cluster.wait_for(lambda: job in crowd.asked(), 20, "flex-resume to ask")
    cluster.start_sweeper()
    cluster.wait_for(lambda: not crowd.queue_file.exists(), 20, "the old file to go")


def test_a_nodeset_at_its_max_nodes_is_waited_for(crowd):
    cluster = crowd.cluster
    crowd.submit(4, "capped")
    order = crowd.jobs("capped")
    cluster.wait_for(lambda: set(order[:2]) <= crowd.asked(), 20, "as many requests as max_nodes allows")
    comment = cluster.wait_for(lambda: re.search(r"waiting for its turn.*", cluster.job(order[3]).get("AdminComment", "")), 30,
                               "the last job's comment")[0]
    assert "nodeset capped is at its max_nodes 2, 1 job is before it" in comment
    assert not set(order[2:]) & crowd.asked()
    cluster.scancel(order[0])
    cluster.wait_for(lambda: order[2] in crowd.asked(), 40, "the next one's request")
    assert order[3] not in crowd.asked() and cluster.job_state(order[3]) == "CONFIGURING"
    cluster.scancel(*order)


def test_a_quota_of_vms_is_named_in_the_job_comment(crowd):
    cluster, emulator = crowd.cluster, crowd.emulator
    emulator.config(quota={"INSTANCES": 0}, capacity={f"{REGION}-b": -1})
    job = cluster.sbatch("-p", "few", "-N1", "--time=10")
    comment = cluster.wait_for(lambda: re.search(r"waiting for 1 VM.*quota.*", cluster.job(job).get("AdminComment", "")), 90,
                               "the quota in the comment")[0]
    assert re.search(r"\(attempt 1\): quota INSTANCES is used up \(limit 0\), ask for more or wait$", comment), comment
