# SPDX-License-Identifier: GPL-2.0-or-later
"""A dry run says exactly what the next round then does, whatever there is to do, and changes nothing.

No VM registers and no sweeper runs beside the rounds; between two of them everything comes to rest. What must have
been so for a while has been so for an hour, or is waited for before the dry run: nothing falls due after it.
"""
import re
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION
from placement_scenes import make_policy
from sweeper_desk import Desk
from sweeper_site import is_write

HOUR = 3600
GRACE = 1
RESTLESS = {"POWERING_DOWN", "POWER_DOWN", "POWER_UP", "COMPLETING"}
SETTINGS = {"sweeper": {"orphan_grace": f"{GRACE}s", "empty_mig_grace": f"{GRACE}s", "listen": "127.0.0.1:0",
                        "finished_request_grace": f"{GRACE}s"},
            "defaults": {"retry": {"base": "1s", "max": "1s", "limit": 0}}}


def zones(letters):
    return {"zones": [f"{REGION}-{letter}" for letter in letters]}


def nodeset(name, letters, **settings):
    return Nodeset(name, 2, {**zones(letters), **settings}, {"ResumeTimeout": "36000"}, boots=False)


def after_a_while(**step):
    return [{"wait": "30m", **step}]


NODESETS = [
    nodeset("queue", "c"),
    nodeset("one", "c", mode="individual"),
    nodeset("bulk", "c", mode="bulk_insert"),
    nodeset("has", "a", mode="individual"),
    nodeset("near", "a", placement={"max_distance": 2}),
    nodeset("zone", "c", on_stockout=after_a_while(**zones("b"))),
    nodeset("mode", "c", on_stockout=after_a_while(mode="individual")),
    nodeset("loose", "c", on_stockout=after_a_while(mode="bulk_insert")),
    nodeset("race", "cf", race=2),
    nodeset("renew", "c", resubmit_after="30m"),
    nodeset("late", "c", provision_timeout="30m", on_timeout="hold"),
    nodeset("lone", "c", mode="individual", provision_timeout="1h"),
]
FIELDS = ("rule", "what", "target", "job", "nodes")


def actions_in(text):
    """Of each action: its rule, what, target, job and nodes."""
    actions = []
    for line in text.splitlines():
        if " what=" not in f" {line}" or " rule=" not in f" {line}" or "event=action_" in line:
            continue
        actions.append(tuple(found[1] if (found := re.search(rf"(?:^|\s){field}=(\S+)", line)) else ""
                             for field in FIELDS))
    return sorted(actions)


class Rehearsal:
    """Rounds by hand, each after a dry run."""

    def __init__(self, desk):
        self.desk, self.cluster, self.emulator = desk, desk.cluster, desk.emulator
        self.told = []

    def picture(self):
        """All that a dry run must not change."""
        state = self.emulator.state()
        for thing in (*state["groups"], *state["requests"], *state["vms"]):
            thing.pop("last_attempt", None)
        kept = {path.name: path.read_bytes() for path in self.cluster.sweeper_dir.iterdir() if path.is_file()} \
            if self.cluster.sweeper_dir.exists() else {}
        slurm = [self.cluster.slurm("scontrol", "show", kind, check=False).stdout for kind in ("node", "reservation")]
        jobs = re.sub(r"RunTime=\S+", "", self.cluster.slurm("scontrol", "show", "job", check=False).stdout)
        return {"groups": state["groups"], "requests": state["requests"], "vms": state["vms"],
                "policies": state["policies"], "slurm": slurm, "jobs": jobs, "files": kept}

    def rest(self):
        """Until nothing is under way; then until what was just seen has been so for its grace."""
        def is_restful():
            now = self.desk.now
            return (not any(now.words(node) & RESTLESS for node in now.nodes)
                    and not any(vm["status"] not in ("RUNNING",) for vm in self.emulator.state()["vms"]))
        self.cluster.wait_for(lambda: self.emulator.reaches(operations=0) and is_restful(), 40, "everything to rest",
                              interval=0.3)
        time.sleep(GRACE + 0.5)

    def round(self):
        """What the dry run said, which is what the round did."""
        self.rest()
        before, seen = self.picture(), max(call["seq"] for call in self.emulator.journal())
        dry = self.desk.run("--once", "--dry-run", "--log-file", self.cluster.dir / "log" / "dry.log")
        assert dry.returncode == 0, dry.stderr
        assert not [call for call in self.emulator.journal(seen) if is_write(call)]
        after = self.picture()
        assert {key: value for key, value in after.items() if value != before[key]} == {}
        start = len(self.cluster.log("flex-sweeper.log"))
        self.cluster.sweep()
        done = actions_in(self.cluster.log("flex-sweeper.log")[start:])
        said = actions_in(dry.stdout)
        assert said == done, f"said but not done: {sorted(set(said) - set(done))}\n" \
                             f"done but not said: {sorted(set(done) - set(said))}"
        self.told += done
        return done

    def rounds(self, most):
        """Until there is nothing to do: twice, as many things must be seen twice."""
        quiet = 0
        for _ in range(most):
            quiet = 0 if self.round() else quiet + 1
            if quiet == 2:
                return
        raise AssertionError(f"still something to do after {most} rounds: {self.told[-5:]}")

    def rules(self):
        return {(rule, what) for rule, what, *_ in self.told}


