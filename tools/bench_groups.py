#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How many calls are made where every job has a group of its own: 500 groups, 100 of which wait in the queue.

A private slurmctld holds the jobs, flex-resume asks for them, the emulator serves 400. Reported are the calls of a
quiet round of flex-sweeper and those of a flex-suspend and a flex-resume of one node, and their bounds. The exit status
is 1 if one of them is exceeded.
"""
import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "cluster"))
sys.path.insert(0, str(ROOT / "tools"))

from bench import CLUSTER, ZONE, free_of  # noqa: E402
from harness.conf import Nodeset  # noqa: E402
from harness.emulator import Emulator  # noqa: E402
from harness.slurm import Cluster  # noqa: E402

GROUPS, WAITING = 500, 100
ROUND_BOUND, NODE_BOUND = 110, 6
QUIET_FROM, ROUNDS = 5, 10


class Bench:
    def __init__(self, cluster, build):
        self.cluster, self.build = cluster, build
        self.rows = []

    def run(self, program, *arguments, resume_file=None):
        """A program to its end; what it logged."""
        cluster = self.cluster
        log = cluster.dir / "log" / "bench.log"
        log.unlink(missing_ok=True)
        env = cluster.env()
        if resume_file:
            env["SLURM_RESUME_FILE"] = str(cluster.sandbox.write("out/resume.json", json.dumps(resume_file)))
        path = cluster.sandbox.install(self.build / program.partition("-")[2] / program)
        done = cluster.sandbox.run([path, "--log-file", log, *arguments], env=env, check=False, cwd="/",
                                   timeout=600)
        text = log.read_text(encoding="utf-8")
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed:\n{done.stderr}{text[-3000:]}")
        return text

    def report(self, name, calls, bound):
        print(f"calls:  {name:<44} {calls:4d}, bound {bound} (ratio {calls / bound:.2f})"
              f"{'' if calls <= bound else ': EXCEEDED'}", flush=True)
        self.rows.append({"name": name, "calls": calls, "bound": bound})

    def calls_of(self, program, hostlist, resume_file=None):
        return int(re.findall(r" calls=(\d+)", self.run(program, hostlist, resume_file=resume_file))[-1])

    def quiet_round(self):
        text = self.run("flex-sweeper", "--rounds", str(ROUNDS), "--interval", "0", "--log-level", "debug")
        return max(int(calls) for calls in re.findall(r"event=round .*calls=(\d+)", text)[QUIET_FROM:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build-release", type=Path)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    build = args.build if args.build.is_absolute() else ROOT / args.build
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", strict_tokens=False)
    own = {"mig_scope": "job", "boot_timeout": "1d"}
    cluster = Cluster(
        [Nodeset("own", GROUPS + 1, own, boots=False, partition={"ResumeTimeout": "65000", "SuspendTime": "-1"})],
        build=build, emulator=emulator, log_level="info", slurm_extra=["MaxArraySize=1001"],
        programs={key: ("/bin/true", "nothing") for key in ("ResumeProgram", "SuspendProgram", "ResumeFailProgram")},
        flex_extra={"cluster": CLUSTER}, quick_tick=False)
    with cluster:
        emulator.config(latency_ms=0, operation_ms=0, boot_delay_ms=0, auto_templates=True, hook=[],
                        capacity={ZONE: GROUPS - WAITING}, quota={"ACTIVE_RESIZE_REQUESTS": 1000, "INSTANCE_GROUP_MANAGERS": 2000})
        settings = json.loads(json.dumps(cluster.flex_config))
        settings.setdefault("api", {})["max_active_requests"] = 1000
        cluster.write_flex_config(settings)
        bench = Bench(cluster, build)
        asked = free_of(cluster, GROUPS, 1, "own")
        asked["all_nodes"] = ",".join(job["nodes"] for job in asked["jobs"])
        bench.run("flex-resume", asked["all_nodes"], resume_file=asked)
        emulator.wait(running=GROUPS - WAITING)
        bench.report(f"a quiet round, {GROUPS} groups, {WAITING} wait", bench.quiet_round(), ROUND_BOUND)
        state = emulator.state()
        served = [vm["name"] for vm in state["vms"] if vm["group"]][0]
        waits = [node for request in emulator.requests() if request.is_active for node in request.nodes][0]
        bench.report("flex-suspend of a node that has a VM", bench.calls_of("flex-suspend", served), NODE_BOUND)
        bench.report("flex-suspend of a node that waits", bench.calls_of("flex-suspend", waits), NODE_BOUND)
        job = cluster.sbatch("-p", "own", "-N1", "--time=60", script="sleep 600")
        node = cluster.wait_for(lambda: "".join(cluster.job_nodes(job)), 60, "one more job to have its node")
        one = {"jobs": [{"job_id": job, "nodes": node}], "all_nodes": node}
        bench.report("flex-resume of one more node", bench.calls_of("flex-resume", node, one), NODE_BOUND)
    if args.json:
        args.json.write_text(json.dumps(bench.rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["calls"] <= row["bound"] for row in bench.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
