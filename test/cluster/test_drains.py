# SPDX-License-Identifier: GPL-2.0-or-later
"""What an admin says of a node outlives every power-down, on a real slurmctld: drains of dynamic and static nodes, an admin's
DOWN, and our own giving up; over restarts of slurmctld and of the sweeper. What slurmctld says of itself does not."""
import pytest

from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster
from sweeper_site import Moment

WHY = "fan (bay 3), ask ann"
ENDLESS = {"SuspendTime": "INFINITE"}
NODESETS = [
    Nodeset("dyn", 6, partition={"SuspendTime": "14", "SuspendTimeout": "4"}),
    Nodeset("ill", 1, {"repair_reasons": ["xid"], "max_repairs": 1}, {"SuspendTime": "14", "SuspendTimeout": "4"}),
    Nodeset("fixed", 3, {"static_nodes": "fixed-[0-2]"}, ENDLESS),
]


class Site:
    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator")
        # With ReturnToService=2 slurmctld takes a DOWN away as soon as slurmd registers again.
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, sweeper=True, name="drains",
                               slurm_extra=["ReturnToService=0"])

    @property
    def now(self):
        return Moment(self.cluster)

    def until(self, condition, seconds, what):
        return self.cluster.wait_for(lambda: condition(self.now), seconds, what, interval=0.3)

    def update(self, node, state, **more):
        self.cluster.scontrol("update", f"nodename={node}", f"state={state}", *[f"{key}={value}" for key, value in more.items()])

    def bring_up(self, *nodes):
        for node in nodes:
            self.update(node, "power_up")
        self.until(lambda now: now.is_up(*nodes), 60, f"{nodes} to be up")

    def drain(self, node, why=WHY):
        self.update(node, "drain", reason=why)
        self.rounds(3)

    def rounds(self, count):
        """The sweeper has looked so many times: it writes status.json after each."""
        for _ in range(count):
            before = self._written()
            self.cluster.wait_for(lambda: self._written() != before, 40, "a round of the sweeper")  # noqa: B023

    def _written(self):
        path = self.cluster.sweeper_dir / "status.json"
        return path.stat().st_mtime_ns if path.exists() else 0

    def restart_all(self, forget=True):
        """slurmctld and the sweeper, whose memory is lost."""
        self.cluster.stop_sweeper()
        if forget:
            (self.cluster.sweeper_dir / "memory.json").unlink(missing_ok=True)
        self.cluster.restart_slurmctld()
        self.cluster.start_sweeper()

    def inserts(self, node):
        """Requests that were made for the node."""
        return [call["body"]["name"] for call in self.emulator.calls("resizeRequests.insert")
                if any(each["name"] == node for each in call["body"]["instances"])]

    def is_noted(self, node):
        return "drained=" in self.now.nodes[node].get("Extra", "")


def is_drained_and_off(now, node, why=WHY):
    return ({"IDLE", "DRAIN", "POWERED_DOWN"} <= now.words(node) and "POWERING_DOWN" not in now.words(node)
            and now.reason(node).startswith(why))


def is_quite_off(now, node):
    return ({"IDLE", "POWERED_DOWN"} <= now.words(node)
            and not now.words(node) & {"DRAIN", "POWERING_DOWN", "POWER_DOWN", "POWER_UP", "POWERING_UP"})


@pytest.fixture(scope="module")
def site(build):
    made = Site(build)
    with made.cluster:
        made.until(lambda now: now.is_up("fixed-0", "fixed-1", "fixed-2"), 60, "the static nodes")
        yield made


# Drains of dynamic nodes

def test_slurmctlds_own_power_down_costs_no_drain(site):
    site.bring_up("dyn-0")
    site.drain("dyn-0")
    job = site.cluster.sbatch("-p", "dyn", "-w", "dyn-0", "--time=1")
    site.until(lambda now: "POWERING_DOWN" in now.words("dyn-0"), 60, "slurmctld to suspend the node")
    site.until(lambda now: is_drained_and_off(now, "dyn-0"), 30, "the drain to be back")
    site.rounds(3)
    assert site.now.state(job) == "PENDING"
    # An admin's undrain while the node is off stands.
    site.update("dyn-0", "idle")
    site.until(lambda now: now.state(job) in ("CONFIGURING", "RUNNING", "COMPLETED"), 60, "the job to get the node")
    site.until(lambda now: now.state(job) == "COMPLETED" and is_quite_off(now, "dyn-0"), 90, "the node to be off again")
    site.rounds(3)
    assert is_quite_off(site.now, "dyn-0") and not site.is_noted("dyn-0")


def test_a_drain_outlives_the_restarts_and_a_lost_memory(site):
    site.bring_up("dyn-1")
    site.drain("dyn-1")
    site.cluster.stop_sweeper()
    site.until(lambda now: {"IDLE", "POWERED_DOWN"} <= now.words("dyn-1") and "DRAIN" not in now.words("dyn-1"), 60,
               "slurmctld to take the drain away")
    site.restart_all()
    site.until(lambda now: is_drained_and_off(now, "dyn-1"), 30, "the drain to be back")
    # Off, too, an admin's power-down costs nothing.
    site.update("dyn-1", "power_down")
    site.until(lambda now: "POWERING_DOWN" in now.words("dyn-1"), 20, "slurmctld to begin")
    site.until(lambda now: is_drained_and_off(now, "dyn-1"), 30, "the drain to be back")
    # Before 23.11 a power-up takes the reason.
    site.update("dyn-1", "power_up")
    site.until(lambda now: now.is_up("dyn-1") and "DRAIN" in now.words("dyn-1") and now.reason("dyn-1").startswith(WHY), 60,
               "the node to be up, drained for the same reason")


