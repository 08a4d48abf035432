# SPDX-License-Identifier: GPL-2.0-or-later
"""Records what happens in a cluster, for `invariants.py`.

slurm-recorder looks at slurmctld (one process that stays, two small calls a look: about a hundredth of a core);
the emulator keeps the lives of its VMs and requests; what the test does as an admin passes through here.
"""
import calendar
import contextlib
import json
import re
import signal
import time

from . import conf
from .hostlist import expand
from .timeline import Record

PROGRAM = "slurm-recorder"
BOOK = "slurm-recorder.jsonl"
ASKS = ("createInstances", "bulkInsert")
# Those of the default that tests use.
DEFAULT_REPAIRS = ["xid", "ecc error", "gpu error", "dcgm error", "check_nv", "check_gpu"]
# slurmctld writes it when somebody asks for it, not when it does so by itself.
ASKED_DOWN = re.compile(r"\[(\S+?)\.\d+\] (?:powering down node|power down request repeating for node) (\S+)")
# How long slurmctld may take to answer the recorder's last question.
LAST_LOOK = 20
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text, default):
    """'15m' or '1h30m' to seconds."""
    if text is None:
        return default
    if isinstance(text, (int, float)):
        return float(text)
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|[smhd])", text))


def nodeset_facts(nodeset, config, excluded=()):
    """What the invariants need to know of a nodeset. `suspend_time` None: never."""
    partition = {**conf.PARTITION, **nodeset.partition}
    suspend = partition.get("SuspendTime")
    settings = {**config.get("defaults", {}), **config.get("nodesets", {}).get(nodeset.name, {})}
    return {"nodes": nodeset.nodes,
            "suspend_time": None if suspend in (None, "INFINITE", "-1") else float(suspend),
            "suspend_timeout": float(partition.get("SuspendTimeout") or 30),
            "excluded": [node for node in nodeset.nodes if node in excluded],
            "margin": seconds(settings.get("run_duration_margin"), 900),
            "incomplete_timeout": seconds(settings.get("incomplete_timeout"), 600),
            "boot_timeout": seconds(settings.get("boot_timeout"), 900),
            "repair_reasons": settings.get("repair_reasons", DEFAULT_REPAIRS),
            "is_queued": settings.get("mode", "queued") == "queued"}


def static_nodes(config):
    return {name: expand(settings.get("static_nodes", "")) for name, settings in config.get("nodesets", {}).items()}


def asked_nodes(entry):
    """The nodes of a call that asks for VMs without a resize request."""
    body = entry["body"] if isinstance(entry["body"], dict) else {}
    named = list((body.get("perInstanceProperties") or {}).items())
    return ([item["name"] for item in body.get("instances", []) if isinstance(item, dict) and "name" in item]
            + [value.get("name", key) for key, value in named])


