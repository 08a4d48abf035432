# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs that come and are of no use: slurmctld refuses them, they never boot, they hang; and what is remembered of them.

One cluster with a sweeper, and in the end rounds by hand.
"""
import re
import time

import pytest

from harness import procs
from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_desk import INSERT, LATE
from sweeper_site import Moment

NO_ROOM = {"zones": [f"{REGION}-c"]}
GRACE = 5  # of an empty group
TOO_MUCH = 50_000_000  # MiB that no machine has
ENDLESS = {"SuspendTime": "INFINITE"}

NODESETS = [
    Nodeset("unlucky", 1, {"boot_timeout": "3s", "max_boot_failures": 50, "retry": {"base": "1s", "limit": 3}}),
    Nodeset("small", 2, {"max_boot_failures": 2}, memory=TOO_MUCH),
    Nodeset("fixed", 2, {"static_nodes": "fixed-[0-1]", "boot_timeout": "4s", "max_repairs": 1}, ENDLESS),
    Nodeset("kept", 1, {"boot_timeout": "4s"}, ENDLESS),
    Nodeset("spare", 1, NO_ROOM),
]


class Site:
    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-c": 0})
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, sweeper=True, name="boots", quick_tick=False,
                               slurm_extra=["SlurmdTimeout=15"],
                               flex_extra={"sweeper": {"empty_mig_grace": f"{GRACE}s"}})

    @property
    def now(self):
        return Moment(self.cluster)

    def until(self, condition, seconds, what):
        return self.cluster.wait_for(lambda: condition(self.now), seconds, what, interval=0.3)

    def inserts(self, nodeset):
        """Requests that were made for the nodeset."""
        return [call["body"] for call in self.emulator.calls("resizeRequests.insert")
                if any(each["name"].startswith(f"{nodeset}-") for each in call["body"]["instances"])]

    def serial_logs(self, node):
        return sorted((self.cluster.sweeper_dir / "serial").glob(f"{node}*.log"))

    def vm_of(self, node):
        """Which one it is: when it was made."""
        return {vm["name"]: vm["created"] for vm in self.emulator.state()["vms"]}.get(node)

    def hang(self, node):
        """slurmd dies, the VM runs on."""
        procs.end(str(self.cluster.dir), vm=node)


@pytest.fixture(scope="module")
def site(build):
    site = Site(build)
    with site.cluster:
        site.cluster.set_no_boot(["unlucky-0"])
        yield site


def test_a_failure_is_one_whatever_number_its_name_has(site):
    """Two VMs that do not boot and one request that fails are one failure, not three."""
    job = site.cluster.sbatch("-p", "unlucky", "--time=10")
    site.until(lambda now: len(site.inserts("unlucky")) >= 2 and len(site.inserts("fixed")) == 2, 60,
               "the request after a failed boot")
    site.emulator.fault(INSERT, "request_failed", **LATE)

    def after_a_failure():
        return [body["description"] for body in site.inserts("unlucky") if " failures=1 " in body["description"]]

    site.until(lambda now: after_a_failure() or now.is_held(job), 90, "what comes after the failure")
    now = site.now
    assert not now.is_held(job), now.comment(job)
    # Its name had to be the fourth, at least.
    assert int(re.search(r" attempt=(\d+) ", after_a_failure()[0])[1]) >= 4, after_a_failure()
    site.cluster.scancel(job)


def test_what_slurmctld_refuses_is_a_failed_boot(site):
    """RealMemory of slurm.conf exceeds the VM's: two VMs, and then no more."""
    job = site.cluster.sbatch("-p", "small", "-N1", "--time=10")
    nodes = ("small-0", "small-1")
    site.until(lambda now: "slurmctld refuses the registration of small-" in now.comment(job), 60,
               "the author to be told")
    assert "Low RealMemory" in site.now.comment(job)
    site.until(lambda now: len(site.inserts("small")) > 2
               or all("DRAIN" in now.words(node) and now.is_off(node) for node in nodes), 120, "the nodeset to be stopped")
    now = site.now
    assert len(site.inserts("small")) == 2, now.comment(job)
    for node in nodes:
        reason = now.reason(node)
        assert reason.startswith("flex: nodeset small stopped: 2 boots in a row failed: slurmctld refuses"), reason
        assert re.search(r"Low RealMemory \(reported:.*lower RealMemory on the NodeName line of small-\d in slurm.conf",
                         reason), reason
    assert now.comment(job).startswith("flex: nodeset small is stopped: 2 boots in a row failed"), now.comment(job)
    assert "lower RealMemory on the NodeName line of small-" in now.comment(job)
    assert now.state(job) == "PENDING" and not now.is_held(job)
    assert not set(nodes) & set(now.vms)
    assert len(site.serial_logs("small-")) == 2
    assert "small" in str(site.cluster.sweeper_status()["nodesets"])


