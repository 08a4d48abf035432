# SPDX-License-Identifier: GPL-2.0-or-later
"""What the sweeper's daemon does and leaves alone, on a real slurmctld: one scene each.

A scene's first step submits its jobs. Zone a has room for everything, c never has any, b has room for
one VM; f is given room by its scene. Zone d is where others have their VMs.
"""
import re

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_site import Stage, pause, until

NAME = "flextest"
A, B, C, F = ({"zones": [f"{REGION}-{letter}"]} for letter in "abcf")
STAYS = {"SuspendTime": "INFINITE", "OverSubscribe": "NO"}
EMPTY_GRACE, ORPHAN_GRACE, FINISHED_GRACE = 5, 4, 10
# Runs until its VM goes; the second time it is done at once.
ONCE_MORE = 'test -n "$SLURM_RESTART_COUNT" && exit 0; sleep 900'

NODESETS = [
    Nodeset("done", 1, A),
    Nodeset("cancel", 3, C),
    Nodeset("gone", 1, C),
    Nodeset("lost", 2, A),
    Nodeset("keep", 1, F, {"ResumeTimeout": "10"}),
    Nodeset("boot", 2, {**A, "boot_timeout": "5s", "max_boot_failures": 2}),
    Nodeset("kill", 1, A),
    Nodeset("idle", 1, A, STAYS),
    Nodeset("lease", 2, {**A, "run_duration_margin": 0}, STAYS),
    Nodeset("orphan", 2, A, STAYS),
    Nodeset("some", 2, {**B, "static_nodes": "some-[0-1]"}, STAYS),
    Nodeset("fixed", 4, {**A, "static_nodes": "fixed-[0-3]"}, STAYS),
    Nodeset("short", 1, {**A, "static_nodes": "short-0", "dws_flex": {"max_run_duration": "10m"}}, STAYS),
    Nodeset("alike", 2, C),
]
STATIC_UP = ["fixed-0", "fixed-1", "fixed-2", "short-0"]
# One scene makes leases run 200 times as fast: but for the shortest they are of days.
FLEX = {"defaults": {"zones": [f"{REGION}-a"], "run_duration_margin": "2d", "boot_timeout": "2h"},
        "sweeper": {"interval": "1s", "orphan_grace": f"{ORPHAN_GRACE}s", "listen": "127.0.0.1:0",
                    "empty_mig_grace": f"{EMPTY_GRACE}s", "finished_request_grace": f"{FINISHED_GRACE}s"}}
# VMs of these names run, but no slurmd starts on them.
SILENT = ["alike-0", "alike-1", "cancel-0", "cancel-1", "orphan-1"]


def make_stage(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator",
                        regions={REGION: [f"{REGION}-{letter}" for letter in "abcdf"]},
                        capacity={f"{REGION}-b": 1, f"{REGION}-c": 0, f"{REGION}-f": 0})
    return Stage(Cluster(NODESETS, build=build, emulator=emulator, flex_extra=FLEX, name=NAME))


def raise_curtain(stage):
    """Others' things first, then all jobs, then the sweeper."""
    cluster = stage.cluster
    cluster.set_no_boot(SILENT + ["boot-0", "boot-1"])
    make_foreign(stage.emulator)
    stage.foreign = foreign(stage.emulator)
    stage.journal_start = max(call["seq"] for call in stage.emulator.journal())
    cluster.scontrol("update", "nodename=fixed-3", "state=drain", "reason=broken")
    lose_resume(stage)
    stage.start(SCENES)
    cluster.start_sweeper()


def lose_resume(stage):
    """Nodes come up, and flex-resume dies before its first call."""
    cluster = stage.cluster
    wrapper = (cluster.dir / "bin" / "flex-resume").read_text(encoding="utf-8")
    cluster.sandbox.write("bin/flex-resume", "#!/bin/sh\nkill -KILL $$\n", 0o755)
    stage.submit("lost", "-p", "lost", "-N2", "--time=10")
    cluster.wait_for(lambda: all("POWERING_UP" in cluster.node_state(node) for node in ("lost-0", "lost-1")),
                     30, "lost-[0-1] to power up")
    cluster.sandbox.write("bin/flex-resume", wrapper, 0o755)


# Things of others

GROUPS = f"regions/{REGION}/instanceGroupManagers"
FOREIGN = {  # name: description, names of VMs
    f"{NAME}-cancel-old": ("made by hand", ["cancel-0", "alike-0"]),
    f"{NAME}-alike": ("", []),
    f"{NAME}-old": (f"slurm-flex-start cluster={NAME}old nodeset=done", []),
    f"{NAME}-x-cancel": (f"slurm-flex-start cluster={NAME}-x nodeset=cancel", ["cancel-1"]),
    f"{NAME}-x-done": (f"slurm-flex-start cluster={NAME}-x nodeset=done", []),
}


