# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenes of the crash matrix: how things stand before, and what must be so in the end."""
from dataclasses import dataclass, field

REGION = "regions/us-central1"
GONE = 4711  # a job that slurmctld does not know
TEMPLATE = "projects/flex-test/global/instanceTemplates/flex-template"
INSERT = "regionInstanceGroupManagerResizeRequests.insert"


@dataclass
class Scene:
    """`side`: the nodes come up for one job ("up") or two ("pair"), or are powered down ("off")."""
    name: str
    program: str
    side: str
    size: int
    nodeset: dict = field(default_factory=dict)   # more keys of it in flex-start.yaml
    sweeper: dict = field(default_factory=dict)
    has_graces: bool = False                      # something must have been so for a second
    more_rounds: int = 0                          # that trouble may cost

    @property
    def is_sweeper(self):
        return self.program == "flex-sweeper"

    def prepare(self, stage):
        """Nothing is there."""

    def check(self, stage):
        return nothing_left(stage)


# Steps


def group_of(stage):
    name = f"flextest-{stage.nodeset.name}"
    return f"{name}-j{min(stage.jobs)}" if stage.scene.nodeset.get("mig_scope") == "job" else name


def make_group(stage):
    stage.emulator.api("POST", f"{REGION}/instanceGroupManagers", {
        "name": group_of(stage), "targetSize": 0, "versions": [{"instanceTemplate": TEMPLATE}],
        "description": f"slurm-flex-start cluster=flextest nodeset={stage.nodeset.name}",
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": "zones/us-central1-a"}]},
        "updatePolicy": {"instanceRedistributionType": "NONE"},
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}})
    stage.emulator.wait(operations=0)


def make_request(stage, name=f"j{GONE}-old", job=GONE):
    """A request for all nodes."""
    stage.emulator.api("POST", f"{REGION}/instanceGroupManagers/{group_of(stage)}/resizeRequests", {
        "name": name, "description": f"slurm-flex-start job={job} nodes={stage.nodeset.hostlist}",
        "instances": [{"name": node} for node in stage.nodes],
        "requestedRunDuration": {"seconds": str(stage.seconds)}})
    stage.emulator.wait(operations=0)


def make_vms(stage):
    make_group(stage)
    make_request(stage)
    stage.emulator.wait(running=len(stage.nodes))


# Checks


def groups_but(stage, allowed):
    return [f"group {name} is there" for name in stage.emulator.groups() if name not in allowed]


def entries(stage):
    """Names of all entries of all groups."""
    return [member["name"] for group in stage.emulator.groups().values() for member in group["members"]]


def all_asked_for_once(stage):
    """Every node has a VM or waits in a request; each job has one request, and there is nothing else."""
    requests = [request for request in stage.emulator.requests() if request.name != f"j{GONE}-old"]
    complaints = groups_but(stage, [group_of(stage)])
    asked = sorted((int(request.name[1:].partition("-")[0]), request.nodes) for request in requests)
    if asked != sorted(stage.jobs.items()):
        complaints.append(f"requests: {[(request.name, request.state, request.nodes) for request in requests]}")
    for request in requests:
        if request.seconds != stage.seconds:
            complaints.append(f"request {request.name} is for {request.seconds} s, not {stage.seconds}")
        if not request.is_active and request.state != "SUCCEEDED":
            complaints.append(f"request {request.name} is {request.state}")
    waiting = [node for request in requests if request.is_active for node in request.nodes]
    backed = sorted([*waiting, *[vm["name"] for vm in stage.emulator.state()["vms"]]])
    if backed != sorted(stage.nodes):
        complaints.append(f"nodes with a VM or in a request: {backed}")
    if sorted(entries(stage)) != sorted(stage.nodes):
        complaints.append(f"entries: {entries(stage)}")
    return complaints


def nothing_left(stage):
    """No VM, no entry, no request that may still bring one."""
    complaints = groups_but(stage, [group_of(stage)])
    complaints += [f"VM {name} is {status}" for name, status in stage.emulator.vms().items()]
    complaints += [f"entry {name} is there" for name in entries(stage)]
    complaints += [f"request {request.name} is {request.state}"
                   for request in stage.emulator.requests() if request.is_active]
    return complaints


# Scenes


class Asked(Scene):
    def check(self, stage):
        return all_asked_for_once(stage)


class NoRoom(Asked):
    """The request stays in Google's queue."""

    def prepare(self, stage):
        stage.emulator.set_capacity(a=0)


class DeadEntries(Asked):
    """The nodes' last VMs vanished and left their entries, which must go before the names are free."""

    def prepare(self, stage):
        make_vms(stage)
        for node in stage.nodes:
            stage.emulator.kill_instance(node)


class Running(Scene):
    def prepare(self, stage):
        make_vms(stage)


class Queued(Scene):
    def prepare(self, stage):
        stage.emulator.set_capacity(a=0)
        make_group(stage)
        make_request(stage)


class Remains(Scene):
    """An empty group, and a request in it that was cancelled."""

    def prepare(self, stage):
        Queued.prepare(self, stage)
        path = f"{REGION}/instanceGroupManagers/{group_of(stage)}/resizeRequests/j{GONE}-old/cancel"
        stage.emulator.api("POST", path)

    def check(self, stage):
        left = [f"request {request.name} is there" for request in stage.emulator.requests()]
        return nothing_left(stage) + groups_but(stage, []) + left


class Failed(Asked):
    """Google gave up on the job's request."""

    def prepare(self, stage):
        stage.emulator.fault(INSERT, "request_failed", code="LIMIT_EXCEEDED",
                             message="could not provision queued instances in the allocated time")
        make_group(stage)
        job = min(stage.jobs)
        make_request(stage, f"j{job}-failed", job)


class NeverBooted(Asked):
    """The VMs run, but no node registers; there is room for no other VM."""

    def prepare(self, stage):
        make_vms(stage)
        stage.emulator.set_capacity(a=0)


SIZES = (1, 4, 64)
SWEEPER = "flex-sweeper"
SCENES = [
    *[Asked(f"resume-{size}", "flex-resume", "up", size) for size in SIZES],
    NoRoom("resume-4-queued", "flex-resume", "up", 4),
    Asked("resume-2-jobs", "flex-resume", "pair", 4),
    Asked("resume-4-own-group", "flex-resume", "up", 4, {"mig_scope": "job"}),
    DeadEntries("resume-4-dead-entries", "flex-resume", "up", 4),
    *[Running(f"suspend-{size}", "flex-suspend", "off", size, has_graces=True) for size in SIZES],
    *[Queued(f"suspend-{size}-queued", "flex-suspend", "off", size) for size in SIZES],
    Asked("sweeper-unrequested", SWEEPER, "pair", 4),
    DeadEntries("sweeper-dead-entries", SWEEPER, "up", 4),
    Running("sweeper-orphans", SWEEPER, "off", 4, has_graces=True),
    Queued("sweeper-stale", SWEEPER, "off", 4),
    Remains("sweeper-remains", SWEEPER, "off", 4, has_graces=True,
            sweeper={"empty_mig_grace": "1s", "finished_request_grace": "1s"}),
    Failed("sweeper-failed", SWEEPER, "up", 4, {"retry": {"base": "1s"}}, has_graces=True),
    NeverBooted("sweeper-never-booted", SWEEPER, "up", 1, {"boot_timeout": "1s", "max_boot_failures": 100},
                has_graces=True),
]
