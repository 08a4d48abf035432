# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenes of the sweeper that are played side by side on one cluster.

Most of what the sweeper does takes a while: a batch job starts at slurmctld's 30 s tick, graces pass,
timeouts run out. So each scene is a generator that yields what it waits for, all of them are played at
the same time against the same looks at the cluster, and a test asks how its scene ended.
"""
import threading
import time
import traceback
from dataclasses import dataclass

from harness.emulator import requests_in
from harness.slurm import Timeout, parse_record

UP = {"IDLE", "ALLOCATED", "MIXED"}
NOT_UP = {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP", "NOT_RESPONDING",
          "COMPLETING"}


def is_write(call):
    """Some calls that only read are POSTs."""
    return call["verb"] != "GET" and not call["method"].endswith((".listManagedInstances", ".wait"))


def records(cluster, kind):
    text = cluster.slurm("scontrol", "show", kind, check=False).stdout
    return [parse_record(part) for part in text.split("\n\n") if "=" in part]


class Moment:
    """How things stand: one look at slurmctld and one at the cloud."""

    def __init__(self, cluster):
        self.at = time.monotonic()
        self.jobs = {int(record["JobId"]): record for record in records(cluster, "job") if "JobId" in record}
        self.nodes = {record["NodeName"]: record for record in records(cluster, "node")}
        state = self.raw = cluster.emulator.state()
        ours = f"slurm-flex-start cluster={cluster.name} "
        self.groups = {group["name"]: group for group in state["groups"]
                       if group["description"].startswith(ours)}
        self.requests = [request for request in requests_in(state) if request.group in self.groups]
        self.vms = {vm["name"]: vm for vm in state["vms"] if vm["group"] in self.groups}

    # Slurm

    def words(self, node):
        """The words of the node's state, such as {'IDLE', 'CLOUD', 'POWERED_DOWN'}."""
        state = self.nodes[node]["State"]
        words = {word.rstrip("*~#!%$@^-") for word in state.split("+")}
        return words | ({"NOT_RESPONDING"} if "*" in state else set())

    def is_off(self, *nodes):
        return all({"IDLE", "POWERED_DOWN"} <= self.words(node) for node in nodes)

    def is_up(self, *nodes):
        return all(self.words(node) & UP and not self.words(node) & NOT_UP for node in nodes)

    def reason(self, node):
        return self.nodes[node].get("Reason", "")

    def state(self, job):
        return self.jobs.get(job, {}).get("JobState", "")

    def comment(self, job):
        return self.jobs.get(job, {}).get("AdminComment", "")

    def restarts(self, job):
        return int(self.jobs[job]["Restarts"])

    def is_held(self, job):
        record = self.jobs[job]
        return record["JobState"] == "PENDING" and record["Priority"] == "0"

    # Cloud

    def requests_for(self, node):
        return [request for request in self.requests if node in request.nodes]

    def active(self, node):
        """The active request that names the node, or None."""
        found = [request for request in self.requests_for(node) if request.is_active]
        assert len(found) < 2, f"two active requests for {node}: {found}"
        return found[0] if found else None

    def queued(self, node):
        """The name of the node's request if it waits in the queue."""
        request = self.active(node)
        return request.name if request is not None and request.state == "ACCEPTED" else ""


@dataclass
class Until:
    """What a scene waits for: the value of `condition` is what its `yield` gives."""
    condition: object
    seconds: float
    what: str


def until(condition, seconds, what):
    return Until(condition, seconds, what)


def pause(seconds):
    end = time.monotonic() + seconds
    return Until(lambda now: now.at >= end, seconds + 60, f"{seconds} s to pass")


class Play:
    """A scene under way."""

    def __init__(self, name, steps):
        self.name, self.steps = name, steps
        self.waits = None
        self.deadline = 0.0
        self.error = None
        self.began, self.ended = time.monotonic(), 0.0
        self.over = threading.Event()

    def go_on(self, cluster, now):
        try:
            value = None if self.waits is None else self.waits.condition(now)
            if self.waits is None or value:
                self._wait_for(self.steps.send(value), now)
            elif now.at > self.deadline:
                self._wait_for(self.steps.throw(Timeout(
                    f"{self.name}: waited {self.waits.seconds} s for {self.waits.what}\n"
                    f"{cluster.situation()}")), now)
        except StopIteration:
            self._end(None)
        except Exception as error:  # it is raised again in the scene's test
            self._end(error)

    def _end(self, error):
        self.error, self.ended = error, time.monotonic()
        self.over.set()

    def _wait_for(self, waits, now):
        self.waits, self.deadline = waits, now.at + waits.seconds


class Stage:
    """Plays all scenes from one thread; tests ask for the outcome of theirs."""

    def __init__(self, cluster, look=Moment):
        self.cluster, self.emulator = cluster, cluster.emulator
        self.look = look    # makes a Moment
        self.job = {}
        self.history = []   # of Moments
        self.marks = set()  # what one scene tells another
        self.journal_start = 0
        self.plays = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.trouble = ""

    def start(self, scenes):
        """The first steps at once: they submit the jobs."""
        self.plays = {name: Play(name, scene(self)) for name, scene in scenes.items()}
        now = self.look(self.cluster)
        for play in self.plays.values():
            play.go_on(self.cluster, now)
        self.history.append(now)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set() and any(not play.over.is_set() for play in self.plays.values()):
            try:
                now = self.look(self.cluster)
            except Exception:
                self.trouble = traceback.format_exc()
                time.sleep(0.5)
                continue
            self.history.append(now)
            for play in self.plays.values():
                if not play.over.is_set():
                    play.go_on(self.cluster, now)
            self._stop.wait(0.25)

    def stop(self):
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(60)

    def outcome(self, name, seconds=200):
        play = self.plays[name]
        if not play.over.wait(seconds):
            waits = play.waits.what if play.waits else "its start"
            raise Timeout(f"scene {name} is not over, it waits for {waits}\n{self.trouble}")
        print(f"took {play.ended - play.began:.1f} s")
        if play.error is not None:
            raise play.error

    def wait_all(self, seconds=240):
        """Until nothing is played any more, well or not."""
        end = time.monotonic() + seconds
        for play in self.plays.values():
            play.over.wait(max(0.0, end - time.monotonic()))
        self.stop()

    # What scenes do and ask

    def submit(self, name, *options, script="exit 0"):
        self.job[name] = self.cluster.sbatch(*options, script=script)
        return self.job[name]

    def mark(self, name):
        self.marks.add(name)

    def since(self, moment):
        """All looks from this one on."""
        return [now for now in self.history if now.at >= moment.at]

    @property
    def now(self):
        return self.history[-1]

    def inserts(self, node):
        """The requests made for the node, since the scenes began.

        flex-resume and the sweeper may ask at the same time: one is told that the request exists.
        """
        return [call for call in self.emulator.calls("resizeRequests.insert", self.journal_start)
                if call["status"] == 200
                and node in [entry["name"] for entry in call["body"].get("instances", [])]]