def ask(emulator, group, name, nodes):
    emulator.api("POST", f"{GROUPS}/{group}/resizeRequests",
                 {"name": name, "instances": [{"name": node} for node in nodes],
                  "requestedRunDuration": {"seconds": str(7 * 86400)}})


def make_foreign(emulator):
    """Groups with names like ours, one with a request in the queue; VMs with names like our nodes'."""
    for name, (description, _) in FOREIGN.items():
        zone = f"projects/flex-test/zones/{REGION}-{'c' if name.endswith('-x-done') else 'd'}"
        emulator.api("POST", GROUPS, {
            "name": name, "description": description, "baseInstanceName": "other", "targetSize": 0,
            "versions": [{"instanceTemplate": "projects/flex-test/global/instanceTemplates/flex-template"}],
            "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": zone}]},
            "updatePolicy": {"type": "OPPORTUNISTIC", "instanceRedistributionType": "NONE"},
            "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}})
    emulator.api("POST", f"zones/{REGION}-d/instances", {"name": "alike-1"})
    settle(emulator)
    for name, (_, nodes) in FOREIGN.items():
        if nodes:
            ask(emulator, name, "j7-0123456789", nodes)
    ask(emulator, f"{NAME}-x-done", "j8-0123456789", ["cancel-2"])
    settle(emulator)
    assert len(foreign(emulator)["vms"]) == 4


def settle(emulator):
    emulator.wait(operations=0)
    emulator.wait(running=len(emulator.vms()))


def foreign(emulator):
    """All that is not ours, without what passing time changes."""
    state = emulator.state()

    def plain(thing):
        return {key: value for key, value in thing.items()
                if key not in ("created", "ends", "finished", "last_attempt")}
    return {"groups": [plain(group) for group in state["groups"] if group["name"] in FOREIGN],
            "requests": [plain(request) for request in state["requests"] if request["group"] in FOREIGN],
            "vms": [plain(vm) for vm in state["vms"] if vm["zone"] == f"{REGION}-d"]}


# Requests

def cancelled_job(stage):
    """Its request and its nodes go; the job beside it keeps what it has."""
    left = stage.submit("left", "-p", "cancel", "-w", "cancel-[0-1]", "-N2", "--time=10")
    right = stage.submit("right", "-p", "cancel", "-w", "cancel-2", "-N1", "--time=10")
    yield until(lambda now: now.queued("cancel-0") and now.queued("cancel-2"), 40, "two queued requests")
    before = stage.now
    yield until(lambda now: now.state(left) == now.state(right) == "CONFIGURING" and now.comment(right)
                and now.comment(left), 30, "both jobs to be told that they wait")
    assert re.match(r"flex: waiting for 2 VMs in us-central1 since \d\d:\d\d \(attempt 1\)", stage.now.comment(left))
    stage.cluster.scancel(left)
    yield until(lambda now: not now.active("cancel-0"), 15, "the request of the cancelled job to be cancelled")
    yield until(lambda now: now.is_off("cancel-0", "cancel-1"), 30, "its nodes to be powered down")
    for now in stage.since(before):
        assert now.queued("cancel-2") == before.queued("cancel-2")
        assert "POWERING_UP" in now.words("cancel-2") and "IDLE" not in now.words("cancel-2")
        assert now.state(right) == "CONFIGURING"
    assert len(stage.inserts("cancel-2")) == 1
    cancels = [call["path"] for call in stage.emulator.calls("resizeRequests.cancel")]
    assert not [path for path in cancels if before.queued("cancel-2") in path]


def request_gone_behind_its_back(stage):
    job = stage.submit("gone", "-p", "gone", "-N1", "--time=10")
    first = yield until(lambda now: now.queued("gone-0"), 40, "a queued request")
    stage.emulator.api("POST", f"{GROUPS}/{NAME}-gone/resizeRequests/{first}/cancel")
    second = yield until(lambda now: now.queued("gone-0") not in ("", first) and now.queued("gone-0"), 20,
                         "the sweeper to ask again")
    assert second.startswith(f"j{job}-")
    yield pause(4)
    assert stage.now.queued("gone-0") == second
    assert len(stage.inserts("gone-0")) == 2
    assert all(now.state(job) == "CONFIGURING" for now in stage.history if now.queued("gone-0"))


