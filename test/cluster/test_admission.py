# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may ask Google for what now: the request quota, max_nodes, jobs over several requests, replacements.

One cluster. Zone c never has room, zone a always has. What is asked for is what counts.
"""
import os
import signal
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

A, C = ({"zones": [f"{REGION}-{letter}"]} for letter in "ac")
QUOTA = "ACTIVE_RESIZE_REQUESTS"
INSERT = "regionInstanceGroupManagerResizeRequests.insert"


def then(seconds):
    """on_stockout: after so many seconds zone a."""
    return {"on_stockout": [{"wait": f"{seconds}s", **A}]}


def over(*nodesets):
    """A partition over several nodesets."""
    return {"Nodes": ",".join(nodesets)}


NODESETS = [
    Nodeset("hog", 2, C),
    Nodeset("step", 2, {**C, **then(3)}),
    Nodeset("late", 1, {**C, **then(6)}),
    Nodeset("pair", 2, C, over("pair-[0-1]", "mate-0")),
    Nodeset("mate", 1, C),
    Nodeset("lanes", 1, {"zones": [f"{REGION}-c", f"{REGION}-f"], "race": 2}),
    Nodeset("behind", 1, C),
    Nodeset("once", 4, {**C, "max_nodes": 2}),
    Nodeset("died", 4, {**C, "max_nodes": 2}),
    Nodeset("gone", 4, {**C, "max_nodes": 2}),
    Nodeset("three", 1, C, over("three-0", "pair-0", "mate-0")),
    Nodeset("line", 6, {**C, "max_nodes": 2}),
    Nodeset("frozen", 5, {**C, **then(12), "max_nodes": 2}),
    Nodeset("full", 2, {**C, "max_nodes": 1}, over("full-[0-1]", "free-0")),
    Nodeset("free", 1, C),
    Nodeset("never", 5, {**A, "max_nodes": 4, "static_nodes": "never-[0-1]"}),
]


class Site:
    """The cluster, and what is asked of its cloud."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator",
                                 capacity={f"{REGION}-c": 0, f"{REGION}-f": 0})
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, name="admission", log_level="info", sweeper=True,
                               slurm_extra=["SuspendExcNodes=never-[0-1]"])

    def submit(self, nodeset, *options):
        job = self.cluster.sbatch("-p", nodeset, "--time=10", *options, script="sleep 600")
        self.cluster.wait_for(lambda: self.cluster.job_state(job) == "CONFIGURING", 20, f"job {job} to have its nodes")
        return job

    def allow(self, requests):
        """Google's quota, and api.max_active_requests of the sweeper and of every flex-resume from now on."""
        self.emulator.config(quota={QUOTA: requests})
        settings = self.cluster.flex_config
        before = self.cluster.log("flex-sweeper.log").count("event=reloaded")
        self.cluster.write_flex_config({**settings, "api": {**settings["api"], "max_active_requests": requests}})
        self.cluster.reload_sweeper()
        self.cluster.wait_for(lambda: self.cluster.log("flex-sweeper.log").count("event=reloaded") > before, 20, "the sweeper to reload")

    def active(self, *jobs):
        """Active requests of these jobs, or of all but the static nodes."""
        return [request for request in self.emulator.requests() if request.is_active
                and (not jobs or any(request.name.startswith(f"j{job}-") for job in jobs))]

    def used(self, nodeset):
        """Nodes that have a VM, or are asked for."""
        asked = {node for request in self.active() for node in request.nodes}
        return {node for node in asked | set(self.emulator.vms()) if node.startswith(f"{nodeset}-")}

    def wait_asked(self, job, count=1, seconds=30):
        self.cluster.wait_for(lambda: len(self.active(job)) == count, seconds, f"{count} requests of job {job}")

    def never(self, seconds, is_wrong, what):
        """Looks for so long; the first wrong thing that is seen fails."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            wrong = is_wrong()
            assert not wrong, f"{what}: {wrong}"
            time.sleep(0.1)

    def waits(self, job, words, seconds=30):
        """Until the job's author reads these words."""
        return self.cluster.wait_for(lambda: words in self.cluster.job(job).get("AdminComment", ""), seconds,
                                     f"job {job} to be told '{words}'")

    def groups_asked(self, nodeset):
        """The groups of all requests that were taken for nodes of the nodeset, in their order."""
        calls = [call for call in self.emulator.calls("resizeRequests.insert") if call["status"] == 200]
        return [call["path"].split("/instanceGroupManagers/")[1].split("/")[0] for call in calls
                if f"/admission-{nodeset}" in call["path"]]

    def asker(self):
        """The process of the flex-resume that is about to ask for nodes."""
        lines = (self.cluster.sweeper_dir / "asked").read_text(encoding="ascii").splitlines()
        [pid] = [int(words[2].rpartition(":")[2]) for words in map(str.split, lines)
                 if words[1] == "0" and words[2].startswith("flex-resume@")]
        assert os.readlink(f"/proc/{pid}/exe") == str(self.cluster.program("flex-resume"))
        return pid

    def clear(self):
        """No job is left, and nothing of one."""
        self.cluster.slurm("scancel", "-u", self.cluster.sandbox.account.pw_name)
        self.cluster.wait_for(lambda: not self.active() and not self.cluster.slurm("squeue", "-h").stdout, 60,
                              "everything to be given back")


