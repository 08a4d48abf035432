# SPDX-License-Identifier: GPL-2.0-or-later
"""flexctl on a real slurmctld, with the emulator as the cloud: what it shows, plans, cancels, pauses and sweeps."""
import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION
from harness.slurm import Cluster
from sweeper_desk import Desk
from sweeper_site import is_write

C = {"zones": [f"{REGION}-c"]}  # has no room
NODESETS = [
    Nodeset("plan", 4, C),
    Nodeset("drop", 3, C),
    Nodeset("stat", 1, {**C, "static_nodes": "stat-0"}, {"SuspendTime": "INFINITE"}),
    Nodeset("rest", 3, C),
    Nodeset("runs", 2, {"zones": [f"{REGION}-a"]}),
]
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "1h", "empty_mig_grace": "1h", "listen": "off",
                        "finished_request_grace": "1h"}}


class Ctl(Desk):
    """A desk with flexctl on it."""

    def __init__(self, build):
        super().__init__(build, NODESETS, SETTINGS)
        self.flexctl_source = build / "ctl" / "flexctl"

    def install(self):
        self.program = self.cluster.sandbox.install(self.flexctl_source)

    def __call__(self, *words, code=0, timeout=120):
        """flexctl to its end; what it printed. Any exit code will do if `code` is None."""
        done = self.cluster.sandbox.run([self.program, *map(str, words)], env=self.cluster.env(), check=False,
                                        timeout=timeout)
        assert code in (done.returncode, None), f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.error = done.stderr
        return done.stdout

    def json(self, *words, code=0):
        return json.loads(self(*words, "--json", code=code))

    def stopped(self, nodeset):
        """Why it is, by a sweeper that has just been started, it may be."""
        return self.json("status", nodeset, code=None)["nodesets"][0].get("stopped") or ""

    def history(self, what):
        path = self.cluster.sweeper_dir / "history.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["what"] == what and event["program"] == "flexctl"]

    def writes(self, since):
        return [call for call in self.emulator.journal(since) if is_write(call)]

    def seq(self):
        return max((call["seq"] for call in self.emulator.journal()), default=0)


@pytest.fixture(scope="module")
def ctl(build):
    desk = Ctl(build)
    with desk.cluster:
        desk.install()
        desk.jobs = {"plan": desk.submit("plan", "-N2"), "drop": desk.submit("drop", "-N2"),
                     "beside": desk.submit("drop"), "rest": desk.submit("rest"), "runs": desk.submit("runs")}
        desk.queued("plan-0", "drop-0", "drop-2", "rest-0")
        yield desk


# Status

def test_status_without_a_sweeper_looks_by_itself_and_says_so(ctl):
    text = ctl("status", code=1)
    assert "!! no sweeper is to be found" in text and "systemctl start flex-sweeper" in text
    assert "looked just now" in text
    name = ctl.now.queued("plan-0")
    assert re.search(rf"{name}\s+ACCEPTED\s+job {ctl.jobs['plan']}\s+2\s+plan-\[0-1\]\s+since ", text), text
    assert ctl.json("status", code=1)["source"]["from"] == "live"


def test_status_of_a_sweeper_that_runs_is_its_own_and_fresh(ctl):
    ctl.cluster.start_sweeper()
    ctl.cluster.wait_for(lambda: ctl.cluster.sweeper_status().get("state") == "active", 60, "a round")
    text = ctl("status")
    assert "sweeper active, last complete look" in text and "!!" not in text
    assert ctl.json("status")["source"]["from"] == "file"
    assert "looked just now" in ctl("status", "--live")
    only = ctl.json("status", "plan")
    assert [nodeset["name"] for nodeset in only["nodesets"]] == ["plan"]
    assert {request["nodeset"] for request in only["requests"]} == {"plan"}


def test_status_of_an_unknown_nodeset_names_those_there_are(ctl):
    ctl("status", "plam", code=2)
    assert "no nodeset 'plam'" in ctl.error and "drop, plan, rest, runs, stat" in ctl.error


class Watched:
    """flexctl status --watch on a terminal of its own."""

    def __init__(self, ctl, rows=30, columns=110):
        try:
            self.child, terminal = pty.openpty()
        except OSError as error:  # a chroot where nobody has mounted /dev/pts
            pytest.skip(f"no pseudo-terminals here: {error}")
        subprocess.run(["stty", "rows", str(rows), "cols", str(columns)], stdin=terminal, check=True)
        self.process = ctl.cluster.sandbox.spawn([ctl.program, "status", "--watch=1"], "watch.err",
                                                 env={**ctl.cluster.env(), "TERM": "xterm"}, stdout=terminal)
        os.close(terminal)
        self.text = ""

    def read(self, seconds=0.2):
        while select.select([self.child], [], [], seconds)[0]:
            try:
                part = os.read(self.child, 65536).decode(errors="replace")
            except OSError:  # the other end is closed
                break
            if not part:
                break
            self.text += part
        return self.text


