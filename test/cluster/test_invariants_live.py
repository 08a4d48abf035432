# SPDX-License-Identifier: GPL-2.0-or-later
"""The invariants on a real slurmctld: what somebody else does behind the test's back is seen, and told in order."""
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster, InvariantBroken, find_program

GROUPS = f"/compute/v1/projects/flex-test/regions/{REGION}/instanceGroupManagers"
TEMPLATE = "projects/flex-test/global/instanceTemplates/flex-template"


class Stranger:
    """Calls as a program makes them: not through the test's own `Emulator.api`."""

    def __init__(self, emulator):
        self._emulator = emulator
        emulator.api("GET", f"regions/{REGION}/instanceGroupManagers")  # has a token from now on

    def post(self, path, body):
        # pylint: disable=protected-access
        return self._emulator._call("POST", path, body, {"Authorization": f"Bearer {self._emulator._token}"})


@pytest.fixture(scope="module")
def cluster(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator")
    with Cluster([Nodeset("n", 3)], build=build, emulator=emulator, name="live") as started:
        yield started


def ask_for_nobody(cluster):
    """A group as ours, and a request of no job in it."""
    emulator, stranger = cluster.emulator, Stranger(cluster.emulator)
    stranger.post(GROUPS, {
        "name": "live-n", "baseInstanceName": "n", "targetSize": 0, "description": "slurm-flex-start cluster=live nodeset=n",
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": f"projects/flex-test/zones/{REGION}-a"}]},
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
        "updatePolicy": {"instanceRedistributionType": "NONE"}, "versions": [{"instanceTemplate": TEMPLATE}]})
    cluster.wait_for(lambda: emulator.groups()["live-n"]["ready"], 20, "the group")
    stranger.post(f"{GROUPS}/live-n/resizeRequests", {"name": "j0-nobody", "instances": [{"name": "n-0"}],
                                                      "requestedRunDuration": {"seconds": "3600"}})
    cluster.wait_for(lambda: "n-0" in emulator.vms(), 20, "the VM")


def test_what_must_never_be_is_seen_and_told(cluster):
    cluster.set_no_boot(["n-0"])
    ask_for_nobody(cluster)
    cluster.scontrol("update", "nodename=n-1", "state=drain", "reason=mine")
    cluster.scontrol("update", "nodename=n-2", "state=drain", "reason=mine")
    cluster.wait_for(lambda: "DRAIN" in cluster.node_state("n-1") & cluster.node_state("n-2"), 20, "the drains")
    cluster.scontrol("update", "nodename=n-2", "state=undrain")
    # Not through the harness: nobody says that this is on purpose.
    cluster.sandbox.run([find_program("scontrol"), "update", "nodename=n-1", "state=undrain"], env=cluster.env())
    began = time.monotonic()

    def is_seen():
        told, _ = cluster.violations()
        return told if len(told) >= 3 else None
    told = cluster.wait_for(is_seen, 90, "three violations", interval=2)
    assert time.monotonic() - began > 20, "nothing is told before its grace is over"
    by_name = {text.partition(":")[0]: text for text in told}
    assert set(by_name) == {"no_idle_vm", "wanted_request", "drain_kept"}
    assert "j0-nobody" in by_name["wanted_request"] and "VM n-0 is made (request j0-nobody" in by_name["no_idle_vm"]
    assert "n-1 lost its drain ('mine')" in by_name["drain_kept"] and "admin: drain n-1 mine" in by_name["drain_kept"]
    assert "n-2" not in by_name["drain_kept"]


def test_a_cluster_that_broke_them_fails_and_a_declaration_is_narrow(cluster):
    """The last one: afterwards all of it is declared, and the cluster ends well."""
    recorder = cluster.recorder
    cluster.expect_violation("no_idle_vm", nodes=["n-0"], why="a stranger made it")
    cluster.expect_violation("wanted_request", nodes=["n-0"], why="a stranger asked")
    cluster.expect_violation("drain_kept", nodes=["n-2"], why="not this one")
    with pytest.raises(InvariantBroken) as caught:
        cluster.check_invariants()
    text = str(caught.value)
    assert "drain_kept: n-1 lost its drain" in text and "drain_kept was declared for n-2 (not this one) and is not broken" in text
    assert "no_idle_vm:" not in text
    cluster.recorder = recorder
    cluster.expected = [one for one in cluster.expected if one.why != "not this one"]
    cluster.expect_violation("drain_kept", nodes=["n-1"], why="somebody took it away behind our back")
    with pytest.raises(AssertionError):
        cluster.expect_violation("no_idle_vm", why="all of them")
