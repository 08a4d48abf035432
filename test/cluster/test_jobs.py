# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs on a real slurmctld: from sbatch to a request, VMs, the run, and back to nothing."""
import calendar
import re
import time

import pytest

CLUSTER = "flextest"


def group_of(nodeset):
    return f"{CLUSTER}-{nodeset}"


def hellos(text):
    return sorted(re.findall(r"hello from (\S+)", text))


def assert_gave_back(site, nodeset, nodes, timeout=60):
    """Nodes powered down, VMs deleted, the group's size 0."""
    site.cluster.wait_off(*nodes, timeout=timeout)
    site.cluster.wait_for(lambda: not set(nodes) & set(site.emulator.vms()), 15,
                          f"the VMs {nodes} to be deleted")
    site.cluster.wait_for(lambda: site.emulator.groups()[group_of(nodeset)]["target_size"] == 0, 15,
                          f"the group of {nodeset} to have size 0")


# All at once: first in the file, because the job must get its VMs before the next tick.

def test_four_nodes_wait_until_all_of_them_can_be_had(site):
    request = site.wait_accepted("all")
    assert request.nodes == site.cluster.nodesets["all"].nodes
    assert request.seconds == 20 * 60 + 15 * 60
    for _ in range(10):  # three VMs could be had all that time
        assert site.cluster.job(site.job["all"])["JobState"] == "CONFIGURING"
        assert not [name for name in site.emulator.vms() if name.startswith("all-")]
        time.sleep(0.2)
    assert site.request("all").estimate, "no estimate of the wait"
    granted = time.time()
    site.emulator.set_capacity(b=4)
    site.cluster.wait_for(lambda: site.request("all").state == "SUCCEEDED", 15, "all four VMs")
    assert {"all-0", "all-1", "all-2", "all-3"} <= set(site.emulator.vms())
    site.cluster.wait_job(site.job["all"], "COMPLETED")
    assert hellos(site.cluster.output(site.job["all"])) == ["all-0", "all-1", "all-2", "all-3"]
    started = site.cluster.job(site.job["all"])["StartTime"]
    assert calendar.timegm(time.strptime(started, "%Y-%m-%dT%H:%M:%S")) >= int(granted)


# Requests

@pytest.mark.parametrize("name, seconds", [
    ("4h", 4 * 3600 + 900), ("5min", 1200), ("default", 600 + 900), ("8d", 7 * 86400),
    ("none", 7 * 86400), ("unlimited", 7 * 86400), ("bare", 600), ("one", 15300)])
def test_time_limit_becomes_the_run_duration(site, name, seconds):
    assert site.request(name).seconds == seconds


def test_a_time_limit_above_seven_days_is_told_to_the_job(site):
    site.request("8d")
    comment = site.cluster.wait_for(lambda: site.cluster.job(site.job["8d"]).get("AdminComment"), 10,
                                    "the comment of the 8 day job")
    assert "8-00:00:00" in comment and "7-00:00:00" in comment


def test_a_time_limit_that_fits_is_not_commented(site):
    site.request("4h")
    assert not site.cluster.job(site.job["4h"]).get("AdminComment")


def test_nodes_of_no_nodeset_are_logged_and_left_alone(site):
    site.cluster.wait_for(
        lambda: re.search(r"foreign_nodes.*alien-0", site.cluster.log("flex-resume.log")), 30,
        "the log to name the foreign node")
    assert not [request for request in site.emulator.requests() if "alien-0" in request.nodes]
    assert site.cluster.job_state(site.job["alien"]) == "CONFIGURING"
    nodes = site.finish("alien")
    site.cluster.wait_off(*nodes)


def test_permanent_failure_holds_the_job_with_its_reason_and_frees_the_nodes(site):
    job = site.job["bad"]
    site.cluster.wait_for(lambda: "flex:" in site.cluster.job(job).get("AdminComment", ""), 30,
                          "the reason in AdminComment")
    site.cluster.wait_for(lambda: site.cluster.job_state(job) == "PENDING", 20, "the job to be requeued")
    record = site.cluster.job(job)
    assert "no VMs" in record["AdminComment"] and "missing-template" in record["AdminComment"]
    assert record["Reason"].startswith("JobHeld") or record["Priority"] == "0", record
    site.cluster.wait_off("bad-0", "bad-1")
    assert not site.emulator.requests(group_of("bad"))
    site.cluster.scancel(job)


def test_another_job_of_the_same_call_is_not_harmed_by_a_permanent_failure(site):
    assert site.request("beside_bad").seconds == 1200
    calls = re.findall(r"resumed.*", site.cluster.log("flex-resume.log"))
    assert any("bad-" in call and "one-" in call for call in calls), calls
    site.cluster.wait_job(site.job["beside_bad"], "COMPLETED")


# Cancelling

def test_giving_a_cancelled_job_back_cancels_exactly_its_request(site):
    left, right = site.wait_accepted("left"), site.wait_accepted("right")
    assert not set(left.nodes) & set(right.nodes)
    nodes = site.finish("left")
    assert sorted(nodes) == sorted(left.nodes)
    site.cluster.wait_for(lambda: site.request("left").state == "CANCELLED", 20, "its request's end")
    site.cluster.wait_off(*nodes)
    assert site.request("right").state == "ACCEPTED"
    assert site.cluster.job_state(site.job["right"]) == "CONFIGURING"
    cancels = [call["path"] for call in site.emulator.calls("resizeRequests.cancel")]
    assert len([path for path in cancels if left.name in path]) == 1
    assert not [path for path in cancels if right.name in path]


