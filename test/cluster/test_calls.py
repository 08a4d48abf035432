# SPDX-License-Identifier: GPL-2.0-or-later
"""How many calls a round, a flex-suspend and a flex-resume make where every job has a group of its own."""
import re

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION
from sweeper_desk import Desk

SERVED, WAITING = 14, 8
JOBS = SERVED + WAITING
# One list of groups, one of VMs; requests of the groups that wait; some groups in turn, two lists each.
QUIET = 1 + 1 + WAITING + 2 * 4


class Groups(Desk):
    def __init__(self, build):
        super().__init__(build, [Nodeset("own", JOBS + 2, {"mig_scope": "job", "boot_timeout": "1h"}, boots=False)],
                         capacity={f"{REGION}-a": SERVED})

    def fill(self):
        cluster, emulator = self.cluster, self.emulator
        cluster.sbatch("-p", "own", "-N1", "--time=60", f"--array=1-{JOBS}", script="sleep 600")
        cluster.wait_for(lambda: len(emulator.requests()) == JOBS, 120, f"{JOBS} requests")
        cluster.wait_for(lambda: len(self.now.vms) == SERVED, 60, f"{SERVED} VMs")
        emulator.wait(operations=0)

    def rounds_of(self, count):
        """So many rounds of one sweeper; the calls of each."""
        log = self.cluster.dir / "log" / "calls.log"
        log.unlink(missing_ok=True)
        done = self.run("--rounds", str(count), "--interval", "1", "--log-level", "debug", "--log-file", log, timeout=120)
        assert done.returncode == 0, done.stderr
        return [int(number) for number in re.findall(r"event=round .*calls=(\d+)", log.read_text(encoding="utf-8"))]

    def count(self, program, hostlist):
        """A program by hand; how many calls it made."""
        before = max(call["seq"] for call in self.emulator.journal())
        done = self.cluster.sandbox.run([self.cluster.program(program), "--log-file", self.cluster.dir / "log" / "by-hand.log",
                                         hostlist], env=self.cluster.env(), check=False, timeout=60)
        assert done.returncode == 0, (done.stderr, self.cluster.log("by-hand.log"))
        return len([call for call in self.emulator.journal(before) if call["seq"] > before and call["method"]])


@pytest.fixture(scope="module")
def groups(build):
    desk = Groups(build)
    with desk.cluster:
        desk.fill()
        yield desk


def test_a_quiet_round_makes_few_calls(groups):
    calls = groups.rounds_of(6)
    print(f"calls of each round over {JOBS} groups, {WAITING} of which wait: {calls}")
    assert max(calls[-2:]) <= QUIET, calls


def test_a_vm_that_vanishes_is_seen_in_a_quiet_round(groups):
    """Its group's record does not change, and it is not its group's turn."""
    log = groups.cluster.dir / "log" / "vanish.log"
    child = groups.spawn("--rounds", "12", "--interval", "1", "--log-level", "debug", "--log-file", log, log="vanish.out")
    groups.cluster.wait_for(lambda: log.exists() and len(re.findall("event=round ", log.read_text())) >= 5, 60, "quiet rounds")
    now = groups.now
    node = sorted(now.vms)[0]
    groups.emulator.kill_instance(node)
    seen = max(call["seq"] for call in groups.emulator.journal())
    path = f"/{now.vms[node]['group']}/listManagedInstances"

    def readings():
        return [call["seq"] for call in groups.emulator.calls("listManagedInstances", seen) if path in call["path"]]

    first = groups.cluster.wait_for(readings, 30, f"the list of {node}'s group to be read")[0]
    # The round that was under way may have looked before.
    lists = [call for call in groups.emulator.calls("regionInstanceGroupManagers.list", seen) if call["seq"] < first]
    assert len(lists) <= 2, lists
    child.wait(60)


def test_flex_suspend_and_flex_resume_of_one_node_make_few_calls(groups):
    served, queued = sorted(groups.now.vms)[-1], groups.now
    calls = groups.count("flex-suspend", served)
    print(f"flex-suspend of one node that has a VM: {calls} calls")
    assert calls <= 6
    groups.cluster.wait_for(lambda: served not in groups.now.vms, 30, "its VM to be gone")
    waiting = [node for node in groups.cluster.nodesets["own"].nodes if queued.queued(node)][-1]
    name = queued.queued(waiting)
    calls = groups.count("flex-suspend", waiting)
    print(f"flex-suspend of one node that waits: {calls} calls")
    assert calls <= 6
    groups.cluster.wait_for(lambda: groups.now.queued(waiting) != name, 30, "its request to be cancelled")
    seen = len(re.findall("event=resumed ", groups.cluster.log("flex-resume.log")))
    groups.submit("own", "-N1")
    groups.cluster.wait_for(lambda: len(re.findall("event=resumed ", groups.cluster.log("flex-resume.log"))) > seen, 60,
                            "flex-resume of one more node")
    calls = int(re.findall(r"event=resumed .*calls=(\d+)", groups.cluster.log("flex-resume.log"))[-1])
    print(f"flex-resume of one node: {calls} calls")
    assert calls <= 6