def test_an_undrain_while_the_sweeper_is_away_stands(site):
    site.bring_up("dyn-2", "dyn-3")
    site.drain("dyn-2")
    site.update("dyn-3", "drain", reason=WHY)
    site.until(lambda now: is_drained_and_off(now, "dyn-2") and is_drained_and_off(now, "dyn-3"), 60, "both to be off")
    site.bring_up("dyn-2")
    site.rounds(2)
    assert "DRAIN" in site.now.words("dyn-2") & site.now.words("dyn-3")
    site.cluster.stop_sweeper()
    site.update("dyn-2", "undrain")
    site.update("dyn-3", "resume")
    site.restart_all(forget=False)
    site.rounds(3)
    site.until(lambda now: is_quite_off(now, "dyn-2") and is_quite_off(now, "dyn-3"), 60, "both to be off")
    site.rounds(3)
    now = site.now
    assert is_quite_off(now, "dyn-2") and is_quite_off(now, "dyn-3"), (now.words("dyn-2"), now.words("dyn-3"))
    assert not site.is_noted("dyn-2") and not site.is_noted("dyn-3")


def test_a_node_that_was_given_up_on_stays_drained(site):
    gave_up = "flex: gave up after 1 repairs: Xid 79"
    site.bring_up("ill-0")
    site.update("ill-0", "drain", reason="Xid 79")
    site.until(lambda now: is_quite_off(now, "ill-0"), 60, "the repair")
    site.bring_up("ill-0")
    site.update("ill-0", "drain", reason="Xid 79")
    site.until(lambda now: now.reason("ill-0").startswith(gave_up), 30, "the sweeper to give up")
    site.until(lambda now: "POWERING_DOWN" in now.words("ill-0"), 60, "slurmctld to suspend the node")
    site.restart_all()
    site.until(lambda now: is_drained_and_off(now, "ill-0", gave_up), 40, "the drain to be back")
    job = site.cluster.sbatch("-p", "ill", "--time=1")
    site.rounds(4)
    assert site.now.state(job) == "PENDING" and is_drained_and_off(site.now, "ill-0", gave_up)
    site.cluster.scancel(job)


# What slurmctld says of itself

def test_power_down_asap_leaves_no_drain(site):
    """The job lets the sweeper see the drain for a while."""
    job = site.cluster.sbatch("-p", "fixed", "-w", "fixed-0", "--time=5", script="sleep 15")
    site.cluster.wait_job(job, "RUNNING")
    site.bring_up("dyn-4")
    before = site.inserts("fixed-0")
    for node in ("fixed-0", "dyn-4"):
        site.update(node, "power_down_asap")
    seen = site.now
    assert {"DRAIN", "POWER_DOWN"} <= seen.words("fixed-0") and seen.reason("fixed-0").startswith("POWER_DOWN_ASAP")
    site.rounds(3)
    site.until(lambda now: "POWERING_DOWN" in now.words("fixed-0"), 60, "the static node to go down")
    site.until(lambda now: is_quite_off(now, "dyn-4"), 60, "the dynamic node to be off")
    site.until(lambda now: now.is_up("fixed-0") and "DRAIN" not in now.words("fixed-0"), 60, "a new VM for the static node")
    assert len(site.inserts("fixed-0")) == len(before) + 1
    site.rounds(3)
    assert is_quite_off(site.now, "dyn-4") and not site.is_noted("dyn-4") and not site.is_noted("fixed-0")


# DOWN

def test_an_admins_down_of_a_static_node_outlives_its_vm(site):
    before = site.inserts("fixed-1")
    site.update("fixed-1", "down", reason=WHY)
    site.rounds(3)
    site.emulator.kill_instance("fixed-1")
    site.until(lambda now: is_drained_and_off(now, "fixed-1"), 60, "the node to be off and out of service")
    site.rounds(3)
    assert site.inserts("fixed-1") == before
    site.restart_all()
    site.rounds(4)
    assert is_drained_and_off(site.now, "fixed-1"), (site.now.words("fixed-1"), site.now.reason("fixed-1"))
    assert site.inserts("fixed-1") == before and "fixed-1" not in site.emulator.vms()
    site.update("fixed-1", "resume")
    site.until(lambda now: now.is_up("fixed-1") and "DRAIN" not in now.words("fixed-1"), 90, "the static node to be back")
    assert len(site.inserts("fixed-1")) == len(before) + 1


def test_an_admins_down_outlives_a_vm_that_goes_while_nobody_looks(site):
    site.update("fixed-2", "down", reason=WHY)
    site.rounds(3)
    site.cluster.stop_sweeper()
    before = site.inserts("fixed-2")
    site.emulator.kill_instance("fixed-2")
    site.restart_all()
    site.until(lambda now: is_drained_and_off(now, "fixed-2"), 60, "the node to be off and out of service")
    site.rounds(3)
    assert site.inserts("fixed-2") == before