def test_resume_timeout_cancels_exactly_its_request_and_puts_the_node_back(site):
    slow = site.emulator.requests_of(site.job["slow"])[0]
    site.wait_accepted("steady")
    site.cluster.wait_for(
        lambda: [request for request in site.emulator.requests(group_of("slow"))
                 if request.name == slow.name and request.state == "CANCELLED"], 40,
        "the request to be cancelled after ResumeTimeout")
    site.cluster.wait_for(
        lambda: "ResumeTimeout" in site.cluster.job(site.job["slow"]).get("AdminComment", ""), 10,
        "the job to be told")
    site.cluster.wait_for(lambda: re.search(r"put_back.*slow-0", site.cluster.log("flex-resume-fail.log")),
                          10, "flex-resume-fail to put the node back")
    assert site.request("steady").state == "ACCEPTED"
    site.cluster.scancel(site.job["slow"])
    # Slurm may have begun the job's second try already: then its node is given back as well.
    site.cluster.wait_for(lambda: "POWERING_DOWN" not in site.cluster.node_state("slow-0"), 20,
                          "slow-0 to settle")
    if not site.cluster.is_off("slow-0"):
        site.cluster.give_back("slow-0")
    site.cluster.wait_off("slow-0")


# Runs

def test_one_node_boots_runs_the_job_and_is_deleted_when_idle(site):
    node = site.request("one").nodes[0]
    site.cluster.wait_job(site.job["one"], "COMPLETED")
    assert hellos(site.cluster.output(site.job["one"])) == [node]
    assert_gave_back(site, "one", [node])
    deleted = [call for call in site.emulator.calls("deleteInstances") if node in str(call["body"])]
    assert len(deleted) == 1 and deleted[0]["status"] == 200


def test_every_task_of_an_array_has_its_own_request(site):
    site.cluster.wait_for(lambda: len(site.emulator.requests(group_of("array"))) == 3, 30, "3 requests")
    tasks = site.cluster.jobs(site.job["array"])
    ids = sorted(int(task["JobId"]) for task in tasks)
    requests = site.emulator.requests(group_of("array"))
    assert sorted(int(request.name[1:].partition("-")[0]) for request in requests) == ids
    assert {request.seconds for request in requests} == {7 * 60 + 900}
    assert sorted(node for request in requests for node in request.nodes) == \
        ["array-0", "array-1", "array-2"]
    for number in range(3):
        site.cluster.wait_for(lambda n=number: hellos(site.cluster.output(f"{site.job['array']}-{n}")), 90,
                              f"task {number} to run")


def test_het_job_has_a_request_per_component_and_starts_with_all(site):
    first, second = site.job["het"], site.job["het"] + 1
    site.cluster.wait_for(lambda: site.emulator.requests_of(first) and site.emulator.requests_of(second),
                          30, "a request per component")
    assert site.emulator.requests_of(first)[0].nodes == ["het-0", "het-1"]
    assert site.emulator.requests_of(second)[0].nodes == ["het2-0"]
    site.cluster.wait_job(first, "COMPLETED")
    assert hellos(site.cluster.output(first)) == ["het-0", "het-1", "het2-0"]


def test_mig_scope_job_makes_a_group_for_the_job(site):
    request = site.request("own")
    assert request.group == f"{CLUSTER}-own-j{site.job['own']}"
    group = site.emulator.groups()[request.group]
    assert group["description"].startswith(f"slurm-flex-start cluster={CLUSTER} nodeset=own")
    site.cluster.wait_job(site.job["own"], "COMPLETED")
    assert_gave_back(site, f"own-j{site.job['own']}", request.nodes)


def test_two_jobs_on_one_node_share_a_vm_with_the_longest_duration(site):
    site.cluster.wait_for(lambda: site.emulator.requests(group_of("share")), 30, "the shared request")
    requests = site.emulator.requests(group_of("share"))
    assert [(request.nodes, request.seconds) for request in requests] == [(["share-0"], 30 * 60 + 900)]
    for name in ("share_short", "share_long"):
        site.cluster.wait_job(site.job[name], "COMPLETED")
    assert len(site.emulator.requests(group_of("share"))) == 1
    assert_gave_back(site, "share", ["share-0"])


# Restart

def test_a_queued_job_gets_its_vms_after_a_restart_of_slurmctld(site):
    before = site.wait_accepted("late")
    site.cluster.restart_slurmctld()
    assert site.cluster.job_state(site.job["late"]) == "CONFIGURING"
    assert [request.name for request in site.emulator.requests(group_of("late"))] == [before.name]
    site.emulator.set_capacity(f=2)
    site.cluster.wait_job(site.job["late"], "COMPLETED")
    assert hellos(site.cluster.output(site.job["late"])) == ["late-0", "late-1"]
    assert_gave_back(site, "late", ["late-0", "late-1"])
