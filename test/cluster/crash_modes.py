# SPDX-License-Identifier: GPL-2.0-or-later
"""The crash matrix of the other ways to get VMs: one by one, without a group, close together, in several zones.

Zones a and b have room where the scene says so; a second VM of a name would be in the other zone and be seen.
"""
from crash_scenes import GONE, REGION, TEMPLATE, Scene, nothing_left
from harness.emulator import requests_in

AB = {"zones": ["us-central1-a", "us-central1-b"]}
INDIVIDUAL = {"mode": "individual", **AB}
BULK = {"mode": "bulk_insert", **AB, "retry": {"base": "1s", "max": "1s"}}
INDIVIDUAL_MARK = " kind=individual"
HOUR = 3600


# Steps

def base(stage):
    return f"flextest-{stage.nodeset.name}"


def mark(stage):
    return f"slurm-flex-start cluster=flextest nodeset={stage.nodeset.name}"


def job_of(stage):
    return min(stage.jobs, default=GONE)


def make_group(stage, name, zone="a", more="", **fields):
    stage.emulator.api("POST", f"{REGION}/instanceGroupManagers", {
        "name": name, "targetSize": 0, "versions": [{"instanceTemplate": TEMPLATE}],
        "description": mark(stage) + more,
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE",
                               "zones": [{"zone": f"zones/us-central1-{letter}"} for letter in zone]},
        "updatePolicy": {"instanceRedistributionType": "NONE"},
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}, **fields})
    stage.emulator.wait(operations=0)


def make_individual_group(stage):
    make_group(stage, base(stage), "ab", more=INDIVIDUAL_MARK, targetSizePolicy={"mode": "INDIVIDUAL"})


def make_individual(stage, room=-1):
    """All nodes wait, or have VMs, one by one."""
    stage.emulator.set_capacity(a=room, b=room)
    make_individual_group(stage)
    stage.emulator.api("POST", f"{REGION}/instanceGroupManagers/{base(stage)}/createInstances",
                       {"instances": [{"name": node} for node in stage.nodes]})
    stage.emulator.wait(operations=0)
    stage.emulator.wait(running=len(stage.nodes) if room else 0)


def make_bulk(stage):
    stage.emulator.api("POST", f"{REGION}/instances/bulkInsert", {
        "count": str(len(stage.nodes)), "sourceInstanceTemplate": TEMPLATE,
        "perInstanceProperties": {node: {"name": node} for node in stage.nodes},
        "locationPolicy": {"locations": {"zones/us-central1-a": {"preference": "ALLOW"}}},
        "instanceProperties": {"description": f"{mark(stage)} job={job_of(stage)}",
                               "scheduling": {"maxRunDuration": {"seconds": str(stage.seconds)}}}})
    stage.emulator.wait(running=len(stage.nodes))


def make_request(stage, group, way="", name="old"):
    """A request of the job, or of one that is gone, for all nodes."""
    job = job_of(stage)
    stage.emulator.api("POST", f"{REGION}/instanceGroupManagers/{group}/resizeRequests", {
        "name": f"j{job}-{name}", "description": f"slurm-flex-start job={job}{way} nodes={stage.nodeset.hostlist}",
        "instances": [{"name": node} for node in stage.nodes],
        "requestedRunDuration": {"seconds": str(stage.seconds)}})
    stage.emulator.wait(operations=0)


def make_policy(stage, name):
    stage.emulator.api("POST", f"{REGION}/resourcePolicies", {
        "name": name, "description": f"{mark(stage)} job={job_of(stage)}",
        "workloadPolicy": {"type": "HIGH_THROUGHPUT", "maxTopologyDistance": "BLOCK"}})
    stage.emulator.wait(operations=0)


# Checks

