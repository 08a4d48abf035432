#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How close flex-resume and flex-suspend come to what the API itself costs.

A private slurmctld holds real jobs; the programs run against the emulator at 40 ms a call and 500 ms an operation, or
against the address in BENCH_ENDPOINT. Reported are ratios: wall time over the round trips that depend on each
other (one look, the writes in waves of max_in_flight, the group's insert operation where there is no group yet), and
calls over the fewest possible. What a round trip costs is measured beside each run, with a client that only reads the
bytes: so a busy machine slows down both. Peak memory and the time from start to the first call are of the process itself.
At the end the goals, and which of them are missed: then the exit status is 1.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "cluster"))

from harness.conf import Nodeset  # noqa: E402
from harness.emulator import Emulator  # noqa: E402
from harness.slurm import Cluster  # noqa: E402

LATENCY, OPERATION, IN_FLIGHT = 0.040, 0.500, 16
PROJECT, REGION, ZONE, TEMPLATE, CLUSTER = "flex-test", "us-central1", "us-central1-a", "flex-template", "flextest"
LOOK_CALLS = 3  # the group, its requests, its entries: all at once, so one round trip
RATIO_GOAL = 1.3  # suspend and resume of 1,000 nodes, over the API's own time
FIRST_CALL_GOAL = 15.0  # milliseconds from start to the first call, on an idle machine


def meets(name, value, goal, unit=""):
    """Prints a figure beside its goal; whether it is met."""
    is_met = value <= goal
    print(f"goal:   {name:<52} {value:8.2f}{unit}, at most {goal:g}{unit}: {'met' if is_met else 'MISSED'}", flush=True)
    return is_met


class Api:
    """The few calls the bench itself needs; only what any Compute Engine has."""

    def __init__(self, url):
        self.url = url
        self.base = f"{url}/compute/v1/projects/{PROJECT}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            path if path.startswith("http") else self.base + path, data=data, method=method,
            headers={"Authorization": "Bearer bench", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=130) as reply:
            return json.load(reply)

    def quiet(self, method, path, body=None):
        try:
            return self.call(method, path, body)
        except urllib.error.HTTPError:
            return {}

    def wait(self, operation):
        while operation.get("status") != "DONE":
            operation = self.call("POST", f"/regions/{REGION}/operations/{operation['name']}/wait")

    def group(self, nodeset):
        return f"/regions/{REGION}/instanceGroupManagers/{CLUSTER}-{nodeset}"

    def create_group(self, nodeset):
        self.wait(self.call("POST", f"/regions/{REGION}/instanceGroupManagers", {
            "name": f"{CLUSTER}-{nodeset}", "targetSize": 0, "baseInstanceName": nodeset,
            "description": f"slurm-flex-start cluster={CLUSTER} nodeset={nodeset}",
            "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": f"zones/{ZONE}"}]},
            "updatePolicy": {"instanceRedistributionType": "NONE", "type": "OPPORTUNISTIC"},
            "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
            "versions": [{"instanceTemplate": f"projects/{PROJECT}/global/instanceTemplates/{TEMPLATE}"}]}))

    def create_template(self):
        self.quiet("POST", "/global/instanceTemplates", {"name": TEMPLATE, "properties": {
            "machineType": "a3-ultragpu-8g", "scheduling": {
                "provisioningModel": "FLEX_START", "instanceTerminationAction": "DELETE",
                "onHostMaintenance": "TERMINATE", "maxRunDuration": {"seconds": "604800"}}}})

    def remove_group(self, nodeset):
        """Requests cancelled, VMs and group gone."""
        group = self.group(nodeset)
        for request in self.quiet("GET", f"{group}/resizeRequests?maxResults=500").get("items", []):
            if request["state"] == "ACCEPTED":
                self.quiet("POST", f"{group}/resizeRequests/{request['name']}/cancel")
        operation = self.quiet("DELETE", group)
        if operation:
            self.wait(operation)

    def await_vms(self, nodeset, count):
        for _ in range(600):
            listed = self.call("POST", f"{self.group(nodeset)}/listManagedInstances")
            if sum(i.get("instanceStatus") == "RUNNING" for i in listed.get("managedInstances", [])) >= count:
                return
            time.sleep(0.2)
        raise RuntimeError(f"{count} VMs of {nodeset} did not come up")

    def look_s(self, nodeset):
        """How long the API takes for the longest list of a look, from a client that does nothing with it."""
        request = urllib.request.Request(
            f"{self.base}{self.group(nodeset)}/listManagedInstances?maxResults=500", data=b"", method="POST",
            headers={"Authorization": "Bearer bench"})
        started = time.monotonic()
        with urllib.request.urlopen(request, timeout=130) as reply:
            reply.read()
        return time.monotonic() - started

    def call_s(self):
        """How long a small call takes."""
        started = time.monotonic()
        self.call("GET", f"/regions/{REGION}/instanceGroupManagers?maxResults=1")
        return time.monotonic() - started

    def latency(self):
        """The median of a small read, and an insert operation's own time."""
        times = []
        for _ in range(11):
            started = time.monotonic()
            self.call("GET", f"/regions/{REGION}/instanceGroupManagers?maxResults=1")
            times.append(time.monotonic() - started)
        call = statistics.median(times)
        started = time.monotonic()
        self.create_group("probe")
        whole = time.monotonic() - started
        self.remove_group("probe")
        return call, max(0.0, whole - call)