@pytest.fixture(scope="module")
def rehearsal(build):
    desk = Desk(build, NODESETS, SETTINGS, capacity={f"{REGION}-{letter}": 0 for letter in "bf"})
    with desk.cluster:
        desk.cluster.set_no_boot([node for nodeset in NODESETS for node in nodeset.nodes])
        yield Rehearsal(desk)


def asked(rehearsal, node):
    return [call for call in rehearsal.emulator.journal() if is_write(call) and f"'{node}'" in str(call["body"])]


def test_when_jobs_have_waited_for_an_hour(rehearsal):
    desk = rehearsal.desk
    rehearsal.jobs = {nodeset.name: desk.submit(nodeset.name, "-N2", "--time=1-0") for nodeset in NODESETS}
    mark = f"slurm-flex-start cluster={desk.cluster.name} nodeset=near job=4711"
    make_policy(desk.emulator, f"{desk.cluster.name}-near-j4711", mark)
    rehearsal.cluster.wait_for(lambda: all(asked(rehearsal, f"{nodeset.name}-0") for nodeset in NODESETS), 60,
                               "everything to be asked for")
    rehearsal.emulator.advance(HOUR)
    for _ in range(5):
        rehearsal.round()
    assert {("job_note", "comment"), ("unused_policy", "delete_policy"), ("unrequested_node", "ask"),
            ("on_stockout", "ask"), ("resubmit", "ask"), ("provision_timeout", "cancel_request"),
            ("provision_timeout", "requeue_and_hold"), ("surplus_request", "cancel_request"),
            ("lease_end", "create_reservation")} <= rehearsal.rules(), rehearsal.rules()


def test_when_there_is_room(rehearsal):
    rehearsal.emulator.set_capacity(b=-1, f=-1)
    rehearsal.desk.wait(lambda now: {"race-0", "zone-0"} <= set(now.vms), 20, "VMs")
    for _ in range(2):
        rehearsal.round()
    waiting = [request for request in rehearsal.emulator.requests() if request.is_active and "race-0" in request.nodes]
    assert not waiting


def test_when_jobs_are_cancelled(rehearsal):
    cluster = rehearsal.cluster
    cluster.scancel(*rehearsal.jobs.values())
    for _ in range(3):
        rehearsal.round()
    # Slurm powers nodes down that are idle; these never were up. One VM is left behind.
    up = sorted(set(rehearsal.desk.now.vms) | {"loose-0", "loose-1"})
    wrapper = (cluster.dir / "bin" / "flex-suspend").read_text(encoding="utf-8")
    cluster.sandbox.write("bin/flex-suspend", "#!/bin/sh\nexit 1\n", 0o755)
    cluster.give_back("has-0")
    cluster.wait_off("has-0")
    cluster.sandbox.write("bin/flex-suspend", wrapper, 0o755)
    cluster.give_back(*[node for node in up if node != "has-0"])
    rehearsal.rounds(12)
    state = rehearsal.emulator.state()
    assert not state["vms"] and not state["groups"] and not state["policies"]
    assert {("stale_request", "cancel_request"), ("empty_mig", "delete_group"),
            ("finished_request", "delete_request"), ("orphan_instance", "delete_instances")} <= \
        rehearsal.rules(), rehearsal.rules()
