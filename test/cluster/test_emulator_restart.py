# SPDX-License-Identifier: GPL-2.0-or-later
"""The cloud comes back after a restart as it was: its VMs never stopped."""
import time

import pytest

from harness import procs
from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster


@pytest.fixture
def cluster(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator")
    with Cluster([Nodeset("n", 2)], build=build, emulator=emulator) as started:
        yield started


def slurmds(cluster):
    return {pid for pid in cluster.sandbox.processes() if "slurmd -D" in procs.describe(pid)}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_vms_run_on_while_the_emulator_is(cluster, how):
    emulator = cluster.emulator
    emulator.set_capacity(a=2)
    job = cluster.sbatch("-N2", "--time=10", script="sleep 600")
    cluster.wait_for(lambda: list(emulator.vms().values()) == ["RUNNING"] * 2, 30, "two VMs")
    cluster.wait_for(lambda: len(slurmds(cluster)) == 2, 20, "two slurmd processes")
    cluster.wait_for(lambda: not emulator.state()["operations"], 10, "operations to end")
    time.sleep(0.3)  # killed it loses the changes of the last 100 ms
    before, running, calls = emulator.state(), slurmds(cluster), len(emulator.journal())
    getattr(emulator, how)()
    emulator.start_again()

    after = emulator.state()
    assert after["vms"] == before["vms"]
    assert after["groups"] == before["groups"]
    assert after["requests"] == before["requests"]
    assert emulator._call("GET", "/_emulator/config")["capacity"] == {"us-central1-a": 2}
    assert len(emulator.earlier[0]) >= calls
    assert slurmds(cluster) == running
    cluster.scancel(job)
    cluster.give_back("n-0", "n-1")
    cluster.wait_for(lambda: not emulator.vms(), 30, "the VMs to be deleted")
    cluster.wait_for(lambda: not slurmds(cluster), 20, "the slurmd processes to end")
