# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs one by one (`individual`) and without a group (`bulk_insert`): the life of a job in each, one scene each."""
from harness.conf import Nodeset
from modes_site import BULK, HELLO, INDIVIDUAL, LEASE, NAME, ONCE_MORE, STAYS, zone, zones
from sweeper_site import pause, until

SHORT = {"instance_template": "short-template"}
NODESETS = [
    Nodeset("irun", 4, INDIVIDUAL),
    Nodeset("icancel", 3, {**INDIVIDUAL, **zones("d")}),
    Nodeset("ilease", 2, {**INDIVIDUAL, **SHORT}),
    Nodeset("iwait", 4, {**INDIVIDUAL, **zones("e")}),
    Nodeset("ikill", 4, INDIVIDUAL),
    Nodeset("ilate", 4, {**INDIVIDUAL, **zones("f"), "provision_timeout": "20s", "on_timeout": "hold"}),
    Nodeset("istatic", 2, {**INDIVIDUAL, "static_nodes": "istatic-[0-1]"}, STAYS),
    Nodeset("qkill", 4, zones("a")),
    Nodeset("brun", 4, BULK),
    Nodeset("btimes", 3, BULK),
    Nodeset("bshort", 1, {**BULK, **zones("c"), "dws_flex": {"max_run_duration": "30s"}}),
    Nodeset("bcancel", 2, {**BULK, **zones("g")}),
    Nodeset("blease", 2, {**BULK, "dws_flex": {"max_run_duration": f"{LEASE}s"}}),
    Nodeset("ball", 4, {**BULK, **zones("h")}),
    Nodeset("bkill", 4, BULK),
    Nodeset("blone", 1, BULK, STAYS),
    Nodeset("blate", 2, {**BULK, **zones("c"), "provision_timeout": "8s", "on_timeout": "hold"}),
    Nodeset("bstatic", 2, {**BULK, "static_nodes": "bstatic-[0-1]"}, STAYS),
]
CAPACITY = {"d": 0, "e": 3, "f": 2, "g": 0, "h": 3}


def hellos(stage, job):
    return sorted(line.rpartition(" ")[2] for line in stage.cluster.output(job).splitlines() if "hello from" in line)


# Runs

def runs_and_goes(nodeset, count=4):
    """A scene: a job of several nodes runs, its VMs are deleted, and nothing is left."""
    def scene(stage):
        nodes = stage.nodes(nodeset)
        job = stage.submit(nodeset, "-p", nodeset, f"-N{count}", "--time=10", script=HELLO)
        yield until(lambda now: now.has_vms(*nodes), 40, "its VMs")
        yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
        assert hellos(stage, job) == nodes
        assert stage.now.restarts(job) == 0
        yield until(lambda now: now.is_clean(nodeset, *nodes), 60, "everything of it to be gone")
        asked = stage.creates if nodeset.startswith("i") else stage.bulks
        # On a slow machine the sweeper asks at the same time as flex-resume: one finds the other's VMs there.
        assert all(1 <= len(asked(node)) <= 2 for node in nodes)
    return scene


def individual_group(stage):
    """What the group is made with."""
    yield until(lambda now: f"{NAME}-irun" in now.groups, 40, "the group")
    made = [call["body"] for call in stage.calls("regionInstanceGroupManagers.insert")
            if call["body"]["name"] == f"{NAME}-irun"]
    assert len(made) == 1
    assert made[0]["targetSizePolicy"] == {"mode": "INDIVIDUAL"}
    assert made[0]["targetSize"] == 0
    yield until(lambda now: stage.creates("irun-0"), 10, "its VMs to be asked for")
    call = stage.creates("irun-0")[0]
    assert [entry["name"] for entry in call["body"]["instances"]] == stage.nodes("irun")
    assert not stage.inserts("irun-0"), "a request as well"


def durations_in_bulk(stage):
    """Each job's own time, as in the call that asked for it; the VM ends then."""
    jobs = {minutes: stage.submit(f"btimes {minutes}", "-p", "btimes", "-N1", f"--time={minutes}")
            for minutes in (1, 30, 240)}
    short = stage.submit("bshort", "-p", "bshort", "-N1", "--time=10")
    yield until(lambda now: now.has_vms(*stage.nodes("btimes")) and stage.bulks("bshort-0"), 40, "four calls")
    seen = {}
    for node in stage.nodes("btimes"):
        body = stage.bulks(node)[0]["body"]
        properties = body["instanceProperties"]
        job = int(properties["description"].rpartition("job=")[2])
        assert properties["description"] == f"slurm-flex-start cluster={NAME} nodeset=btimes job={job}"
        assert int(body["count"]) == int(body["minCount"]) == 1
        assert body["locationPolicy"]["targetShape"] == "ANY_SINGLE_ZONE"
        seen[job] = int(properties["scheduling"]["maxRunDuration"]["seconds"])
        assert round(stage.now.vms[node]["run_seconds"]) == seen[job]
    assert seen == {job: minutes * 60 + 900 for minutes, job in jobs.items()}
    asked = stage.bulks("bshort-0")[0]["body"]["instanceProperties"]
    assert asked["scheduling"]["maxRunDuration"]["seconds"] == "30"
    yield until(lambda now: "flex:" in now.comment(short), 20, "the job whose VMs end too early to be told")
    stage.cluster.scancel(short)
    yield until(lambda now: all(now.state(job) == "COMPLETED" for job in jobs.values()), 100, "the jobs to run")


