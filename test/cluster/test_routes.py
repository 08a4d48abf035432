# SPDX-License-Identifier: GPL-2.0-or-later
"""Ways to get VMs that cannot be taken, were changed, fail or are not wanted: on a real slurmctld, with rounds of the sweeper by hand.

Zones c and d never have room. The first tests need nodes that no round has powered up."""
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION
from sweeper_desk import GROUP, INSERT, LATE, Desk

NEVER = {"code": "QUEUING_INFEASIBLE_NO_CAPACITY", "message": "The zone has none of these machines."}
NO_TYPE = {"code": "INVALID_MACHINE_TYPE", "message": "Machine type a3-ultragpu-8g is not supported in this zone."}
WEEK = 7 * 24 * 3600
SLOW = 15000  # ms that Google takes to delete VMs


def zones(letters):
    return {"zones": [f"{REGION}-{letter}" for letter in letters]}


ELSEWHERE = {**zones("c"), "on_stockout": [{"wait": "1h", **zones("d")}]}
NODESETS = [
    Nodeset("never", 1, ELSEWHERE, boots=False),
    Nodeset("notype", 1, ELSEWHERE, boots=False),
    Nodeset("onelane", 1, {**zones("cd"), "race": 2, "retry": {"base": "1s", "max": "1s"}}, boots=False),
    Nodeset("kept", 2, {**zones("c"), "static_nodes": "kept-0"}, boots=False),
    Nodeset("moved", 2, zones("c"), boots=False),
    Nodeset("names", 10, zones("a"), boots=False),
    Nodeset("renew", 1, {**zones("c"), "resubmit_after": "2s", "retry": {"base": "1h", "max": "1h"}}, boots=False),
    Nodeset("full", 1, {**zones("c"), "resubmit_after": "2s", "retry": {"base": "1h", "max": "1h"}}, boots=False),
    Nodeset("loose", 3, {**zones("c"), "mode": "bulk_insert", "static_nodes": "loose-[0-2]",
                         "retry": {"base": "1h", "max": "1h"}}, boots=False),
    Nodeset("mode", 1, {**zones("a"), "mode": "bulk_insert"}, boots=False),
    Nodeset("lanes", 1, {**zones("cd"), "race": 2, "retry": {"base": "1s", "max": "1s"}}, boots=False),
    Nodeset("both", 1, {**zones("cd"), "race": 2, "retry": {"base": "1s", "max": "1s"}}, boots=False),
    Nodeset("steps", 1, {**zones("c"), "on_stockout": [{"wait": "1s", **zones("d")}, {"wait": "6s", **zones("b")}]}, boots=False),
]
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "1h", "empty_mig_grace": "1s", "listen": "127.0.0.1:0",
                        "finished_request_grace": "1h"}}


class Routes(Desk):
    """A desk with flexctl on it."""

    def __init__(self, build):
        super().__init__(build, NODESETS, SETTINGS, {f"{REGION}-d": 0})
        self.emulator.settings["regions"] = {REGION: [f"{REGION}-{letter}" for letter in "abcd"]}
        self.flexctl_source = build / "ctl" / "flexctl"

    def flexctl(self, *arguments):
        cluster = self.cluster
        program = cluster.sandbox.install(self.flexctl_source)
        # status ends with 1: no sweeper runs between the rounds.
        return cluster.sandbox.run([program, *arguments], env=cluster.env(), timeout=60, check=arguments[0] != "status").stdout

    def active(self, node):
        return [request for request in self.emulator.requests() if request.is_active and node in request.nodes]

    def inserts(self, job):
        return [call for call in self.emulator.calls("resizeRequests.insert") if call["body"]["name"].startswith(f"j{job}-")]

    def change(self, nodeset, **settings):
        config = {**self.cluster.flex_config, "nodesets": dict(self.cluster.flex_config["nodesets"])}
        config["nodesets"][nodeset] = {**config["nodesets"][nodeset], **settings}
        self.cluster.write_flex_config(config)

    def round(self, code=None):
        """Static nodes that are refused make a round fail."""
        done = self.cluster.sweep()
        assert done.returncode in (0, 1), f"exit {done.returncode}\n{done.stderr}"
        return self.now

    def few_rounds(self, count):
        for _ in range(count):
            time.sleep(1.1)
            self.round()
            self.emulator.wait(operations=0)


@pytest.fixture(scope="module")
def desk(build):
    desk = Routes(build)
    with desk.cluster:
        yield desk


@pytest.fixture(autouse=True)
def faultless(desk):
    yield
    desk.emulator.clear_faults()


def wait_active(desk, node, count=1):
    desk.cluster.wait_for(lambda: len(desk.active(node)) == count, 60, f"{count} requests for {node}")
    return desk.active(node)