def test_watch_survives_a_restart_of_the_sweeper_and_gives_the_screen_back(ctl):
    watched = Watched(ctl)
    ctl.cluster.wait_for(lambda: "sweeper active" in watched.read(), 60, "a first picture")
    assert "\033[?1049h" in watched.text and "every 1 s; Ctrl-C ends" in watched.text
    ctl.cluster.stop_sweeper()
    ctl.cluster.wait_for(lambda: "the sweeper was stopped" in watched.read(), 60, "word of the stop")
    ctl.cluster.start_sweeper()
    seen = len(watched.text)
    ctl.cluster.wait_for(lambda: "sweeper active" in watched.read()[seen:], 60, "the new sweeper")
    watched.process.send_signal(signal.SIGINT)
    assert watched.process.wait(30) == 0
    assert watched.read().rstrip().endswith("\033[?25h\033[?1049l")
    for frame in watched.text.split("\033[H")[1:]:
        assert frame.count("\n") <= 29


# Plan

def test_plan_of_a_job_that_is_asked_for_already_is_nothing_to_do(ctl):
    before = ctl.seq()
    text = ctl("plan", "--job", ctl.jobs["plan"])
    assert "nothing would be asked for" in text and "left alone: plan-[0-1]" in text
    assert not ctl.writes(before)
    ctl("plan", "--job", 4711, code=1)
    assert "knows no job 4711" in ctl.error


def test_plan_of_nodes_says_what_a_job_would_get(ctl):
    plan = ctl.json("plan", "--nodes", "plan-[2-3]", "--time", "4:00:00")
    group, = plan["groups"]
    request, = group["requests"]
    assert group["mode"] == "queued" and group["exists"] is True
    assert request["nodes"] == "plan-[2-3]" and request["run_seconds"] == 4 * 3600 + 900
    assert "04:00:00" in request["how"], request
    text = ctl("plan", "--nodes", "plan-[2-3],foreign-1")
    assert text.count("for no job") == 2 and "foreign-1 (in no nodeset" in text
    ctl("plan", "--nodes", "plan-[", code=2)
    ctl("plan", code=2)


# Cancel

def test_cancel_takes_exactly_one_request_back_and_holds_its_job(ctl):
    job, name = ctl.jobs["drop"], ctl.now.queued("drop-0")
    beside = ctl.now.queued("drop-2")
    before = ctl.seq()
    ctl("cancel", name, code=1)  # nobody to say yes
    assert "--yes" in ctl.error and not ctl.writes(before)
    done = ctl.json("cancel", name, "--yes")
    assert done["request"] == name and done["job"] == job
    ctl.wait(lambda now: now.is_held(job) and now.is_off("drop-0", "drop-1"), 90, "the job to be held")
    assert f"request {name} was cancelled by" in ctl.now.comment(job) and "scontrol release" in ctl.now.comment(job)
    assert ctl.now.queued("drop-2") == beside and ctl.now.state(ctl.jobs["beside"]) == "CONFIGURING"
    event, = ctl.history("cancel_request")
    assert event["request"] == name and event["more"]["user"] and event["job"] == job
    rounds = ctl.cluster.sweeper_status()["round"] + 3
    ctl.cluster.wait_for(lambda: ctl.cluster.sweeper_status()["round"] > rounds, 90, "rounds of the sweeper")
    assert not ctl.now.active("drop-0"), "it asked again"


def test_cancel_of_what_is_not_there_or_served_says_so(ctl):
    ctl("cancel", "j1-nothing", "--yes", code=1)
    assert "no request 'j1-nothing'" in ctl.error
    served = ctl.cluster.wait_for(
        lambda: [request.name for request in ctl.emulator.requests_of(ctl.jobs["runs"])
                 if request.state == "SUCCEEDED"], 60, "a request that is served")
    ctl("cancel", served[0], "--yes", code=1)
    assert "has been served" in ctl.error


def test_cancel_for_a_static_node_says_that_it_is_asked_for_again(ctl):
    name = ctl.cluster.wait_for(lambda: ctl.now.queued("stat-0"), 60, "the static node's request")
    assert "asks for it again unless it is drained" in ctl("cancel", name, "--yes")


# Pause and resume

