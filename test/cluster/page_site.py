# SPDX-License-Identifier: GPL-2.0-or-later
"""A small site with something of everything for the status page: jobs that run, that wait, and static nodes."""
import json
import urllib.request

from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster

A, B, C = ("us-central1-a", "us-central1-b", "us-central1-c")
# A margin that is longer than the time which is skipped: no job outlives its VMs.
MARGIN = {"run_duration_margin": "90m"}
STAYS = {"SuspendTime": "INFINITE"}
# No room for those that come later.
CAPACITY = {A: 6, B: 5, C: 0}
SETTINGS = {"sweeper": {"interval": "1s", "listen": "127.0.0.1:0", "finished_request_grace": "1h", "empty_mig_grace": "1h"}}
SLEEP = "sleep 36000"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class PageSite:
    """The cluster and its jobs, by name. A context manager."""

    def __init__(self, build, sweep_name="lr-sweep"):
        emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity=CAPACITY, eta_seconds=2400)
        nodesets = [Nodeset("a3u", 24, {"zones": [A], "provision_timeout": "6h", "max_nodes": 14, **MARGIN}),
                    Nodeset("h4d", 8, {"zones": [B], **MARGIN}),
                    Nodeset("viz", 2, {"zones": [B], "static_nodes": "viz-[0-1]"}, STAYS),
                    Nodeset("g2", 64, {"zones": [C, B], **MARGIN}, boots=False)]
        self.cluster = Cluster(nodesets, build=build, emulator=emulator, name="hpc", sweeper=True, flex_extra=SETTINGS)
        self.jobs = {}
        self.sweep_name = sweep_name

    def __enter__(self):
        self.cluster.start()
        return self

    def __exit__(self, *_):
        self.cluster.close()

    def submit(self, name, partition, nodes, hours):
        self.jobs[name] = self.cluster.sbatch("-J", name, "-p", partition, "-N", str(nodes), f"--time={hours}:00:00", script=SLEEP)
        return self.jobs[name]

    def begin(self):
        """Those that run first: they take the room."""
        running = [self.submit("train-llm", "a3u", 4, 3), self.submit("eval", "a3u", 2, 1), self.submit("cfd-wing", "h4d", 3, 2)]
        self.cluster.wait_for(lambda: all(self.cluster.emulator.requests_of(job) for job in running), 120, "their requests")
        self.cluster.wait_for(lambda: len(self.cluster.emulator.vms()) == 11, 120, "the VMs and the static ones")
        self.submit("finetune", "a3u", 8, 2)
        self.cluster.wait_for(lambda: self.cluster.emulator.requests_of(self.jobs["finetune"]), 120, "the request that waits")
        # So that it has waited, and VMs have lived, for a while.
        self.cluster.emulator.advance(1500)
        self.submit(self.sweep_name, "g2", 32, 2)
        self.submit("render", "a3u", 4, 2)
        for job in running:
            self.cluster.wait_job(job, "RUNNING", 180)

    def url(self):
        """Where the sweeper serves its page."""
        address = self.cluster.wait_for(lambda: self.cluster.sweeper_status().get("http"), 60, "the sweeper to listen")
        return f"http://{address}/"

    def get(self, path):
        with OPENER.open(self.url() + path, timeout=30) as answer:
            return answer.read()

    def status(self):
        return json.loads(self.get("status.json"))

    def wait_shown(self):
        """Until the sweeper itself tells what is to be looked at."""
        def is_there():
            states = {job["name"]: job["state"] for job in self.status()["jobs"]}
            requests = [request for request in self.status()["requests"] if request["state"] == "ACCEPTED" and request.get("estimate")]
            return list(states.values()).count("running") == 3 and list(states.values()).count("waiting") == 3 and len(requests) >= 2
        self.cluster.wait_for(is_there, 120, "the sweeper to see it all")