def test_a_static_node_that_hangs_gets_a_new_vm(site):
    """And one that an admin has set DOWN does not. After max_repairs it stays drained."""
    cluster = site.cluster
    site.until(lambda now: now.is_up("fixed-0", "fixed-1"), 90, "the static nodes")
    cluster.scontrol("update", "nodename=kept-0", "state=power_up")
    site.until(lambda now: now.is_up("kept-0"), 60, "the other node")
    first = {node: site.vm_of(node) for node in ("fixed-0", "fixed-1", "kept-0")}
    cluster.scontrol("update", "nodename=fixed-1", "state=down", "reason=moved")
    for node in first:
        site.hang(node)
    site.until(lambda now: now.is_up("fixed-0") and site.vm_of("fixed-0") not in (None, first["fixed-0"]), 200,
               "a new VM, when slurmctld has missed slurmd for SlurmdTimeout and boot_timeout is over")
    site.until(lambda now: now.is_off("kept-0") and "kept-0" not in now.vms, 90, "the hung VM to go")
    assert site.serial_logs("fixed-0") and site.serial_logs("kept-0")
    # The admin's own.
    now = site.now
    assert site.vm_of("fixed-1") == first["fixed-1"] and now.reason("fixed-1").startswith("moved")
    second = site.vm_of("fixed-0")
    site.hang("fixed-0")
    site.until(lambda now: now.reason("fixed-0").startswith("flex: gave up after 1 repair"), 120, "the end of repairs")
    now = site.now
    assert {"DOWN", "DRAIN"} <= now.words("fixed-0") and "Not responding" in now.reason("fixed-0")
    assert site.vm_of("fixed-0") == second
    assert site.vm_of("fixed-1") == first["fixed-1"]


def test_a_new_group_has_a_grace_of_its_own(site):
    """Deleted and made again under the same name, it is not deleted for the age of the one before."""
    cluster, emulator = site.cluster, site.emulator
    job = cluster.sbatch("-p", "spare", "--time=10")
    site.until(lambda now: now.queued("spare-0"), 40, "a queued request")
    group = site.now.active("spare-0").group
    made = [call["body"] for call in emulator.calls("instanceGroupManagers.insert") if call["body"]["name"] == group][0]
    cluster.stop_sweeper()
    cluster.scancel(job)
    cluster.give_back("spare-0")
    cluster.wait_off("spare-0")
    emulator.wait(operations=0)
    began = time.monotonic()
    assert cluster.sweep().returncode == 0
    path = f"regions/{REGION}/instanceGroupManagers"
    emulator.api("DELETE", f"{path}/{group}")
    emulator.wait(operations=0)
    emulator.api("POST", path, made)
    emulator.wait(operations=0)
    time.sleep(max(0, GRACE + 1.5 - (time.monotonic() - began)))
    assert cluster.sweep().returncode == 0
    assert group in emulator.groups(), "it was deleted at first sight"
    cluster.wait_for(lambda: cluster.sweep().returncode == 0 and group not in emulator.groups(), 60,
                     "the end of its own grace", interval=1)