@pytest.fixture(scope="module")
def site(build):
    site = Site(build)
    with site.cluster:
        site.cluster.wait_for(lambda: site.cluster.sweeper_status().get("round", 0) > 1, 30, "the sweeper's first rounds")
        yield site


@pytest.fixture(autouse=True)
def usual(site):
    """What one test sets is not the next one's trouble."""
    yield
    site.emulator.config(latency_by_method={INSERT: 0})
    site.emulator.clear_faults()
    site.clear()
    site.allow(100)


def test_a_step_takes_the_slot_of_the_request_that_it_replaces(site):
    site.allow(2)
    jobs = [site.submit("step", "-N1") for _ in range(2)]
    site.cluster.wait_for(lambda: len(site.active(*jobs)) == 2, 30, "the quota to be used up")
    most = []

    def have_vms():
        most.append(len(site.active()))
        return set(site.emulator.vms()) >= {"step-0", "step-1"}

    site.cluster.wait_for(have_vms, 30, "VMs in the next entry's zone")
    assert max(most) <= 2, most


def test_on_stockout_counts_from_the_request(site):
    site.allow(2)
    hogs = [site.submit("hog", "-N1") for _ in range(2)]
    site.cluster.wait_for(lambda: len(site.active(*hogs)) == 2, 30, "the quota to be used up")
    job = site.submit("late", "-N1")
    site.waits(job, "2 of 2 requests")
    time.sleep(8)  # longer than wait: 6s
    assert site.groups_asked("late") == []
    site.cluster.scancel(hogs[0])
    site.wait_asked(job)
    assert site.groups_asked("late") == ["admission-late"], "the first entry's zone was never tried"
    site.cluster.wait_for(lambda: "late-0" in site.emulator.vms(), 40, "the step, after its time")


def test_all_requests_of_a_job_or_none(site):
    site.allow(2)
    first = site.submit("pair", "-N1", "-w", "pair-1")
    site.wait_asked(first)
    job = site.submit("pair", "-N2", "-w", "pair-0,mate-0")
    site.never(6, lambda: site.active(job), "a part of the job is asked for")
    site.waits(job, "its 2 requests are asked for together")
    assert "its 2 requests are asked for together" in site.cluster.log("flex-resume.log")
    site.cluster.scancel(first)
    site.wait_asked(job, 2)


def test_a_part_that_google_took_is_taken_back(site):
    """flex-resume does not see who else uses the quota: Google takes one of the job's two requests."""
    site.allow(2)
    hog = site.submit("hog", "-N1")
    site.wait_asked(hog)
    job = site.submit("pair", "-N2", "-w", "pair-0,mate-0")
    site.waits(job, "its 2 requests are asked for together")
    site.cluster.wait_for(lambda: not site.active(job), 20, "the part to be cancelled")
    site.never(5, lambda: site.active(job), "a part of the job is asked for")
    site.cluster.scancel(hog)
    site.wait_asked(job, 2)


def test_all_of_a_job_or_none_where_one_nodeset_is_full(site):
    first = site.submit("full", "-w", "full-0", "-N1")
    site.wait_asked(first)
    job = site.submit("full", "-w", "full-1,free-0", "-N2")
    site.never(5, lambda: site.active(job), "a part of the job is asked for")
    site.waits(job, "nodeset full is at its max_nodes 1")
    site.cluster.scancel(first)
    site.wait_asked(job, 2)


def test_what_was_learned_of_the_quota_is_unlearned_by_a_race(site):
    hog = site.submit("hog", "-N1")
    site.wait_asked(hog)
    site.emulator.config(quota={QUOTA: 1})
    race = site.submit("lanes", "-N1")
    site.waits(race, "Google takes no more requests")
    behind = site.submit("behind", "-N1")
    site.waits(behind, "Google takes no more requests")
    site.emulator.config(quota={QUOTA: 100})
    site.wait_asked(race, 2)
    site.wait_asked(behind)