def state_complaints(stage, *, groups, vms, active=0, entries=None, policies=()):
    """`groups`: that may be there; `vms`: whether every node has one; `active`: requests that name every node."""
    state = stage.emulator.state()
    nodes = sorted(stage.nodes)
    complaints = [f"group {group['name']} is there" for group in state["groups"] if group["name"] not in groups]
    there = sorted(vm["name"] for vm in state["vms"])
    if there != (nodes if vms else []):
        complaints.append(f"VMs: {[(vm['name'], vm['zone'], vm['group'], vm['status']) for vm in state['vms']]}")
    requests = [request for request in requests_in(state) if request.is_active]
    if sorted(node for request in requests for node in request.nodes) != sorted(nodes * active):
        complaints.append(f"active: {[(request.group, request.name, request.nodes) for request in requests]}")
    if [request for request in requests if request.state == "CREATING"]:
        complaints.append("a request is still being created")
    listed = sorted(member["name"] for group in state["groups"] for member in group["members"])
    wanted = nodes * active if entries is None else nodes * entries
    if listed != sorted(wanted):
        complaints.append(f"entries: {listed}")
    made = [key.rpartition("/")[2] for key in state["policies"]]
    if sorted(made) != sorted(policies):
        complaints.append(f"policies: {made}")
    if len({vm["zone"] for vm in state["vms"]}) > 1:
        complaints.append("VMs in several zones")
    return complaints


# Scenes: one by one

class Individual(Scene):
    """Every node has an entry, and with room a VM."""
    room = -1

    def prepare(self, stage):
        stage.emulator.set_capacity(a=self.room, b=0)

    def check(self, stage):
        return state_complaints(stage, groups=[base(stage)], vms=self.room != 0, entries=1)


class IndividualNoRoom(Individual):
    room = 0


class IndividualDead(Individual):
    """The last VMs vanished and left their entries."""

    def prepare(self, stage):
        make_individual(stage)
        for node in stage.nodes:
            stage.emulator.kill_instance(node)


class IndividualSome(Individual):
    """Somebody has asked for the first one only."""

    def prepare(self, stage):
        make_individual_group(stage)
        stage.emulator.api("POST", f"{REGION}/instanceGroupManagers/{base(stage)}/createInstances",
                           {"instances": [{"name": stage.nodes[0]}]})
        stage.emulator.wait(running=1)


class IndividualOver(Scene):
    """Nobody wants them any more."""
    room = -1

    def prepare(self, stage):
        make_individual(stage, self.room)

    def check(self, stage):
        return nothing_left(stage)


class IndividualOverNoRoom(IndividualOver):
    room = 0


# Scenes: without a group

class Bulk(Scene):
    """Room for one set of VMs in each of two zones: asked for twice, there would be two."""

    def prepare(self, stage):
        stage.emulator.set_capacity(a=len(stage.nodes), b=len(stage.nodes))

    def check(self, stage):
        complaints = state_complaints(stage, groups=[], vms=True)
        for vm in stage.emulator.state()["vms"]:
            if round(vm.get("run_seconds", 0)) != stage.seconds:
                complaints.append(f"VM {vm['name']} is for {vm.get('run_seconds')} s")
        return complaints


class BulkSome(Bulk):
    """One VM has vanished."""

    def prepare(self, stage):
        Bulk.prepare(self, stage)
        make_bulk(stage)
        stage.emulator.kill_instance(stage.nodes[0])


class BulkOver(Scene):
    def prepare(self, stage):
        make_bulk(stage)


# Scenes: close together

class Placed(Scene):
    """A policy, a group of the same name and one request."""

    def names(self, stage):
        return [f"{base(stage)}-j{job}" for job in stage.jobs]

    def check(self, stage):
        return state_complaints(stage, groups=self.names(stage), vms=True, entries=1, policies=self.names(stage))


class PlacedRemains(Scene):
    """A group with its policy that nobody needs, and a policy whose group never came."""

    def prepare(self, stage):
        name = f"{base(stage)}-j{GONE}"
        for policy in (name, f"{base(stage)}-j{GONE + 1}"):
            make_policy(stage, policy)
        make_group(stage, name, more=f" job={GONE}", resourcePolicies={
            "workloadPolicy": f"projects/flex-test/{REGION}/resourcePolicies/{name}"})

    def check(self, stage):
        return state_complaints(stage, groups=[], vms=False)


# Scenes: several requests for the same nodes