def resume_that_died(stage):
    """All nodes of the job in one request, as flex-resume would have asked."""
    job = stage.job["lost"]
    yield until(lambda now: "lost-0" in now.vms and "lost-1" in now.vms, 30, "the sweeper to ask")
    yield until(lambda now: now.state(job) == "COMPLETED", 90, "the job to run")
    inserts = stage.inserts("lost-0")
    assert len(inserts) == 1
    assert inserts[0]["body"]["name"].startswith(f"j{job}-")
    assert [entry["name"] for entry in inserts[0]["body"]["instances"]] == ["lost-0", "lost-1"]
    assert stage.now.restarts(job) == 0


def many_resume_timeouts(stage):
    """A job waits four ResumeTimeouts and longer, with one request; then it starts."""
    job = stage.submit("keep", "-p", "keep", "-N1", "--time=10")
    name = yield until(lambda now: now.queued("keep-0"), 40, "a queued request")
    first = stage.now
    yield pause(43)
    waited = stage.since(first)
    assert len(waited) > 20
    assert {now.queued("keep-0") for now in waited} == {name}
    assert {now.state(job) for now in waited} == {"CONFIGURING"}
    assert not [now for now in waited if "DOWN" in now.words("keep-0")]
    assert "flex: waiting for 1 VM in us-central1 since" in stage.now.comment(job)
    stage.emulator.set_capacity(f=1)
    yield until(lambda now: "keep-0" in now.vms, 20, "its VM")
    yield until(lambda now: now.state(job) == "COMPLETED", 90, "the job to run")
    assert len(stage.inserts("keep-0")) == 1
    assert stage.now.restarts(job) == 0
    assert "keep-0" not in stage.cluster.log("flex-resume-fail.log")


# VMs

def vm_that_never_boots(stage):
    """Two boots that fail stop the nodeset; an admin starts it again, and the job runs."""
    cluster, nodes = stage.cluster, ("boot-0", "boot-1")
    job = stage.submit("boot", "-p", "boot", "-N1", "--time=10")

    def logs():
        return sorted((cluster.sweeper_dir / "serial").glob("boot-*.log"))

    yield until(lambda now: set(nodes) & set(now.vms), 40, "a VM")
    yield until(lambda now: logs(), 40, "the serial log of the first VM")
    yield until(lambda now: all("DRAIN" in now.words(node) for node in nodes), 60, "the nodeset to be stopped")
    stage.mark("boots failed")
    for node in nodes:
        assert stage.now.reason(node).startswith("flex: nodeset boot stopped"), stage.now.reason(node)
    assert len(logs()) == 2
    assert all(log.read_text(encoding="utf-8").strip() for log in logs())
    asked = len(stage.inserts("boot-0")) + len(stage.inserts("boot-1"))
    assert asked == 2
    yield pause(5)
    assert not set(nodes) & set(stage.now.vms)
    assert len(stage.inserts("boot-0")) + len(stage.inserts("boot-1")) == asked
    assert stage.now.state(job) in ("PENDING", "CONFIGURING")
    assert "flex:" in stage.now.comment(job)
    cluster.set_no_boot(SILENT)
    cluster.scontrol("update", "nodename=boot-1", "state=undrain")
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
    yield until(lambda now: not [node for node in nodes if "DRAIN" in now.words(node)], 20,
                "no node to stay drained")


def vm_lost_under_a_job(stage):
    """The job is requeued long before SlurmdTimeout (60 s), knows why, and runs on a new VM."""
    job = stage.submit("kill", "-p", "kill", "-N1", "--time=10", script=ONCE_MORE)
    yield until(lambda now: now.state(job) == "RUNNING", 90, "the job to run")
    stage.emulator.kill_instance("kill-0")
    yield until(lambda now: now.restarts(job) == 1, 20, "the job to be requeued")
    comment = stage.now.comment(job)
    assert "flex:" in comment and "kill-0" in comment, comment
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run again")
    assert stage.now.restarts(job) == 1
    assert len(stage.inserts("kill-0")) == 2


def vm_lost_under_an_idle_node(stage):
    job = stage.submit("idle", "-p", "idle", "-N1", "--time=10")
    yield until(lambda now: now.state(job) == "COMPLETED" and now.is_up("idle-0"), 90, "an idle node")
    lost = stage.now
    stage.emulator.kill_instance("idle-0")
    yield until(lambda now: now.is_off("idle-0"), 30, "the node to be powered down")
    assert not [now for now in stage.since(lost) if "DOWN" in now.words("idle-0")]
    yield until(lambda now: not now.groups.get(f"{NAME}-idle", {}).get("members"), 20, "its entry to be gone")
    assert len(stage.inserts("idle-0")) == 1