def test_max_nodes_with_two_askers_at_once(site):
    site.emulator.config(latency_by_method={INSERT: 5000})
    jobs = []
    for _ in range(2):
        jobs.append(site.cluster.sbatch("-p", "once", "-N2", "--time=10"))
        time.sleep(1.2)  # the next call of flex-resume
    seen = set()

    def too_many():
        seen.add(len(site.used("once")))
        return len(site.used("once")) > 2 and sorted(site.used("once"))

    site.never(15, too_many, "more nodes than max_nodes 2")
    assert 2 in seen
    site.emulator.config(latency_by_method={INSERT: 0})
    site.cluster.scancel(jobs[0])
    site.wait_asked(jobs[1], seconds=60)


def test_max_nodes_when_the_asker_dies_before_it_asks(site):
    """flex-resume is killed after it has written down what it asks for, before Google acts."""
    site.emulator.fault(INSERT, "hold_before")
    first = site.submit("died", "-N2")
    assert site.emulator.reaches(20, held=1), "flex-resume does not ask"
    os.kill(site.asker(), signal.SIGKILL)
    second = site.submit("died", "-N2")
    site.wait_asked(first)
    site.waits(second, "nodeset died is at its max_nodes 2")
    assert not site.active(second)
    # Nor does what the dead one wrote keep others away.
    site.cluster.scancel(first)
    site.never(5, lambda: len(site.used("died")) > 2, "more nodes than max_nodes 2")
    site.wait_asked(second, seconds=90)


def test_max_nodes_when_the_asker_and_its_job_are_gone(site):
    """Nobody asks for what the dead one wrote down."""
    site.emulator.fault(INSERT, "hold_before")
    first = site.submit("gone", "-N2")
    assert site.emulator.reaches(20, held=1), "flex-resume does not ask"
    os.kill(site.asker(), signal.SIGKILL)
    site.cluster.scancel(first)
    second = site.submit("gone", "-N2")
    # What was on its way to Google is cancelled.
    site.wait_asked(second, seconds=90)
    assert len(site.used("gone")) == 2


def test_a_job_that_needs_more_requests_than_google_takes_holds_up_nobody(site):
    site.allow(2)
    job = site.submit("three", "-N3")
    site.waits(job, "its 3 requests are asked for together")
    behind = site.submit("behind", "-N1")
    site.wait_asked(behind)
    before = len(site.emulator.calls("resizeRequests.insert"))
    site.never(8, lambda: site.active(job), "a part of the job is asked for")
    assert len(site.emulator.calls("resizeRequests.insert")) == before
    # With more room it has its turn.
    site.allow(4)
    site.wait_asked(job, 3, seconds=45)


def test_nobody_asks_past_the_one_that_waits_for_max_nodes(site):
    first = site.submit("line", "-N1")
    site.wait_asked(first)
    big = site.submit("line", "-N2")
    site.waits(big, "nodeset line is at its max_nodes 2, it is the next one")
    small = [site.submit("line", "-N1") for _ in range(2)]
    site.never(5, lambda: site.active(*small), "a job passed the one that waits longer")
    site.waits(small[1], "nodeset line is at its max_nodes 2, 2 jobs are before it")
    site.cluster.scancel(first)
    site.wait_asked(big)
    assert not site.active(*small)
    site.cluster.scancel(big)
    for job in small:
        site.wait_asked(job)


def test_a_job_that_waits_for_max_nodes_freezes_no_fallback(site):
    first = site.submit("frozen", "-N1")
    site.wait_asked(first)
    waiting = site.submit("frozen", "-N2")
    site.waits(waiting, "nodeset frozen is at its max_nodes 2")
    [node] = site.cluster.job_nodes(first)
    site.cluster.wait_for(lambda: node in site.emulator.vms(), 45, "the first job's on_stockout")
    assert not site.active(waiting)


def test_a_job_that_never_fits_is_told_at_once(site):
    cluster = site.cluster
    cluster.wait_for(lambda: {"never-0", "never-1"} <= set(site.emulator.vms()), 60, "the static nodes' VMs")
    job = cluster.sbatch("-p", "never", "-N3", "-w", "never-[2-4]", "--time=10")
    cluster.wait_for(lambda: (cluster.job_state(job), cluster.job(job)["Priority"]) == ("PENDING", "0"), 30, "the job to be held")
    comment = cluster.job(job)["AdminComment"]
    assert "3 nodes are wanted of nodeset never beside 2 of its static nodes, whose max_nodes is 4" in comment, comment
    small = site.submit("never", "-N1", "-w", "never-2")
    cluster.wait_for(lambda: "never-2" in site.used("never"), 60, "one that is not behind it")
    assert cluster.job_state(small) in ("CONFIGURING", "RUNNING")