class Race(Scene):
    """Both zones are full: each has its request."""
    room = 0

    def prepare(self, stage):
        stage.emulator.set_capacity(a=0, b=self.room)

    def lanes(self, stage):
        return [f"{base(stage)}-z{letter}" for letter in "ab"]

    def check(self, stage):
        if self.room:
            return state_complaints(stage, groups=self.lanes(stage), vms=True, entries=1)
        return state_complaints(stage, groups=self.lanes(stage), vms=False, active=2)


class RaceWon(Race):
    """The first zone is full: the second one's request is served, the first one's is cancelled."""
    room = -1


class RaceBothServed(RaceWon):
    """Both lanes have their VMs: one set is deleted."""

    def prepare(self, stage):
        stage.emulator.set_capacity(a=-1, b=-1)
        for letter, lane in zip("ab", self.lanes(stage)):
            make_group(stage, lane, letter)
            make_request(stage, lane, " race=1")
        stage.emulator.wait(running=2 * len(stage.nodes))


class RaceOneServed(RaceWon):
    """One lane has its VMs: the other's request is cancelled."""

    def prepare(self, stage):
        super().prepare(stage)
        for letter, lane in zip("ab", self.lanes(stage)):
            make_group(stage, lane, letter)
            make_request(stage, lane, " race=1")
        stage.emulator.wait(running=len(stage.nodes))


class RaceOver(Race):
    """Both lanes wait for nobody."""

    def prepare(self, stage):
        stage.emulator.set_capacity(a=0, b=0)
        for letter, lane in zip("ab", self.lanes(stage)):
            make_group(stage, lane, letter)
            make_request(stage, lane, " race=1")

    def check(self, stage):
        return state_complaints(stage, groups=self.lanes(stage), vms=False)


class Stockout(Scene):
    """It has waited for an hour in a full zone: the next step's zone has room."""
    room = -1

    def prepare(self, stage):
        stage.emulator.set_capacity(a=0, b=self.room)
        make_group(stage, base(stage))
        make_request(stage, base(stage))
        stage.emulator.advance(HOUR)

    def check(self, stage):
        return state_complaints(stage, groups=[base(stage), f"{base(stage)}-s1"], vms=True, entries=1)


class StockoutQueued(Stockout):
    """The next step's zone is full as well: it waits there and nowhere else."""
    room = 0

    def check(self, stage):
        complaints = state_complaints(stage, groups=[base(stage), f"{base(stage)}-s1"], vms=False, active=1)
        return complaints + [f"{request.name} waits in {request.group}" for request in stage.emulator.requests()
                             if request.is_active and not request.group.endswith("-s1")]


class StockoutIndividual(Stockout):
    """One by one, in the same full zone."""
    room = 0

    def check(self, stage):
        return state_complaints(stage, groups=[base(stage), f"{base(stage)}-s1"], vms=False, entries=1)


class StockoutBulk(Stockout):
    def prepare(self, stage):
        super().prepare(stage)
        stage.emulator.set_capacity(b=len(stage.nodes))

    def check(self, stage):
        return state_complaints(stage, groups=[base(stage)], vms=True)


class Resubmit(Scene):
    """It has waited for an hour: it is asked for again, in another group."""

    def prepare(self, stage):
        stage.emulator.set_capacity(a=0)
        make_group(stage, base(stage))
        make_request(stage, base(stage))
        stage.emulator.advance(HOUR)

    def check(self, stage):
        complaints = state_complaints(stage, groups=[base(stage), f"{base(stage)}-r"], vms=False, active=1)
        return complaints + [f"{request.name} of {request.group} is not renewed" for request in
                             stage.emulator.requests() if request.is_active and
                             "renewed=1" not in request.body["description"]]


class ResubmitServed(Resubmit):
    """The renewed one waits; there is room for both of them now."""

    def prepare(self, stage):
        super().prepare(stage)
        make_group(stage, f"{base(stage)}-r", "b")
        make_request(stage, f"{base(stage)}-r", " attempt=2 renewed=1", "new")
        stage.emulator.set_capacity(a=-1, b=-1)
        stage.emulator.wait(running=2 * len(stage.nodes))

    def check(self, stage):
        return state_complaints(stage, groups=[base(stage), f"{base(stage)}-r"], vms=True, entries=1)


