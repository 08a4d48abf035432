# SPDX-License-Identifier: GPL-2.0-or-later
"""Lease ends and health on a real slurmctld: scenes on one cluster, with rounds by hand.

Leases run FACTOR times as fast: 10 minutes, the shortest there is, are 15 s. Before every round a dry run says
what that round would do.
"""
import re
import subprocess
import threading
import time
from dataclasses import dataclass

from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster
from sweeper_site import Stage, pause, records, until

FACTOR = 40
WARNING = 15  # seconds before the end
STAYS = {"SuspendTime": "INFINITE", "OverSubscribe": "NO"}
ALONE = {"SuspendTime": "INFINITE", "OverSubscribe": "EXCLUSIVE"}
MINE = re.compile(r"flex-eol-\d{8}T\d{4}")



NODESETS = [
    # What the VM of a job of 5 minutes lives.
    Nodeset("left", 1, {"run_duration_margin": f"{10 * FACTOR - 5}m"}, STAYS),
    # A minute, however long the job.
    Nodeset("warn", 1, {"dws_flex": {"max_run_duration": f"{FACTOR}m"}}, STAYS),
    Nodeset("task", 1, {"dws_flex": {"max_run_duration": f"{FACTOR}m"}}, ALONE),
    Nodeset("short", 2, {"static_nodes": "short-[0-1]", "dws_flex": {"max_run_duration": "10m"}}, STAYS),
    Nodeset("more", 1, {"run_duration_margin": "10h"}, ALONE),
    Nodeset("sick", 2, {"static_nodes": "sick-[0-1]"}, STAYS),
    Nodeset("twice", 1, {"static_nodes": "twice-0", "max_repairs": 1}, STAYS),
    # slurmctld saves no power at all if no partition has a SuspendTime.
    Nodeset("busy", 1, {"run_duration_margin": "10h"}, {**STAYS, "SuspendTime": "300"}),
]
FLEX = {"defaults": {"zones": ["us-central1-a"], "boot_timeout": "2h", "lease_warning": f"{WARNING}s",
                     "repair_reasons": ["Xid"]},
        "sweeper": {"interval": "1s", "orphan_grace": "4s", "empty_mig_grace": "5s", "finished_request_grace": "4s",
                    "listen": "127.0.0.1:0"}}
# Of somebody else, with names and nodes like ours.
OTHERS = {"flex-eol-20300101T00011": "short-0", "flex-eol": "left-0", "flex-eol-20300101T0000x": "sick-1"}
# Says when it is warned; in its second life it is done at once.
TRAINING = ("test -n \"$SLURM_RESTART_COUNT\" && echo again && exit 0; trap 'echo saved my work' URG; "
            "echo began; while true; do sleep 1; done")


def reservations(cluster):
    """All of them, by name: (nodes, record)."""
    found = {}
    for record in records(cluster, "reservation"):
        found[record["ReservationName"]] = (set(cluster.expand(record["Nodes"])), record)
    return found


def ours(cluster):
    return {name: nodes for name, (nodes, _) in reservations(cluster).items() if MINE.fullmatch(name)
            and name not in OTHERS}


@dataclass
class Swept:
    """A round: what the dry run before it said, and what it did."""
    number: int
    ended: float
    would: list
    did: list


def actions_in(text):
    """Of a log or of a dry run: rule, what, and all that follows but the time."""
    return [line.partition("event=action ")[2] for line in text.splitlines() if "event=action " in line]