def lease_that_ends(stage):
    """The job is requeued and gets a new VM; the idle node beside it gets none."""
    job = stage.submit("lease", "-p", "lease", "-w", "lease-0", "-N1", "--time=10", script=ONCE_MORE)
    other = stage.submit("lease idle", "-p", "lease", "-w", "lease-1", "-N1", "--time=10")
    yield until(lambda now: now.state(job) == "RUNNING" and now.state(other) == "COMPLETED"
                and now.is_up("lease-1"), 90, "one node at work and one idle")
    yield until(lambda now: {"boots failed", "orphan gone", "statics up"} <= stage.marks, 90,
                "scenes that faster time would disturb")
    # 10 minutes become 3 s; the other leases, of days, are long even so.
    running = stage.now
    stage.emulator.config(time_factor=200)
    yield until(lambda now: not {"lease-0", "lease-1", "short-0"} & set(now.vms), 30, "the leases to end")
    stage.emulator.config(time_factor=1)
    stage.mark("leases over")
    yield until(lambda now: now.restarts(job) == 1, 20, "the job to be requeued")
    comment = stage.now.comment(job)
    assert "flex:" in comment and "lease-0" in comment and "run duration is over" in comment, comment
    yield until(lambda now: now.is_off("lease-1"), 30, "the idle node to be powered down")
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run again")
    assert not [now for now in stage.since(running) if "DOWN" in now.words("lease-1")]
    assert len(stage.inserts("lease-0")) == 2
    assert len(stage.inserts("lease-1")) == 1


def vm_that_nobody_wants(stage):
    """A VM in our group for a node that is powered down, beside one that is in use."""
    job = stage.submit("orphan", "-p", "orphan", "-w", "orphan-0", "-N1", "--time=1-0", script="sleep 3600")
    yield until(lambda now: "orphan-0" in now.vms, 40, "a VM that is wanted")
    ask(stage.emulator, f"{NAME}-orphan", "stray", ["orphan-1"])
    yield until(lambda now: "orphan-1" in now.vms, 20, "a VM that is not")
    began = stage.now
    yield until(lambda now: "orphan-1" not in now.vms, 40, "it to be deleted")
    stage.mark("orphan gone")
    assert stage.now.at - began.at >= ORPHAN_GRACE - 1
    assert stage.now.is_off("orphan-1")
    assert all(now.vms["orphan-0"]["status"] != "STOPPING" for now in stage.since(began))
    yield until(lambda now: now.state(job) == "RUNNING", 60, "the wanted one to be in use")
    yield until(lambda now: re.search(r"flex: VMs end 20\d\d-\d\d-\d\dT\d\d:\d\d", now.comment(job)), 90,
                "the job to be told when its VMs end")


# Static nodes

def static_nodes(stage):
    """Up without a job; a drained one is left alone until it is undrained."""
    yield until(lambda now: now.is_up(*STATIC_UP), 60, "the static nodes to be up")
    yield pause(5)
    stage.mark("statics up")
    assert stage.now.is_up(*STATIC_UP)
    assert all("POWERED_DOWN" in now.words("fixed-3") and "DRAIN" in now.words("fixed-3") for now in stage.history)
    assert not stage.inserts("fixed-3")
    assert [len(stage.inserts(node)) for node in STATIC_UP] == [1] * len(STATIC_UP)
    assert {len(call["body"]["instances"]) for node in STATIC_UP for call in stage.inserts(node)} == {1}
    stage.cluster.scontrol("update", "nodename=fixed-3", "state=undrain")
    yield until(lambda now: now.is_up("fixed-3"), 40, "the undrained one to come up")


def static_node_in_the_queue(stage):
    """The zone has room for one VM: the other node waits and blocks nothing."""
    yield until(lambda now: now.is_up("some-0") or now.is_up("some-1"), 60, "one of two to be up")
    waiting = "some-0" if stage.now.is_up("some-1") else "some-1"
    name = yield until(lambda now: now.queued(waiting), 20, "the other one to be in the queue")
    yield pause(10)
    assert stage.now.queued(waiting) == name


def static_node_comes_back_after(what, node):
    """A scene: it was up, `what` took it down, it is up again with a VM of its own."""
    def scene(stage):
        yield until(lambda now: "statics up" in stage.marks and now.is_up(node), 90, f"{node} to be up")
        vm = stage.now.vms[node]["created"]
        what(stage, node)
        yield until(lambda now: not now.is_up(node), 30, f"{node} to go")
        yield until(lambda now: now.is_up(node) and node in now.vms, 60, f"{node} to come back")
        assert stage.now.vms[node]["created"] > vm
        assert len(stage.inserts(node)) == 2
    return scene