SWEEPER = "flex-sweeper"
GRACES = {"has_graces": True, "sweeper": {"empty_mig_grace": "1s"}}
NEXT = {"zones": ["us-central1-a"], "on_stockout": [{"wait": "30m", "zones": ["us-central1-b"]}]}
TO_ONE = {"zones": ["us-central1-a"], "on_stockout": [{"wait": "30m", "mode": "individual"}]}
TO_BULK = {"zones": ["us-central1-a"], "retry": BULK["retry"],
           "on_stockout": [{"wait": "30m", "mode": "bulk_insert", "zones": ["us-central1-b"]}]}
RENEW = {"zones": ["us-central1-a"], "resubmit_after": "30m"}
RACE = {**AB, "race": 2, "retry": {"base": "1s", "max": "1s"}}
PLACED = {"placement": {"max_distance": 2}}
SCENES = [
    Individual("individual-resume", "flex-resume", "up", 4, INDIVIDUAL),
    IndividualNoRoom("individual-resume-queued", "flex-resume", "up", 4, INDIVIDUAL),
    IndividualDead("individual-resume-dead-entries", "flex-resume", "up", 4, INDIVIDUAL),
    IndividualOver("individual-suspend", "flex-suspend", "off", 4, INDIVIDUAL, has_graces=True),
    IndividualOverNoRoom("individual-suspend-queued", "flex-suspend", "off", 4, INDIVIDUAL, has_graces=True),
    Individual("individual-sweeper", SWEEPER, "pair", 4, INDIVIDUAL),
    IndividualDead("individual-sweeper-dead-entries", SWEEPER, "up", 4, INDIVIDUAL),
    IndividualSome("individual-sweeper-some", SWEEPER, "up", 4, INDIVIDUAL),
    IndividualOver("individual-sweeper-orphans", SWEEPER, "off", 4, INDIVIDUAL, has_graces=True),
    IndividualOverNoRoom("individual-sweeper-stale", SWEEPER, "off", 4, INDIVIDUAL, has_graces=True),
    Bulk("bulk-resume", "flex-resume", "up", 4, BULK),
    Bulk("bulk-resume-2-jobs", "flex-resume", "pair", 4, BULK),
    BulkOver("bulk-suspend", "flex-suspend", "off", 4, BULK, has_graces=True),
    Bulk("bulk-sweeper", SWEEPER, "up", 4, BULK, has_graces=True),
    BulkSome("bulk-sweeper-some", SWEEPER, "up", 4, BULK, has_graces=True),
    BulkOver("bulk-sweeper-orphans", SWEEPER, "off", 4, BULK, has_graces=True),
    Placed("placement-resume", "flex-resume", "up", 4, PLACED),
    Placed("placement-sweeper", SWEEPER, "up", 4, PLACED),
    PlacedRemains("placement-remains", SWEEPER, "off", 4, PLACED, **GRACES),
    Race("race-resume", "flex-resume", "up", 4, RACE, has_graces=True, more_rounds=1),
    Race("race-sweeper", SWEEPER, "up", 4, RACE, has_graces=True, more_rounds=2),
    RaceWon("race-won", SWEEPER, "up", 4, RACE, has_graces=True, more_rounds=3),
    RaceBothServed("race-both-served", SWEEPER, "up", 4, RACE, has_graces=True),
    RaceOneServed("race-one-served", SWEEPER, "up", 4, RACE),
    RaceOver("race-suspend", "flex-suspend", "off", 4, RACE),
    RaceOver("race-stale", SWEEPER, "off", 4, RACE),
    Stockout("stockout-zone", SWEEPER, "up", 4, NEXT),
    StockoutQueued("stockout-zone-queued", SWEEPER, "up", 4, NEXT),
    StockoutIndividual("stockout-individual", SWEEPER, "up", 4, TO_ONE),
    StockoutBulk("stockout-bulk", SWEEPER, "up", 4, TO_BULK, has_graces=True),
    Resubmit("resubmit", SWEEPER, "up", 4, RENEW),
    ResubmitServed("resubmit-both-served", SWEEPER, "up", 4, RENEW, has_graces=True),
]