class Rounds:
    """Rounds about a second apart, each after a dry run."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.done = []
        self.trouble = ""
        self.statics = True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(90)

    def _run(self):
        seen = 0
        while not self._stop.is_set():
            try:
                dry = self.cluster.sweep("--dry-run")
                swept = self.cluster.sweep()
            except subprocess.TimeoutExpired as error:
                self.trouble += f"{error}\n"
                continue
            for done in (dry, swept):
                if done.returncode != 0:
                    self.trouble += f"exit {done.returncode}: {done.stdout}{done.stderr}\n"
            log = self.cluster.log("flex-sweeper.log")
            self.done.append(Swept(len(self.done) + 1, time.monotonic(), actions_in(dry.stdout), actions_in(log[seen:])))
            seen = len(log)
            self._stop.wait(0.6)

    @property
    def count(self):
        return len(self.done)

    def did(self, *words):
        """All actions whose line has these words."""
        return [line for swept in self.done for line in swept.did if all(word in line for word in words)]


def make_leases(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", time_factor=FACTOR)
    stage = Stage(Cluster(NODESETS, build=build, emulator=emulator, flex_extra=FLEX, name="leases"))
    stage.rounds = Rounds(stage.cluster)
    return stage


def begin(stage):
    for name, node in OTHERS.items():
        stage.cluster.scontrol("create", "reservation", f"reservationname={name}", "starttime=2030-01-01T00:00:00", "duration=60",
                               "users=root", f"nodes={node}", "flags=maint,ignore_jobs")
    stage.others = reservations(stage.cluster)
    stage.start({**LEASES, **HEALTH})
    stage.rounds.start()


# Lease ends

def leftover(stage):
    """On a VM with some 10 minutes left a job of 5 starts and one of 20 does not; when the VM is gone it does, too."""
    cluster = stage.cluster
    first = stage.submit("first", "-p", "left", "-N1", "--time=5")
    yield until(lambda now: now.state(first) == "COMPLETED" and now.is_up("left-0"), 120, "an idle node")
    yield until(lambda now: any("left-0" in nodes for nodes in ours(cluster).values()), 20, "its reservation")
    vm = stage.now.vms["left-0"]["created"]
    long = stage.submit("long", "-p", "left", "-N1", "--time=20")
    short = stage.submit("short", "-p", "left", "-N1", "--time=5")
    yield until(lambda now: now.state(short) == "COMPLETED", 60, "the short job to run")
    assert stage.now.vms["left-0"]["created"] == vm and len(stage.inserts("left-0")) == 1
    yield pause(5)
    assert stage.now.state(long) == "PENDING", stage.now.jobs[long]
    assert stage.now.is_up("left-0")
    stage.emulator.kill_instance("left-0")
    yield until(lambda now: now.state(long) == "COMPLETED", 120, "the long job to run on a new VM")
    assert stage.now.restarts(long) == 0
    assert len(stage.inserts("left-0")) == 2


def warned_job(stage):
    """Signal, line and comment before the end; requeued within two rounds of it; done on a new VM."""
    cluster = stage.cluster
    job = stage.submit("warned", "-p", "warn", "-N1", "--time=600", "--open-mode=append", script=TRAINING)
    yield until(lambda now: now.state(job) == "RUNNING" and "began" in cluster.output(job), 90, "the job to run")
    assert "warned" not in stage.now.comment(job), stage.now.comment(job)
    yield until(lambda now: "flex: VMs end" in now.comment(job) and "before the job's time limit" in now.comment(job),
                30, "the job to be told that its VMs end before it does")
    yield until(lambda now: "flex: warned: VMs end" in now.comment(job), 60, "the warning")
    assert "it will be requeued then" in stage.now.comment(job)
    assert "warn-0" in stage.now.vms
    yield until(lambda now: "saved my work" in cluster.output(job), 10, "the signal to arrive")
    yield until(lambda now: "flex: the VMs of this job end at" in cluster.output(job), 10, "a line in its output")
    yield until(lambda now: "DRAIN" in now.words("warn-0") or "warn-0" not in now.vms, 40, "the drain")
    assert stage.now.reason("warn-0").startswith("flex: lease ends"), stage.now.reason("warn-0")
    yield until(lambda now: "warn-0" not in now.vms, 30, "the VM to end")
    ended = stage.rounds.count
    yield until(lambda now: now.restarts(job) == 1, 20, "the job to be requeued")
    # The round under way when the VM went had looked before.
    assert stage.rounds.count - ended <= 2
    assert "run duration is over" in stage.now.comment(job), stage.now.comment(job)
    yield until(lambda now: now.state(job) == "COMPLETED", 120, "the job to run again")
    assert cluster.output(job).count("saved my work") == 1
    assert "again" in cluster.output(job)
    assert len(stage.inserts("warn-0")) == 2 and stage.now.restarts(job) == 1
    assert len(stage.rounds.did("what=warn_job", f"job={job}")) == 1


def warned_task(stage):
    """One task of an array runs, two wait for its node: slurmctld says "try again later" to each signal, and sends it."""
    cluster = stage.cluster
    array = stage.submit("task", "-p", "task", "-N1", "--time=600", "--array=0-2", "--open-mode=append", script=TRAINING)
    yield until(lambda now: any(record["JobState"] == "RUNNING" for record in cluster.jobs(array)), 90, "a task to run")
    task = next(int(record["JobId"]) for record in cluster.jobs(array) if record["JobState"] == "RUNNING")
    yield until(lambda now: "flex: warned: VMs end" in now.comment(task), 60, "the warning")
    assert [record["JobState"] for record in cluster.jobs(array)].count("PENDING") == 1
    warned = stage.rounds.count
    yield until(lambda now: "saved my work" in cluster.output(task), 10, "the signal to arrive")
    yield until(lambda now: "flex: the VMs of this job end at" in cluster.output(task), 10, "a line in its output")
    yield until(lambda now: stage.rounds.count >= warned + 3 or now.restarts(task), 30, "three more rounds, or the end")
    assert cluster.output(task).count("saved my work") == 1, cluster.output(task)
    assert len(stage.rounds.did("what=warn_job", f"job={task}")) == 1
    cluster.scancel(array)


def static_lives(stage):
    """Three ends of a lease, each followed by a new VM."""
    nodes = ("short-0", "short-1")
    lives = {node: [] for node in nodes}

    def count(now):
        for node in nodes:
            vm = now.vms.get(node)
            if vm is not None and now.is_up(node) and vm["created"] not in lives[node]:
                lives[node].append(vm["created"])
        return all(len(lives[node]) >= 4 for node in nodes)

    yield until(count, 240, "four lives of the static nodes")
    for node in nodes:
        assert len(stage.inserts(node)) >= 4
    yield until(lambda now: all(not [request for request in now.requests_for(node) if request.is_active] for node in nodes
                                if node in now.vms), 20, "no request beside a VM")


def raised_limit(stage):
    """Told when its TimeLimit goes beyond its VM's end; the VM goes with the job."""
    cluster = stage.cluster
    job = stage.submit("more", "-p", "more", "-N1", "--time=10", script="sleep 900")
    yield until(lambda now: now.state(job) == "RUNNING", 90, "the job to run")
    yield until(lambda now: "flex: VMs end" in now.comment(job), 30, "its comment")
    assert "time limit" not in stage.now.comment(job), stage.now.comment(job)
    cluster.scontrol("update", f"jobid={job}", "timelimit=60")
    yield until(lambda now: "before the job's time limit" in now.comment(job), 30, "the comment to say so")
    cluster.scancel(job)
    yield until(lambda now: "more-0" not in now.vms and now.is_off("more-0"), 40, "the VM to go with its job")
    assert stage.rounds.did("rule=lease_end", "what=POWER_DOWN", "nodes=more-0")