# Cancelled

def individual_cancelled(stage):
    """No room: its entries go out of the queue and its nodes off; the job beside it keeps its place."""
    left = stage.submit("icancel", "-p", "icancel", "-w", "icancel-[0-1]", "-N2", "--time=10")
    right = stage.submit("icancel right", "-p", "icancel", "-w", "icancel-2", "-N1", "--time=10")
    yield until(lambda now: all(now.waits_alone(node) for node in stage.nodes("icancel")), 40, "three entries")
    yield until(lambda now: "flex: waiting for" in now.comment(left), 30, "the job to be told that it waits")
    began = stage.now
    stage.cluster.scancel(left)
    yield until(lambda now: not now.entries("icancel-0", "icancel-1"), 30, "its entries to be taken out")
    yield until(lambda now: now.is_off("icancel-0", "icancel-1"), 30, "its nodes to be powered down")
    for now in stage.since(began):
        assert now.waits_alone("icancel-2") and now.state(right) == "CONFIGURING"
    stage.give(d=3)
    yield until(lambda now: now.has_vms("icancel-2"), 20, "the other job's VM")
    yield pause(3)
    assert stage.now.has_no_vm("icancel-0", "icancel-1")
    yield until(lambda now: now.state(right) == "COMPLETED", 100, "the other job to run")
    assert len(stage.creates("icancel-2")) == 1


def bulk_cancelled(stage):
    """No room: asked for again and again, and never again once the job is cancelled."""
    job = stage.submit("bcancel", "-p", "bcancel", "-N2", "--time=10")
    yield until(lambda now: len(stage.bulks("bcancel-0")) >= 2, 40, "it to be asked for again")
    yield until(lambda now: "flex:" in now.comment(job), 30, "the job to be told that it waits")
    stage.cluster.scancel(job)
    yield until(lambda now: now.is_off("bcancel-0", "bcancel-1"), 40, "its nodes to be powered down")
    asked = len(stage.bulks("bcancel-0"))
    stage.give(g=2)
    yield pause(6)
    assert stage.now.has_no_vm("bcancel-0", "bcancel-1")
    assert len(stage.bulks("bcancel-0")) == asked


# The end of a lease

def lease_ends(nodeset):
    """A scene: the VMs end under the job; it is requeued and finishes on new ones."""
    def scene(stage):
        nodes = stage.nodes(nodeset)
        job = stage.submit(nodeset, "-p", nodeset, "-N2", "--time=10", script=ONCE_MORE)
        yield until(lambda now: now.has_vms(*nodes), 40, "its VMs")
        first = {node: stage.now.vms[node]["created"] for node in nodes}
        assert {round(vm["run_seconds"]) for vm in stage.now.vms.values() if vm["name"] in nodes} == {LEASE}
        yield until(lambda now: now.state(job) == "RUNNING", 60, "the job to run")
        yield until(lambda now: not any(now.vms.get(node, {}).get("created") == first[node] for node in nodes),
                    LEASE + 20, "the leases to end")
        yield until(lambda now: now.restarts(job) == 1, 25, "the job to be requeued")
        assert "flex:" in stage.now.comment(job)
        yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run again")
        assert stage.now.restarts(job) == 1
        yield until(lambda now: now.is_clean(nodeset, *nodes), 60, "everything of it to be gone")
    return scene


# One of several is lost or does not come

def individual_lost_while_waiting(stage):
    """Three of four are there; one of them vanishes. All four come, and the job runs."""
    nodes = stage.nodes("iwait")
    job = stage.submit("iwait", "-p", "iwait", "-N4", "--time=10", script=HELLO)
    yield until(lambda now: sum(now.is_up(node) for node in nodes) == 3, 60, "three of its nodes to be up")
    assert stage.now.state(job) == "CONFIGURING"
    lost = next(node for node in nodes if stage.now.is_up(node))
    vm = stage.now.vms[lost]["created"]
    stage.emulator.kill_instance(lost)
    stage.give(e=-1)
    yield until(lambda now: now.has_vms(*nodes) and now.vms[lost]["created"] > vm, 90, "four VMs, one of them new")
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
    assert hellos(stage, job) == nodes


