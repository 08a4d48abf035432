# SPDX-License-Identifier: GPL-2.0-or-later
"""Power flags and drains on a real slurmctld: no node comes up for nobody, no admin's drain is lost, and no node that was
undrained stays unusable. slurmctld looks at its power flags only every few seconds here, so that a test can act in between."""
import json
import time

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_desk import INSERT, Desk

C = {"zones": [f"{REGION}-c"]}  # has no room
TICK = 6  # seconds between slurmctld's looks at its power flags
NODESETS = [Nodeset(name, count, C) for name, count in
            (("stale", 1), ("drop", 1), ("ghost", 2), ("drain", 3), ("down", 2), ("rest", 4))]
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "1h", "empty_mig_grace": "1h", "listen": "off",
                        "finished_request_grace": "1h"}}
WHY = "fan (bay 3), \"ask\" ann"


class Power(Desk):
    """A desk whose slurmctld has slow ticks."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-c": 0})
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, flex_extra=SETTINGS, name="power",
                               slurm_extra=["SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,"
                                            f"power_save_min_interval={TICK}"])
        self.flexctl_source = build / "ctl" / "flexctl"

    def install(self):
        self.program = self.cluster.sandbox.install(self.flexctl_source)

    def flexctl(self, *words, code=0):
        done = self.cluster.sandbox.run([self.program, *map(str, words)], env=self.cluster.env(), check=False, timeout=120)
        assert code in (done.returncode, None), f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def update(self, node, state, **more):
        self.cluster.scontrol("update", f"nodename={node}", f"state={state}", *[f"{key}={value}" for key, value in more.items()])

    def ask_to_power_up(self, node):
        """POWER_UP as the sweeper sends it to a node that is powering up, right after a tick: it stands for some seconds."""
        for _ in range(2):
            self.update(node, "power_up")
            if _ == 0:
                self.cluster.wait_for(lambda: "POWER_UP" not in self.now.words(node), 3 * TICK, "slurmctld's tick", 0.05)
        assert "POWER_UP" in self.now.words(node)

    def rounds_until(self, condition, seconds, what):
        """Rounds a second apart until it is so; all looks."""
        looks = []

        def look():
            looks.append(self.round(code=None))
            return condition(looks[-1])

        self.cluster.wait_for(look, seconds, what, interval=0.7)
        return looks

    def round(self, code=0):
        done = self.cluster.sweep()
        assert code in (done.returncode, None), f"exit {done.returncode}\n{done.stderr}"
        return self.now

    def rounds_for(self, seconds):
        end = time.monotonic() + seconds
        looks = []
        while time.monotonic() < end:
            looks.append(self.round(code=None))
            time.sleep(0.5)
        return looks

    def asked_for_nobody(self, node):
        return [call["body"]["name"] for call in self.emulator.calls(INSERT)
                if call["body"]["name"].startswith("j0-") and node in json.dumps(call["body"])]

    def stays_off(self, node):
        """It is off, nothing is asked for, and that stays so over the ticks in which a flag would wake it."""
        for now in self.rounds_for(3 * TICK):
            assert "POWER_UP" not in now.words(node) and "POWERING_UP" not in now.words(node), now.words(node)
        assert not self.now.active(node), f"{self.now.active(node)} is kept"


def is_quite_off(now, node):
    return {"IDLE", "POWERED_DOWN"} <= now.words(node) and not now.words(node) & {"POWER_UP", "POWERING_DOWN", "POWER_DOWN"}


@pytest.fixture(scope="module")
def power(build):
    desk = Power(build)
    with desk.cluster:
        desk.install()
        yield desk


# Power flags

def test_no_power_down_before_the_power_up_is_carried_out(power):
    """What the sweeper does of itself: it winds up the clock of a waiting node, and the next round gives the node back."""
    job = power.submit("stale")
    power.queued("stale-0")
    power.round()
    power.cluster.scancel(job)
    power.round()
    power.ask_to_power_up("stale-0")
    power.round(code=None)
    power.rounds_until(lambda now: is_quite_off(now, "stale-0"), 120, "the node to be off")
    power.stays_off("stale-0")
    assert not power.asked_for_nobody("stale-0")


def test_cancel_holds_the_job_while_a_power_up_stands(power):
    job = power.submit("drop")
    name, = power.queued("drop-0")
    power.round()
    power.ask_to_power_up("drop-0")
    power.flexctl("cancel", name, "--yes", code=None)
    assert power.now.is_held(job), power.now.jobs[job]["JobState"]
    assert "was cancelled by" in power.now.comment(job)
    power.rounds_until(lambda now: is_quite_off(now, "drop-0"), 120, "the node to be off")
    power.stays_off("drop-0")
    assert power.now.is_held(job)
    power.cluster.scancel(job)


def test_a_node_that_comes_up_for_nobody_goes_and_an_admins_stays(power):
    """An admin's two commands in one tick leave the flag: nobody wants the VM. One POWER_UP of an idle node is a wish."""
    power.update("ghost-1", "power_up")
    wish, = power.queued("ghost-1")
    job = power.submit("ghost", "-w", "ghost-0")
    power.queued("ghost-0")
    power.cluster.scancel(job)
    power.ask_to_power_up("ghost-0")
    power.update("ghost-0", "power_down_force")
    power.rounds_until(lambda now: "POWERING_UP" in now.words("ghost-0"), 120, "slurmctld to wake it")
    power.rounds_until(lambda now: is_quite_off(now, "ghost-0"), 120, "the node to be off again")
    power.stays_off("ghost-0")
    assert power.now.queued("ghost-1") == wish and "POWERING_UP" in power.now.words("ghost-1")
    power.update("ghost-1", "power_down_force")