LEASES = {"leftover": leftover, "warned": warned_job, "warned task": warned_task,
          "static lives": static_lives, "raised limit": raised_limit}


# Health

def drain(stage, node, reason):
    stage.cluster.scontrol("update", f"nodename={node}", "state=drain", f"reason={reason}")


def replaced(stage, node, vm):
    return until(lambda now: node in now.vms and now.vms[node]["created"] != vm and now.is_up(node)
                 and "DRAIN" not in now.words(node), 60, f"{node} to have a new VM")


def sick_static(stage):
    """A reason of the list: a new VM. Another: left alone."""
    yield until(lambda now: now.is_up("sick-0", "sick-1"), 90, "the static nodes to be up")
    before = stage.now
    drain(stage, "sick-1", "to be moved")
    drain(stage, "sick-0", "NHC: xid 79 on GPU 3")
    yield replaced(stage, "sick-0", before.vms["sick-0"]["created"])
    assert len(stage.inserts("sick-0")) == 2
    assert stage.rounds.did("rule=unhealthy_node", "what=POWER_DOWN", "nodes=sick-0", "NHC: xid 79 on GPU 3")
    yield pause(5)
    for now in stage.since(before)[5:]:
        assert now.vms["sick-1"]["created"] == before.vms["sick-1"]["created"]
    assert "DRAIN" in stage.now.words("sick-1") and stage.now.reason("sick-1").startswith("to be moved")
    status = {entry["node"]: entry for entry in stage.cluster.sweeper_status()["repairs"]}
    assert status["sick-0"]["count"] == 1 and "xid 79" in status["sick-0"]["reason"]
    assert "sick-1" not in status


def sick_again(stage):
    """max_repairs is 1: the second time it stays drained and says so."""
    yield until(lambda now: now.is_up("twice-0"), 90, "the node to be up")
    drain(stage, "twice-0", "Xid 48")
    yield replaced(stage, "twice-0", stage.now.vms["twice-0"]["created"])
    vm = stage.now.vms["twice-0"]["created"]
    drain(stage, "twice-0", "Xid 48")
    yield until(lambda now: now.reason("twice-0").startswith("flex: gave up after 1 repairs: Xid 48"), 30,
                "the sweeper to give up")
    yield pause(5)
    assert stage.now.vms["twice-0"]["created"] == vm
    assert "DRAIN" in stage.now.words("twice-0")
    assert len(stage.inserts("twice-0")) == 2


def sick_at_work(stage):
    """Not under its job; then the VM goes, and the job that waits gets a fresh one."""
    job = stage.submit("busy", "-p", "busy", "-N1", "--time=10", script="sleep 900")
    yield until(lambda now: now.state(job) == "RUNNING", 90, "the job to run")
    other = stage.submit("next", "-p", "busy", "-N1", "--exclusive", "--time=5")
    vm = stage.now.vms["busy-0"]["created"]
    drain(stage, "busy-0", "Xid 13")
    drained = stage.now
    yield pause(5)
    assert all("busy-0" in now.vms for now in stage.since(drained))
    assert stage.now.state(job) == "RUNNING"
    stage.cluster.scancel(job)
    yield until(lambda now: now.state(other) == "COMPLETED", 100, "the next job to run")
    assert stage.now.vms["busy-0"]["created"] != vm and "DRAIN" not in stage.now.words("busy-0")
    assert stage.now.restarts(other) == 0


HEALTH = {"sick static": sick_static, "sick again": sick_again, "sick at work": sick_at_work}