def test_a_static_node_that_a_job_lands_on_has_a_long_request_of_its_own(desk):
    desk.submit("kept", "-N2")
    desk.cluster.wait_for(lambda: desk.active("kept-0") and desk.active("kept-1"), 60, "both nodes to be asked for")
    found = [(request.nodes, request.seconds) for node in ("kept-0", "kept-1") for request in desk.active(node)]
    assert found == [(["kept-0"], WEEK), (["kept-1"], 1500)]


def test_a_zone_that_flex_resume_is_refused_in_for_good_is_stepped_over(desk):
    desk.emulator.fault(GROUP, "operation_error", **NO_TYPE)
    job = desk.submit("notype")
    [request] = wait_active(desk, "notype-0")
    assert request.group == "desk-notype-s1"
    assert desk.cluster.job_state(job) == "CONFIGURING"
    assert "event=zone_cannot_serve" in desk.cluster.log("flex-resume.log")


def test_a_zone_that_can_never_serve_takes_the_next_step_at_once(desk):
    desk.emulator.fault(INSERT, "request_failed", **NEVER)
    job = desk.asked("never")
    desk.rounds(lambda now: [request.group for request in desk.active("never-0")] == ["desk-never-s1"], most=3)
    record = desk.cluster.job(job)
    assert (record["JobState"], record["Restarts"]) == ("CONFIGURING", "0"), record


def test_after_the_last_step_the_job_is_held(desk):
    """The only request that is out is that of the last step."""
    [request] = desk.active("never-0")
    path = f"regions/{REGION}/instanceGroupManagers/{request.group}/resizeRequests/{request.name}/cancel"
    desk.emulator.fault(INSERT, "request_failed", **NEVER)
    desk.emulator.api("POST", path)
    job = int(request.name.split("-")[0][1:])
    desk.rounds(lambda now: "held" in desk.cluster.job(job).get("Reason", ""), most=6, apart=0.5)
    assert "QUEUING_INFEASIBLE_NO_CAPACITY" in desk.cluster.job(job)["AdminComment"]


def test_a_zone_of_a_race_that_can_never_serve_is_not_asked_again(desk):
    desk.emulator.fault(INSERT, "request_failed", **NEVER)
    job = desk.asked("onelane")
    desk.emulator.wait(operations=0)
    wait_active(desk, "onelane-0")
    desk.few_rounds(5)
    assert len(desk.inserts(job)) == 2, desk.inserts(job)
    assert len(desk.active("onelane-0")) == 1
    assert desk.cluster.job_state(job) == "CONFIGURING"


def test_after_the_zones_have_changed_the_next_job_is_asked_for_in_the_new_ones(desk):
    first = desk.submit("moved", "-w", "moved-0")
    wait_active(desk, "moved-0")
    desk.change("moved", **zones("d"))
    planned = desk.flexctl("plan", "--nodes", "moved-1", "--time", "10")
    desk.submit("moved", "-w", "moved-1")
    [request] = wait_active(desk, "moved-1")
    [old] = desk.active("moved-0")
    body = {call["body"]["name"]: call["body"] for call in desk.emulator.calls("regionInstanceGroupManagers.insert")}
    used = [zone["zone"].rpartition("/")[2] for zone in body[request.group]["distributionPolicy"]["zones"]]
    assert (old.group, used) == ("desk-moved", [f"{REGION}-d"])
    assert re.fullmatch(r"desk-moved-c[0-9a-z]{6}", request.group) and request.group in planned
    # The old group goes when it is empty, though others of the nodeset wait.
    desk.cluster.scancel(first)
    desk.rounds(lambda now: "desk-moved" not in desk.emulator.groups(), most=8, apart=1)
    assert desk.active("moved-1")


def test_names_that_are_being_deleted_are_looked_for_once_a_group(desk):
    cluster, emulator = desk.cluster, desk.emulator
    nodes = cluster.nodesets["names"].nodes
    cluster.scontrol("update", "nodename=names-[0-9]", "state=power_up")
    cluster.wait_for(lambda: set(nodes) <= set(emulator.vms()), 60, "the VMs")
    emulator.config(operation_by_method={"regionInstanceGroupManagers.deleteInstances": SLOW})
    cluster.give_back(*nodes)
    cluster.wait_for(lambda: emulator.calls("deleteInstances"), 30, "their deletion")
    cluster.wait_off(*nodes)
    since = max(call["seq"] for call in emulator.journal())
    cluster.scontrol("update", "nodename=names-[0-9]", "state=power_up")
    cluster.wait_for(lambda: len(emulator.calls("resizeRequests.insert", since)) == len(nodes), 60, "the new requests")
    lists = emulator.calls("regionInstanceGroupManagers.listManagedInstances", since)
    emulator.config(operation_by_method={"regionInstanceGroupManagers.deleteInstances": None})
    assert len(lists) <= 2 + SLOW / 1000 + 4, len(lists)