# Drains

def drained_for_nobody(power, node):
    """A node that a job was to have, which is gone, and that an admin has drained since."""
    job = power.submit("drain", "-w", node)
    power.queued(node)
    power.update(node, "drain", reason=WHY)
    power.cluster.scancel(job)


def is_drained_again(now, node):
    return {"DRAIN", "POWERED_DOWN"} <= now.words(node) and not now.words(node) & {"POWER_DOWN", "POWERING_DOWN"}


def test_a_drain_outlives_the_power_down_even_if_the_sweeper_forgets_all(power):
    drained_for_nobody(power, "drain-0")
    power.rounds_until(lambda now: now.words("drain-0") & {"POWER_DOWN", "POWERING_DOWN"}, 60, "the node to be given back")
    (power.cluster.sweeper_dir / "memory.json").unlink()
    power.wait(lambda now: "DRAIN" not in now.words("drain-0"), 60, "slurmctld to take the drain away")
    looks = power.rounds_until(lambda now: is_drained_again(now, "drain-0"), 90, "the drain to be back")
    assert all(now.reason("drain-0").startswith(WHY) for now in looks), [now.reason("drain-0") for now in looks]
    power.update("drain-0", "idle")
    assert is_quite_off(power.rounds_for(3)[-1], "drain-0"), "an admin's undrain is left alone"
    assert "drain" not in power.now.nodes["drain-0"].get("Extra", "")


def test_a_drain_outlives_flex_resume_that_gives_a_node_back(power):
    drained_for_nobody(power, "drain-1")
    cluster = power.cluster
    file = cluster.sandbox.write("resume.json", json.dumps(
        {"jobs": [{"job_id": 999999, "nodes": "drain-1"}], "all_nodes": "drain-1",
         "all_nodes_resume": "drain-1"}))
    cluster.sandbox.run([cluster.program("flex-resume"), "drain-1"], env=cluster.env(SLURM_RESUME_FILE=str(file)), check=False)
    assert "POWER_DOWN" in power.now.words("drain-1")
    power.wait(lambda now: "DRAIN" not in now.words("drain-1"), 60, "slurmctld to take the drain away")
    power.rounds_until(lambda now: is_drained_again(now, "drain-1"), 90, "the drain to be back")
    assert power.now.reason("drain-1").startswith(WHY)


@pytest.mark.parametrize("node", ["down-0", "down-1"])
def test_an_admins_down_outlives_the_power_down(power, node):
    """It sends the job back to the queue: its request is stale, and the node that comes up goes off for us."""
    job = power.submit("down", "-w", node)
    power.queued(node)
    power.round()
    power.update(node, "down", reason=WHY)
    assert {"DOWN", "POWERING_UP"} <= power.now.words(node), power.now.words(node)
    if node == "down-1":
        power.cluster.scancel(job)
    power.rounds_until(lambda now: not now.active(node), 60, "its request to be cancelled")
    looks = power.rounds_until(lambda now: is_drained_again(now, node), 90, "the node to be off, and out of service")
    assert all(now.reason(node).startswith(WHY) for now in looks), [now.reason(node) for now in looks]
    for now in power.rounds_for(2 * TICK):
        assert is_drained_again(now, node) and now.reason(node).startswith(WHY), (now.words(node), now.reason(node))
    assert power.now.state(job) in ("PENDING", "CANCELLED")
    if node == "down-0":
        power.cluster.scancel(job)


# Undrained nodes

def is_unusable(now, node):
    return {"IDLE", "POWERED_DOWN", "NOT_RESPONDING"} <= now.words(node)


def test_resume_leaves_no_node_unusable(power):
    power.flexctl("pause", "rest")
    power.update("rest-3", "undrain")
    assert is_unusable(power.now, "rest-3")
    power.flexctl("resume", "rest")
    power.wait(lambda now: all(is_quite_off(now, node) and not is_unusable(now, node)
                               for node in ("rest-0", "rest-1", "rest-2", "rest-3")), 60, "all of them to be of use")


def test_a_node_that_was_undrained_by_hand_is_told_and_cured_over_a_restart(power):
    power.update("rest-0", "drain", reason="by hand")
    power.update("rest-0", "undrain")
    power.update("rest-1", "drain", reason="stays")
    assert is_unusable(power.now, "rest-0")
    power.cluster.restart_slurmctld()
    job = power.submit("rest", "-w", "rest-0")
    assert "unusable" in power.flexctl("status", "rest", "--live", code=None)
    assert "scontrol update NodeName=rest-0 State=POWER_DOWN_FORCE" in power.flexctl("doctor", "--fix-hints", code=None)
    power.wait(lambda now: "ReqNodeNotAvail" in now.jobs[job]["Reason"], 60, "slurmctld to say that it cannot")
    assert "rest-0" in power.flexctl("explain", job, code=None)
    assert "unusable" in power.flexctl("explain", "rest-0", code=None)
    power.rounds_until(lambda now: now.queued("rest-0"), 120, "the job to get the node")
    assert power.now.state(job) == "CONFIGURING"
    assert "DRAIN" in power.now.words("rest-1") and power.now.reason("rest-1").startswith("stays")
    actions = [line for line in power.cluster.log("flex-sweeper.log").splitlines() if "rule=unusable_node" in line]
    assert len([line for line in actions if "event=action " in line or "rest-0" in line]) == 1, actions
    power.cluster.scancel(job)
