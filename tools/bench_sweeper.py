#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a round of flex-sweeper costs: the decisions alone, and whole rounds over 1,000 and 5,000 VMs.

A private slurmctld and the emulator; nothing changes between the rounds, so each of them is a round on an unchanged
cluster. Reported are its calls over the bound (one list of groups, two lists a group), its time for 5,000 VMs over the
time for 1,000, and the memory. The decisions alone are measured by the processor's time: others may use the machine, too.
A missed goal is told, and the exit status is 1.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "cluster"))
sys.path.insert(0, str(ROOT / "tools"))

from bench import CLUSTER, ZONE, Api, meets  # noqa: E402
from harness.conf import Nodeset  # noqa: E402
from harness.emulator import Emulator  # noqa: E402
from harness.slurm import Cluster  # noqa: E402

GROUP_SIZE, ROUNDS = 500, 15
DECIDE_GOAL = 500.0  # milliseconds for 100,000 nodes
LINEAR_GOAL = 12.5  # times as long for ten times the nodes: caches are smaller than 100,000 nodes


def decide(build):
    """The pure part: median milliseconds by number of nodes."""
    done = subprocess.run([build / "test" / "bench" / "decide_bench"], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for row in rows:
        print(f"decide: {row['nodes']:6d} nodes {row['requests']:5d} requests {row['groups']:4d} groups  "
              f"median {row['median_ms']:6.2f} ms  worst {row['worst_ms']:6.2f} ms", flush=True)
    for small, large in zip(rows, rows[1:]):
        print(f"decide: {large['nodes'] / small['nodes']:.0f} times the nodes take "
              f"{large['median_ms'] / small['median_ms']:.1f} times as long")
    met = [meets("decide for 100,000 nodes", rows[-1]["median_ms"], DECIDE_GOAL, " ms"),
           meets("decide for ten times the nodes, 10,000 to 100,000", rows[-1]["median_ms"] / rows[-2]["median_ms"],
                 LINEAR_GOAL, " x")]
    return rows, all(met)


def populate(api, nodesets):
    for nodeset in nodesets:
        api.create_group(nodeset.name)
        api.wait(api.call("POST", f"{api.group(nodeset.name)}/resizeRequests", {
            "name": f"j0-{nodeset.name}", "description": "slurm-flex-start job=0",
            "instances": [{"name": node} for node in nodeset.nodes],
            "requestedRunDuration": {"seconds": "604800"}}))
    for nodeset in nodesets:
        api.await_vms(nodeset.name, nodeset.count)


def rounds(cluster, count):
    """Milliseconds of each round, calls of each, peak KiB; the first rounds warm up."""
    log = cluster.dir / "log" / "flex-sweeper.log"
    log.unlink(missing_ok=True)
    done = cluster.sandbox.run([cluster.program("flex-sweeper"), "--rounds", str(ROUNDS), "--interval", "0",
                                "--log-level", "debug", "--log-file", log], env=cluster.env(), check=False, cwd="/",
                               timeout=600)
    text = log.read_text(encoding="utf-8")
    if done.returncode != 0:
        raise RuntimeError(f"flex-sweeper failed:\n{done.stderr}{text[-3000:]}")
    found = re.findall(r"event=round .*actions=(\d+) .*groups=(\d+) calls=(\d+) ms=(\d+)", text)[3:]
    if any(int(actions) for actions, *_ in found):
        raise RuntimeError(f"the cluster was to stay unchanged:\n{text[-3000:]}")
    peak = int(re.search(r"event=sweeper_stopped .*peak_kib=(\d+)", text)[1]) / 1024
    groups, calls = int(found[-1][1]), max(int(row[2]) for row in found)
    millis = statistics.median(int(row[3]) for row in found)
    bound = 1 + 2 * groups
    print(f"round:  {count:6d} VMs {groups:3d} groups  {millis:6.0f} ms  {calls:3d} calls, bound {bound} "
          f"(ratio {calls / bound:.2f})  peak {peak:5.1f} MiB", flush=True)
    return {"vms": count, "groups": groups, "ms": millis, "calls": calls, "bound": bound, "peak_mib": round(peak, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build-release", type=Path)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    build = args.build if args.build.is_absolute() else ROOT / args.build
    rows, is_met = decide(build)
    figures = {"decide": rows, "rounds": []}
    for count in (1000, 5000):
        nodesets = [Nodeset(f"n{number}", GROUP_SIZE, boots=False, partition={"SuspendTime": "-1"})
                    for number in range(count // GROUP_SIZE)]
        emulator = Emulator(build / "emulator" / "flex-gce-emulator", strict_tokens=False)
        # The VMs of powered-down nodes are to stay.
        cluster = Cluster(nodesets, build=build, emulator=emulator, log_level="info", invariants=False, quick_tick=False,
                          flex_extra={"cluster": CLUSTER, "sweeper": {
                              "orphan_grace": "1d", "empty_mig_grace": "1d", "finished_request_grace": "1d"}})
        with cluster:
            emulator.config(latency_ms=0, operation_ms=0, boot_delay_ms=0, auto_templates=True, hook=[],
                            capacity={ZONE: -1}, quota={"ACTIVE_RESIZE_REQUESTS": 1000})
            populate(Api(emulator.url), nodesets)
            time.sleep(1)
            figures["rounds"].append(rounds(cluster, count))
    small, large = figures["rounds"]
    print(f"round:  {large['vms'] / small['vms']:.0f} times the VMs take {large['ms'] / max(small['ms'], 1):.1f} times as long")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