def test_a_renewal_that_failed_is_not_made_again_at_once_and_its_author_is_told(desk):
    job = desk.submit("renew")
    wait_active(desk, "renew-0")
    desk.emulator.fault(INSERT, "request_failed", count=9, **LATE)
    desk.few_rounds(8)
    assert len(desk.inserts(job)) == 2, [call["body"]["name"] for call in desk.inserts(job)]
    assert len(desk.active("renew-0")) == 1
    assert "another request for them failed: " in desk.cluster.job(job)["AdminComment"]


def test_a_renewal_that_is_refused_for_the_quota_is_not_tried_each_round(desk):
    job = desk.submit("full")
    wait_active(desk, "full-0")
    active = [request for request in desk.emulator.requests() if request.is_active]
    desk.emulator.config(quota={"ACTIVE_RESIZE_REQUESTS": len(active)})
    desk.few_rounds(6)
    desk.emulator.config(quota={"ACTIVE_RESIZE_REQUESTS": 100})
    assert len(desk.inserts(job)) == 2, [(call["body"]["name"], call["status"]) for call in desk.inserts(job)]


def test_static_nodes_that_bulk_insert_refuses_all_wait_for_the_pause(desk):
    cluster, emulator = desk.cluster, desk.emulator
    # An earlier round has powered them up.
    desk.rounds(lambda now: "POWERING_UP" in cluster.node_state("loose-0"), most=10, apart=1)
    desk.few_rounds(5)
    calls = [call["body"] for call in emulator.calls("regionInstances.bulkInsert") if "loose-" in str(call["body"])]
    # flex-resume's, and the sweeper's first.
    assert len(calls) == 2, calls


def test_a_vm_is_found_whatever_mode_has_made_it(desk):
    cluster, emulator = desk.cluster, desk.emulator
    job = desk.submit("mode")
    cluster.wait_for(lambda: emulator.vms().get("mode-0") == "RUNNING", 60, "the VM")
    desk.change("mode", mode="queued")
    cluster.scancel(job)
    cluster.give_back("mode-0")
    cluster.wait_for(lambda: "mode-0" in cluster.log("flex-suspend.log"), 30, "flex-suspend")
    cluster.wait_for(lambda: "mode-0" not in emulator.vms(), 15, "the VM to go")
    assert not re.search(r"event=already_gone.*mode-0", cluster.log("flex-suspend.log"))


def test_a_cancelled_zone_of_a_race_stays_cancelled(desk):
    job = desk.submit("lanes")
    lanes = {request.group: request for request in wait_active(desk, "lanes-0", 2)}
    desk.emulator.wait(operations=0)
    gone = lanes["desk-lanes-zc"]
    said = desk.flexctl("cancel", f"{gone.group}/{gone.name}", "--yes")
    desk.few_rounds(6)
    assert [request.group for request in desk.active("lanes-0")] == ["desk-lanes-zd"]
    assert len(desk.inserts(job)) == 2
    assert f"nothing is asked for in group desk-lanes-zc again while job {job} waits" in said
    [way] = [way for way in json.loads(desk.flexctl("status", "--json"))["shut_ways"] if way["job"] == job]
    assert (way["group"], way["job"], way["nodes"], way["whole_wait"]) == ("desk-lanes-zc", job, "lanes-0", True), way
    assert f"request {gone.name} was cancelled by " in way["why"]
    assert re.search(rf"SHUT WAYS\n(?:  .*\n)*?  desk-lanes-zc +job {job} +1 +lanes-0 +as long as it waits +request {gone.name}",
                     desk.flexctl("status", "--all"))
    # Another wait is another one.
    desk.cluster.slurm("scontrol", "requeue", str(job))
    desk.cluster.give_back("lanes-0")
    desk.rounds(lambda now: not desk.active("lanes-0"), most=8, apart=0.5)
    wait_active(desk, "lanes-0", 2)


def test_of_two_who_cancel_both_zones_at_once_the_second_holds_the_job(desk):
    job = desk.submit("both")
    lanes = wait_active(desk, "both-0", 2)
    desk.emulator.wait(operations=0)
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda lane: desk.flexctl("cancel", f"{lane.group}/{lane.name}", "--yes"), lanes))
    assert sum("other requests for these nodes go on" in text for text in said) == 1, said
    assert sum(f"job {job} is requeued and held" in text for text in said) == 1, said
    desk.few_rounds(3)
    assert desk.cluster.job(job)["Priority"] == "0"
    assert not desk.active("both-0") and len(desk.inserts(job)) == 2


def test_the_step_after_one_that_was_cancelled_comes_though_each_round_is_another_sweepers(desk):
    desk.submit("steps")
    wait_active(desk, "steps-0")
    desk.rounds(lambda now: "desk-steps-s1" in [request.group for request in desk.active("steps-0")], most=8, apart=1)
    [step] = [request for request in desk.active("steps-0") if request.group == "desk-steps-s1"]
    desk.flexctl("cancel", f"{step.group}/{step.name}", "--yes")
    desk.rounds(lambda now: "desk-steps-s2" in desk.emulator.groups(), most=15, apart=1)
    assert "desk-steps-s1" not in [request.group for request in desk.active("steps-0")]
