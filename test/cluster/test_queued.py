# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs that wait for capacity, whatever Google says of them: nothing, PENDING, or the one of some and the other of others.

A member of a group that waits is not a VM. It does not boot, so boot_timeout has no say; its node is kept from ResumeTimeout;
and in a race nobody has won. The jobs wait for several times all of these limits.
"""
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

BOOT, RESUME = 4, 12  # seconds; a VM that Google has not started has twice the first
WATCHED = 30
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "2s", "listen": "127.0.0.1:0"},
            "defaults": {"boot_timeout": f"{BOOT}s", "max_boot_failures": 2}}


def nodeset(name, count, letters, **settings):
    return Nodeset(name, count, {"zones": [f"{REGION}-{letter}" for letter in letters], **settings},
                   {"ResumeTimeout": str(RESUME)}, boots=False)


NODESETS = [nodeset("many", 4, "c"), nodeset("race", 2, "cf", race=2), nodeset("alone", 2, "c", mode="individual")]
# Calls that would end the wait of somebody.
ENDINGS = ("deleteInstances", "instances.delete", "resizeRequests.cancel", "resizeRequests.delete", "instanceGroupManagers.delete")


class Line:
    """A job of each nodeset, and a region without room for any of them."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", queued_status="pending",
                                 capacity={f"{REGION}-c": 0, f"{REGION}-f": 0})
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, flex_extra=SETTINGS, sweeper=True, name="line")
        self.jobs = {}

    def begin(self):
        for each in NODESETS:
            self.jobs[each.name] = self.cluster.sbatch("-p", each.name, f"-N{each.count}", "--time=10")
        self.cluster.wait_for(lambda: len(self.requests()) == 3 and len(self.members()) == 10, 60,
                              "a request of one job, two of the racing one, and the members of all")

    def requests(self):
        return sorted((request.group, request.name) for request in self.emulator.requests() if request.state == "ACCEPTED")

    def members(self):
        """What Google says of each."""
        found = {}
        for group in self.emulator.groups():
            listed = self.emulator.api("POST", f"regions/{REGION}/instanceGroupManagers/{group}/listManagedInstances")
            for member in listed.get("managedInstances", []):
                found[group, member["name"]] = member.get("instanceStatus", "")
        return found

    def endings(self):
        return [(call["method"], call["status"]) for call in self.emulator.journal() if call["method"].endswith(ENDINGS)]

    def watch(self, seconds):
        """Nothing happens to anybody who waits."""
        asked, members = self.requests(), set(self.members())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.endings() == [], self.cluster.log_tails(30)
            for name, job in self.jobs.items():
                states = self.cluster.job_state(job)
                assert states == "CONFIGURING", (name, states, self.cluster.situation())
            time.sleep(0.5)
        assert self.requests() == asked and set(self.members()) == members
        stopped = {each["name"]: each["stopped"] for each in self.cluster.sweeper_status()["nodesets"] if each.get("stopped")}
        assert not stopped, stopped


@pytest.fixture(scope="module")
def line(build):
    line = Line(build)
    with line.cluster:
        line.begin()
        yield line


@pytest.mark.parametrize("status, words", [("pending", {"PENDING"}), ("mixed", {"", "PENDING"}), ("none", {""})])
def test_a_member_that_waits_is_no_vm(line, status, words):
    line.emulator.config(queued_status=status)
    assert set(line.members().values()) == words
    line.watch(WATCHED if status != "none" else 3 * BOOT)


def test_a_job_that_is_gone_leaves_nothing_in_the_queue(line):
    line.emulator.config(queued_status="mixed")
    line.cluster.scancel(*line.jobs.values())
    line.cluster.wait_for(lambda: not line.requests() and not line.members(), 60, "the queue to be empty")
    line.cluster.wait_off(*[node for each in NODESETS for node in each.nodes])