def free_of(cluster, jobs_wanted, nodes_each, partition):
    """Submits jobs and waits until they hold nodes; the resume file that slurmctld would give for them."""
    cluster.sbatch(f"--partition={partition}", "--time=4:00:00", f"--nodes={nodes_each}",
                   f"--array=1-{jobs_wanted}", script="sleep 600")

    def allocated():
        text = cluster.slurm("squeue", "-h", "-p", partition, "-t", "CF,R", "-o", "%A %N").stdout
        rows = [line.split() for line in text.splitlines() if len(line.split()) == 2]
        return rows if len(rows) == jobs_wanted else None

    rows = cluster.wait_for(allocated, 120, f"{jobs_wanted} jobs of {partition} to get nodes")
    nodeset = cluster.nodesets[partition]
    return {"jobs": [{"job_id": int(job), "nodes": nodes} for job, nodes in rows], "all_nodes": nodeset.hostlist}


class Bench:
    def __init__(self, cluster, api, build, latency):
        self.cluster, self.api, self.build = cluster, api, build
        self.call_s, self.operation_s = latency
        self.rows = []

    def run(self, program, hostlist, resume_file=None):
        """One run: wall seconds, peak RSS in KiB, calls as the program counts them, seconds to the first call."""
        cluster = self.cluster
        log = cluster.dir / "log" / "bench.log"
        log.unlink(missing_ok=True)
        env = {"SLURM_CONF": str(cluster.conf), "GCE_METADATA_HOST": self.api.url.partition("//")[2]}
        if resume_file:
            env["SLURM_RESUME_FILE"] = str(cluster.sandbox.write("out/resume.json", json.dumps(resume_file)))
        nodeset = hostlist.partition("-")[0].partition("[")[0]
        look = self.api.look_s(nodeset) if self.has_group(nodeset) else self.api.call_s()
        call = self.api.call_s()
        identity = cluster.sandbox._identity()
        path = cluster.sandbox.install(self.build / program.partition("-")[2] / program)
        seen = self.journal_end()
        wall_start, started = time.time(), time.monotonic()
        child = subprocess.Popen([str(path), "--log-file", str(log), hostlist], env=env, cwd="/", **identity)
        _, status = os.waitpid(child.pid, 0)
        wall = time.monotonic() - started
        text = log.read_text(encoding="utf-8")
        if os.waitstatus_to_exitcode(status) != 0:
            raise RuntimeError(f"{program} {hostlist} failed:\n{text}")
        # Not wait4's figure: that also counts what this script had before exec.
        calls, peak = (int(text.rpartition(f" {key}=")[2].split()[0]) for key in ("calls", "peak_kib"))
        first = self.first_call(seen)
        return wall, peak, calls, None if first is None else first - wall_start, look, call

    def has_group(self, nodeset):
        return bool(self.api.quiet("GET", self.api.group(nodeset)))

    def journal_end(self):
        try:
            entries = self.api.call("GET", f"{self.api.url}/_emulator/journal")
        except urllib.error.HTTPError:
            return None
        entries = entries.get("entries", entries) if isinstance(entries, dict) else entries
        return max((entry["seq"] for entry in entries), default=-1)

    def first_call(self, seen):
        if seen is None:
            return None
        entries = self.api.call("GET", f"{self.api.url}/_emulator/journal")
        entries = entries.get("entries", entries) if isinstance(entries, dict) else entries
        return min(entry["started"] for entry in entries if entry["seq"] > seen)

    def report(self, name, writes, runs, has_group=True):
        fewest = LOOK_CALLS + writes + (0 if has_group else 2)

        def floor_of(run):
            *_, look, call = run
            return look + call * math.ceil(writes / IN_FLIGHT) + (0 if has_group else call + self.operation_s)

        # The run in the middle by its own ratio: what it was measured beside belongs to it.
        middle = sorted(runs, key=lambda run: run[0] / floor_of(run))[len(runs) // 2]
        wall, floor = middle[0], floor_of(middle)
        calls = max(run[2] for run in runs)
        rss = max(run[1] for run in runs) / 1024
        firsts = [run[3] for run in runs if run[3] is not None]
        # The fastest: others on the machine can only make it slower.
        first = f"{min(firsts) * 1000:8.1f}" if firsts else "       -"
        print(f"{name:<32} {wall * 1000:8.0f} {floor * 1000:8.0f} {wall / floor:6.2f} {calls:6d} {calls / fewest:6.2f} "
              f"{rss:7.1f} {first}", flush=True)
        self.rows.append({"name": name, "wall_ms": round(wall * 1000, 1), "floor_ms": round(floor * 1000, 1),
                          "wall_ratio": round(wall / floor, 3), "calls": calls,
                          "call_ratio": round(calls / fewest, 3), "peak_rss_mib": round(rss, 1),
                          "first_call_ms": round(min(firsts) * 1000, 1) if firsts else None})

    def meets_goals(self):
        rows = {row["name"]: row for row in self.rows}
        firsts = [row["first_call_ms"] for row in self.rows if row["first_call_ms"] is not None]
        met = [meets("suspend of 1,000 nodes over the API's own time", rows["suspend 1000"]["wall_ratio"], RATIO_GOAL, " x"),
               meets("resume of 1,000 nodes over the API's own time", rows["resume 1 x 1000"]["wall_ratio"], RATIO_GOAL,
                     " x")]
        if firsts:
            met.append(meets("start to first call", min(firsts), FIRST_CALL_GOAL, " ms"))
        return all(met)

    def resume(self, nodeset, jobs, nodes_each, repeat, has_group=True):
        resume_file = free_of(self.cluster, jobs, nodes_each, nodeset) if not hasattr(self, f"_{nodeset}") \
            else getattr(self, f"_{nodeset}")
        setattr(self, f"_{nodeset}", resume_file)
        runs = []
        for _ in range(repeat):
            self.api.remove_group(nodeset)
            if has_group:
                self.api.create_group(nodeset)
            runs.append(self.run("flex-resume", self.cluster.nodesets[nodeset].hostlist, resume_file))
        suffix = "" if has_group else ", no group yet"
        self.report(f"resume {jobs} x {nodes_each}{suffix}", jobs, runs, has_group)

    def suspend(self, nodeset, count, repeat):
        hostlist = self.cluster.nodesets[nodeset].hostlist
        runs = []
        for _ in range(repeat):
            self.api.remove_group(nodeset)
            self.api.create_group(nodeset)
            self.run("flex-resume", hostlist, getattr(self, f"_{nodeset}"))
            self.api.await_vms(nodeset, count)
            runs.append(self.run("flex-suspend", hostlist))
        self.report(f"suspend {count}", math.ceil(count / 1000), runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build-release", type=Path)
    parser.add_argument("--repeat", default=5, type=int)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    build = args.build if args.build.is_absolute() else ROOT / args.build
    other = os.environ.get("BENCH_ENDPOINT", "").rstrip("/")
    shapes = {"one": (1, 1), "sixtyfour": (1, 64), "hundred": (100, 4), "thousand": (1, 1000)}
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", strict_tokens=False)
    cluster = Cluster(
        [Nodeset(name, jobs * nodes, boots=False, partition={"ResumeTimeout": "65000", "SuspendTime": "-1"})
         for name, (jobs, nodes) in shapes.items()],
        build=build, emulator=emulator, programs={key: ("/bin/true", "nothing") for key in (
            "ResumeProgram", "SuspendProgram", "ResumeFailProgram")},
        slurm_extra=["MaxArraySize=1001"], log_level="info", quick_tick=False,
        flex_extra={"cluster": CLUSTER, "credentials": "metadata",
                    **({"api": {"endpoint": other, "max_in_flight": IN_FLIGHT}} if other else {})})
    with cluster:
        if not other:
            emulator.config(latency_ms=0, operation_ms=0, boot_delay_ms=0, auto_templates=True, hook=[],
                               capacity={ZONE: -1}, quota={"ACTIVE_RESIZE_REQUESTS": 1000})
        api = Api(other or emulator.url)
        api.create_template()
        if not other:
            emulator.config(latency_ms=LATENCY * 1000, operation_ms=OPERATION * 1000)
        latency = api.latency() if other else (LATENCY, OPERATION)
        print(f"endpoint {'BENCH_ENDPOINT' if other else 'emulator'}: {latency[0] * 1000:.0f} ms a call, "
              f"{latency[1] * 1000:.0f} ms an operation; median of {args.repeat} runs; max_in_flight {IN_FLIGHT}")
        print(f"{'':<32} {'wall ms':>8} {'floor':>8} {'ratio':>6} {'calls':>6} {'ratio':>6} {'RSS MiB':>7} {'1st call':>8}")
        bench = Bench(cluster, api, build, latency)
        bench.resume("one", 1, 1, args.repeat)
        bench.resume("one", 1, 1, args.repeat, has_group=False)
        bench.resume("sixtyfour", 1, 64, args.repeat)
        bench.resume("hundred", 100, 4, args.repeat)
        bench.resume("thousand", 1, 1000, args.repeat)
        for nodeset, count in (("one", 1), ("sixtyfour", 64), ("hundred", 400), ("thousand", 1000)):
            bench.suspend(nodeset, count, args.repeat)
    if args.json:
        args.json.write_text(json.dumps(bench.rows, indent=1) + "\n", encoding="utf-8")
    return 0 if bench.meets_goals() else 1


if __name__ == "__main__":
    sys.exit(main())