def static_node_out_of_service(stage):
    """Drained and powered down, it stays so, though slurmctld forgets the drain; undrained, it comes back."""
    yield until(lambda now: "statics up" in stage.marks and now.is_up("fixed-2"), 90, "fixed-2 to be up")
    stage.cluster.scontrol("update", "nodename=fixed-2", "state=drain", "reason=new_memory")
    yield pause(3)
    power_down(stage, "fixed-2", reason="new_memory")
    yield until(lambda now: now.is_off("fixed-2") and "fixed-2" not in now.vms and "DRAIN" in now.words("fixed-2"), 60,
                "fixed-2 to be off and drained")
    yield pause(5)
    assert "POWERED_DOWN" in stage.now.words("fixed-2") and "new_memory" in stage.now.reason("fixed-2")
    assert len(stage.inserts("fixed-2")) == 1
    stage.cluster.scontrol("update", "nodename=fixed-2", "state=undrain")
    yield until(lambda now: now.is_up("fixed-2"), 60, "fixed-2 to come back")


def power_down(stage, node, reason="admin"):
    stage.cluster.scontrol("update", f"nodename={node}", "state=power_down", f"reason={reason}")


def static_lease_that_ends(stage):
    yield until(lambda now: "statics up" in stage.marks and now.is_up("short-0"), 90, "short-0 to be up")
    yield until(lambda now: "leases over" in stage.marks, 120, "the leases to end")
    yield until(lambda now: not now.is_up("short-0"), 30, "short-0 to go")
    yield until(lambda now: now.is_up("short-0") and "short-0" in now.vms, 60, "short-0 to come back")
    assert len(stage.inserts("short-0")) == 2


# Groups and requests

def empty_group(stage):
    """A group goes when it has been empty for its grace; one with a VM or a queued request stays."""
    job, group = stage.submit("done", "-p", "done", "-N1", "--time=10"), f"{NAME}-done"

    def is_empty(now):
        return group in now.groups and not now.groups[group]["members"]

    yield until(lambda now: group in now.groups and "done-0" in now.vms, 40, "a VM in the group")
    began = stage.now
    yield until(lambda now: now.state(job) == "COMPLETED", 90, "the job to run")
    yield until(lambda now: now.is_off("done-0") and "done-0" not in now.vms, 40, "its VM to be deleted")
    yield until(lambda now: group not in now.groups, 40, "the empty group to be deleted")
    # Looks are seconds apart on a slow machine: from the last one with a VM in it to the first one without the group.
    full = [now.at for now in stage.since(began) if group in now.groups and not is_empty(now)]
    gone = [now.at for now in stage.since(began) if group not in now.groups and now.at > full[-1]]
    assert gone[0] - full[-1] >= EMPTY_GRACE - 1.5
    for name in ("cancel", "gone", "fixed", "orphan"):
        assert f"{NAME}-{name}" in stage.now.groups


def finished_requests(stage):
    """A served request goes after its grace; its VM and the queued ones stay."""
    yield until(lambda now: "orphan-0" in now.vms and not now.active("orphan-0"), 60, "a served request")
    began = stage.now
    name = began.requests_for("orphan-0")[0].name
    queued = yield until(lambda now: now.queued("cancel-2"), 60, "a queued one")
    yield until(lambda now: name not in [request.name for request in now.requests], 60, "it to be deleted")
    assert stage.now.at - began.at >= FINISHED_GRACE - 2
    assert "orphan-0" in stage.now.vms
    assert stage.now.queued("cancel-2") == queued


SCENES = {
    "cancelled job": cancelled_job,
    "request gone": request_gone_behind_its_back,
    "resume died": resume_that_died,
    "keep waiting": many_resume_timeouts,
    "never boots": vm_that_never_boots,
    "vm lost": vm_lost_under_a_job,
    "idle vm lost": vm_lost_under_an_idle_node,
    "lease end": lease_that_ends,
    "unwanted vm": vm_that_nobody_wants,
    "static": static_nodes,
    "static queued": static_node_in_the_queue,
    "static vm lost": static_node_comes_back_after(
        lambda stage, node: stage.emulator.kill_instance(node), "fixed-0"),
    "static powered down": static_node_comes_back_after(power_down, "fixed-1"),
    "static out of service": static_node_out_of_service,
    "static lease end": static_lease_that_ends,
    "empty group": empty_group,
    "finished request": finished_requests,
}