def lost_under_a_job(nodeset):
    """A scene: one of its four VMs vanishes under a running job; it runs again, on four VMs."""
    def scene(stage):
        nodes = stage.nodes(nodeset)
        job = stage.submit(nodeset, "-p", nodeset, "-N4", "--time=10", script=ONCE_MORE)
        yield until(lambda now: now.state(job) == "RUNNING", 100, "the job to run")
        stage.emulator.kill_instance(nodes[1])
        yield until(lambda now: now.restarts(job) == 1, 20, "the job to be requeued")
        assert nodes[1] in stage.now.comment(job)
        yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run again")
        assert stage.now.restarts(job) == 1
        yield until(lambda now: now.is_clean(nodeset, *nodes), 60, "everything of it to be gone")
    return scene


def only_bulk_vm_lost(stage):
    """The nodeset's only VM: that there is none left is no reason to doubt the look."""
    job = stage.submit("blone", "-p", "blone", "-N1", "--time=10", script=ONCE_MORE)
    yield until(lambda now: now.state(job) == "RUNNING", 100, "the job to run")
    stage.emulator.kill_instance("blone-0")
    yield until(lambda now: now.restarts(job) == 1, 20, "the job to be requeued")
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run again")


def bulk_all_or_nothing(stage):
    """Room for three of four: none is made. With room for four, all are, and the job runs."""
    nodes = stage.nodes("ball")
    job = stage.submit("ball", "-p", "ball", "-N4", "--time=10", script=HELLO)
    yield until(lambda now: len(stage.bulks("ball-0")) >= 3, 60, "it to be asked for again and again")
    body = stage.bulks("ball-0")[0]["body"]
    assert int(body["count"]) == int(body["minCount"]) == 4
    yield until(lambda now: zone("h") in now.comment(job) or "resources" in now.comment(job), 20,
                "the job to be told why it waits")
    assert stage.now.state(job) == "CONFIGURING"
    assert stage.log("does not have enough resources", "ball") or stage.log("RESOURCE_POOL_EXHAUSTED", "ball")
    for now in stage.history:
        assert len([node for node in nodes if now.copies(node)]) == 0
    stage.give(h=4)
    yield until(lambda now: now.has_vms(*nodes), 20, "its VMs")
    yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
    assert stage.now.restarts(job) == 0
    assert hellos(stage, job) == nodes


# Too late

def individual_timeout(stage):
    """Two of four came in time: the job is held and the two VMs are given back."""
    nodes = stage.nodes("ilate")
    job = stage.submit("ilate", "-p", "ilate", "-N4", "--time=10")
    yield until(lambda now: sum(bool(now.copies(node)) for node in nodes) == 2, 40, "two of its VMs")
    assert len([node for node in nodes if stage.now.waits_alone(node)]) == 2
    assert not stage.now.is_held(job)
    yield until(lambda now: now.is_held(job), 60, "the job to be held")
    assert "provision_timeout" in stage.now.comment(job)
    yield until(lambda now: now.is_clean("ilate", *nodes), 60, "everything of it to be gone")
    stage.give(f=4)
    yield pause(4)
    assert stage.now.is_clean("ilate", *nodes) and stage.now.is_held(job)
    stage.cluster.scancel(job)


def bulk_timeout(stage):
    nodes = stage.nodes("blate")
    job = stage.submit("blate", "-p", "blate", "-N2", "--time=10")
    yield until(lambda now: stage.bulks("blate-0"), 40, "it to be asked for")
    yield until(lambda now: now.is_held(job), 40, "the job to be held")
    assert "provision_timeout" in stage.now.comment(job)
    yield until(lambda now: now.is_off(*nodes), 30, "its nodes to be powered down")
    stage.cluster.scancel(job)


# Static nodes

def static_nodes(nodeset):
    """A scene: they are up without a job, and one that is lost comes back."""
    def scene(stage):
        nodes = stage.nodes(nodeset)
        yield until(lambda now: now.is_up(*nodes) and now.has_vms(*nodes), 60, "the static nodes to be up")
        vm = stage.now.vms[nodes[0]]["created"]
        stage.emulator.kill_instance(nodes[0])
        yield until(lambda now: now.has_vms(*nodes) and now.vms[nodes[0]]["created"] > vm and now.is_up(*nodes), 60,
                    "the lost one to come back")
        yield pause(5)
        assert stage.now.is_up(*nodes) and stage.now.has_vms(*nodes)
    return scene


SCENES = {
    "individual runs": runs_and_goes("irun"),
    "individual group": individual_group,
    "individual cancelled": individual_cancelled,
    "individual lease": lease_ends("ilease"),
    "individual lost while waiting": individual_lost_while_waiting,
    "individual lost": lost_under_a_job("ikill"),
    "individual timeout": individual_timeout,
    "individual static": static_nodes("istatic"),
    "queued lost": lost_under_a_job("qkill"),
    "bulk runs": runs_and_goes("brun"),
    "bulk durations": durations_in_bulk,
    "bulk cancelled": bulk_cancelled,
    "bulk lease": lease_ends("blease"),
    "bulk all or nothing": bulk_all_or_nothing,
    "bulk lost": lost_under_a_job("bkill"),
    "bulk only one lost": only_bulk_vm_lost,
    "bulk timeout": bulk_timeout,
    "bulk static": static_nodes("bstatic"),
}