class Recorder:
    """Of one cluster, from its start to its end."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.began = time.time()
        self.admin, self.configs, self.rounds, self.limits = [], [], [], []
        self.has_sweeper = False
        self._child = None
        self._down = {"slurmctld": [], "emulator": [], "sweeper": []}
        self._since = {"sweeper": self.began}

    def start(self, port):
        """As soon as slurmctld's port is known: it waits for it."""
        sandbox = self.cluster.sandbox
        source = self.cluster.build / "test" / "cluster" / PROGRAM
        if not source.exists():
            raise FileNotFoundError(f"{source} is not built (try: ninja -C {self.cluster.build} test/cluster/{PROGRAM})")
        self._child = sandbox.spawn([sandbox.install(source), port], BOOK, env=self.cluster.env())

    @contextlib.contextmanager
    def looks_away(self):
        """For a test that counts the calls to slurmctld."""
        self._child.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._child.send_signal(signal.SIGCONT)

    # What is told

    def is_down(self, what):
        self._since.setdefault(what, time.time())

    def is_up(self, what):
        self.has_sweeper = self.has_sweeper or what == "sweeper"
        if what in self._since:
            self._down[what].append((self._since.pop(what), time.time()))

    def config(self, settings):
        self.configs.append((time.time(), static_nodes(settings)))

    def round(self, began, is_good):
        if is_good:
            self.rounds.append((began, time.time()))

    def command(self, arguments):
        """An scontrol of the test: an admin's word on nodes is remembered."""
        words = dict(word.partition("=")[::2] for word in arguments if "=" in word)
        words = {key.lower(): value for key, value in words.items()}
        if arguments[:1] == ("update",) and "jobid" in words and "timelimit" in words:
            self.limits.append((time.time(), int(re.match(r"\d+", words["jobid"])[0])))
        if arguments[:1] == ("update",) and "nodename" in words and "state" in words:
            self.admin.append({"at": time.time(), "nodes": expand(words["nodename"]), "state": words["state"].lower(),
                               "reason": words.get("reason", "")})

    def powers_up(self, hostlist):
        """The test runs flex-resume itself and without a job, as slurmctld does for an admin's POWER_UP."""
        self.admin.append({"at": time.time(), "nodes": expand(hostlist), "state": "power_up", "reason": "by hand"})

    # What was recorded

    def _read_book(self):
        jobs, nodes = {}, {}
        for line in self.cluster.log(BOOK).splitlines():
            if not line.startswith("{") or not line.endswith("}"):
                continue  # libslurm's own words, or half a line
            look = json.loads(line)
            if "job" in look:
                jobs.setdefault(look["job"], []).append(look)
            elif "node" in look:
                nodes.setdefault(look["node"], []).append(look)
        return jobs, nodes

    def _wait_for_a_look(self):
        """What happened just now may not have been looked at yet."""
        deadline, since = time.time() + LAST_LOOK, time.time()
        while "slurmctld" not in self._since and self._child is not None and self._child.poll() is None:
            looks = re.findall(r'"at":([\d.]+),"look"', self.cluster.log(BOOK)[-4096:])
            if looks and float(looks[-1]) > since or time.time() > deadline:
                return
            time.sleep(0.1)

    def _power_downs(self):
        return [(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")), node)
                for stamp, node in ASKED_DOWN.findall(self.cluster.log("slurmctld.log"))]

    def data(self):
        """All of it, as JSON can hold it."""
        cluster, ended = self.cluster, time.time()
        self._wait_for_a_look()
        jobs, nodes = self._read_book()
        history, journal = cluster.emulator.whole_history(), cluster.emulator.whole_journal()
        excluded = [node for line in cluster.slurm_extra for key, _, value in [line.partition("=")]
                    if key.lower() == "suspendexcnodes" for node in expand(value)]
        sweeper = cluster.flex_config.get("sweeper", {})
        down = {what: parts + ([(self._since[what], ended)] if what in self._since else [])
                for what, parts in self._down.items()}
        # Without a sweeper and without rounds the programs that slurmctld runs have to do it all.
        if not self.has_sweeper and not self.rounds:
            down["sweeper"] = []
        calls = [{"at": entry["started"], "method": entry["method"], "nodes": asked_nodes(entry)} for entry in journal
                 if entry["method"].endswith(ASKS) and entry["status"] == 200
                 and entry["body"] not in cluster.emulator.by_hand]
        return {"cluster": cluster.name, "began": self.began, "ended": ended,
                "nodesets": {name: nodeset_facts(nodeset, cluster.flex_config, excluded)
                             for name, nodeset in cluster.nodesets.items() if nodeset.configured},
                "history": history, "calls": calls, "jobs": jobs, "nodes": nodes, "admin": self.admin,
                "configs": self.configs, "limits": self.limits, "power_downs": self._power_downs(),
                "down": down, "rounds": self.rounds,
                "by_hand": [body["name"] for body in cluster.emulator.by_hand if isinstance(body, dict) and "name" in body],
                "graces": {"orphan_grace": seconds(sweeper.get("orphan_grace"), 120),
                           "interval": seconds(sweeper.get("interval"), 15)}}

    @staticmethod
    def record_of(data):
        return Record(**data)