def test_pause_drains_and_holds_over_a_restart_without_memory(ctl):
    waits = ctl.now.queued("rest-0")
    text = ctl("pause", "rest", "--reason", "new image")
    assert "Nodeset rest is paused: 2 of its 3 nodes drained" in text
    assert "paused by" in ctl.now.reason("rest-1") and "new image" in ctl.now.reason("rest-1")
    ctl.cluster.stop_sweeper()
    assert "paused by" in ctl("status", "rest", "--live"), "also without the sweeper"
    assert "is paused by" in ctl("plan", "--nodes", "rest-2")
    (ctl.cluster.sweeper_dir / "memory.json").unlink()
    job = ctl.submit("rest")
    ctl.cluster.start_sweeper()
    ctl.cluster.wait_for(lambda: ctl.cluster.sweeper_status()["pid"] == ctl.cluster.sweeper.pid
                         and "paused by" in ctl.stopped("rest"), 60, "the new sweeper to know")
    assert ctl.now.queued("rest-0") == waits, "what waits stays"
    assert ctl.now.state(job) == "PENDING"
    assert "paused by" in ctl("status", "rest")
    nodeset, = ctl.json("status", "rest")["nodesets"]
    assert nodeset["nodes_by_state"]["drained"] == "rest-[1-2]" and "idle" not in nodeset["states"], nodeset
    event, = ctl.history("pause")
    assert event["nodeset"] == "rest" and "new image" in event["why"]
    ctl.cluster.scancel(job)


def test_resume_ends_the_pause_and_the_sweeper_leaves_it_so(ctl):
    assert "2 nodes undrained" in ctl("resume", "rest")
    job = ctl.submit("rest")
    ctl.queued("rest-1")
    ctl.cluster.wait_for(lambda: not ctl.stopped("rest"), 60, "the end of it")
    assert ctl.now.state(job) == "CONFIGURING"
    assert "neither paused nor stopped" in ctl("resume", "rest")
    ctl("pause", "nowhere", code=2)


def test_a_pause_outlives_the_power_down_of_a_node_that_was_up(ctl):
    """Powering down takes the drain away: it comes back, and no job gets the node in between."""
    ctl.wait(lambda now: now.state(ctl.jobs["runs"]) == "COMPLETED", 120, "a job to have run")
    ctl("pause", "runs")
    job = ctl.submit("runs")
    before = ctl.seq()
    ctl.wait(lambda now: all({"POWERED_DOWN", "DRAIN"} <= now.words(node) and "POWERING_DOWN" not in now.words(node)
                             for node in ("runs-0", "runs-1")), 120, "both nodes to be off and drained")
    assert ctl.now.state(job) == "PENDING"
    assert not [call for call in ctl.writes(before) if call["method"].endswith("resizeRequests.insert")
                and "runs-" in str(call["body"])]
    ctl("resume", "runs")
    ctl.wait(lambda now: now.state(job) in ("CONFIGURING", "RUNNING", "COMPLETED"), 120, "the job to go on")


# Sweep

def test_sweep_beside_the_daemon_only_looks(ctl):
    ctl("sweep", "--once", code=1)
    assert "every 1 s" in ctl.error and str(ctl.cluster.sweeper.pid) in ctl.error
    before = ctl.seq()
    assert ctl.json("sweep", "--once", "--dry-run")["dry_run"] is True
    ctl("sweep", code=2)
    assert before <= ctl.seq()


def test_sweep_does_a_round_where_there_is_no_daemon(ctl):
    ctl.cluster.stop_sweeper()
    ctl.cluster.scancel(ctl.jobs["plan"])
    ctl.wait(lambda now: now.state(ctl.jobs["plan"]) == "CANCELLED", 60, "the end of the job")
    rounds = [ctl.json("sweep", "--once") for _ in range(2)]
    what = [(action["rule"], action["what"]) for done in rounds for action in done["actions"]]
    assert ("stale_request", "cancel_request") in what, what
    ctl.wait(lambda now: not now.active("plan-0"), 60, "the request to be cancelled")


# What slurm-conf prints

def test_slurmctld_takes_what_slurm_conf_prints(ctl, build):
    lines = ctl.json("slurm-conf")["slurm_conf"]
    text = [line for line in lines if line and not line.startswith("#")]
    assert "SuspendExcNodes=stat-0" in text
    programs = {key: ctl.cluster.dir / "bin" / name for key, name in
                (("ResumeProgram", "flex-resume"), ("SuspendProgram", "flex-suspend"),
                 ("ResumeFailProgram", "flex-resume-fail"))}
    # Where they are here, not where they would be installed.
    text = [f"{key}={programs.get(key, value)}" for key, _, value in (line.partition("=") for line in text)]
    with Cluster([], build=build, emulator=None, programs={}, slurm_extra=text, name="printed") as other:
        nodes = other.scontrol("show", "node", "plan-3")
        assert "CLOUD" in nodes and "POWERED_DOWN" in nodes
        partition = other.scontrol("show", "partition", "rest")
        assert "MaxTime=6-23:45:00" in partition and "OverSubscribe=EXCLUSIVE" in partition
        log = other.log("slurmctld.log")
        assert not re.search(r"(?i)unrecognized key|pars(e|ing) error|invalid (node|partition)", log), log
