#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the reservations before the VMs' ends cost slurmctld's backfill: 672 nodes whose VMs end a quarter of an hour after each
other, 300 pending jobs that do not fit before any of these ends.

Measured on a private slurmctld with sdiag: how many jobs a backfill cycle tries and how long it takes, with a reservation for each
quarter of an hour, as it was once, and with those that flex-sweeper makes (fence-tool runs its rule).
"""
import argparse
import json
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "cluster"))

from harness.conf import Nodeset  # noqa: E402
from harness.slurm import Cluster  # noqa: E402

NODES, JOBS, QUARTER = 672, 300, 900
CYCLES = 3
# A cycle ends after this many seconds, whatever it has tried.
BF_MAX_TIME = 5


def fields(text):
    """sdiag's part about backfill."""
    part = text[text.index("Backfilling stats"):]
    found = {key.strip(): value for key, value in re.findall(r"^\s+(.+?):\s+(-?\d+)", part, re.M)}
    return {key: int(value) for key, value in found.items()}


class Bench:
    def __init__(self, cluster):
        self.cluster = cluster
        self.rows = []

    def one_per_quarter(self):
        begin = int(time.time()) // QUARTER * QUARTER + 2 * QUARTER
        for number in range(NODES):
            start = begin + number * QUARTER
            name = time.strftime("flex-eol-%Y%m%dT%H%M", time.gmtime(start))
            local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(start))
            self.cluster.scontrol("create", "reservation", f"reservationname={name}", f"starttime={local}", "duration=90",
                                  "users=root", f"nodes=n-{number}", "flags=maint,ignore_jobs")

    def as_the_sweeper(self, tool):
        done = self.cluster.sandbox.run([tool, "spread", f"n-[0-{NODES - 1}]", str(QUARTER)], env=self.cluster.env())
        return int(done.stdout.split()[0])

    def measure(self, name, reservations):
        """The mean over some cycles that began after now."""
        cluster = self.cluster
        cluster.slurm("sdiag", "--reset")
        got = {}

        def is_enough():
            got.update(fields(cluster.slurm("sdiag").stdout))
            return got.get("Total cycles", 0) > CYCLES
        cluster.wait_for(is_enough, 120, "backfill cycles", interval=1)
        row = {"name": name, "reservations": reservations, "jobs": got["Depth Mean"], "tried": got["Depth Mean (try depth)"],
               "cycle_ms": got["Mean cycle"] // 1000}
        print(f"fence:  {name:<28} {reservations:4d} reservations: {row['tried']:4d} of {JOBS} jobs tried in a backfill cycle of "
              f"{row['cycle_ms']} ms", flush=True)
        self.rows.append(row)
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build-release", type=Path)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    build = args.build if args.build.is_absolute() else ROOT / args.build
    programs = {key: ("/bin/true", "nothing") for key in ("ResumeProgram", "SuspendProgram", "ResumeFailProgram")}
    parameters = f"bf_interval=2,bf_max_time={BF_MAX_TIME},bf_window=43200,bf_max_job_test=1000,default_queue_depth=0"
    cluster = Cluster([Nodeset("n", NODES, boots=False, partition={"SuspendTime": "-1", "MaxTime": "INFINITE"})], build=build,
                      programs=programs, slurm_extra=[f"SchedulerParameters={parameters}", "SlurmctldDebug=error"],
                      invariants=False, quick_tick=False)
    with cluster:
        tool = cluster.sandbox.install(build / "test" / "bench" / "fence-tool")
        bench = Bench(cluster)
        bench.one_per_quarter()
        for number in range(JOBS):
            cluster.sbatch("-N", str(1 + number % 4), f"--time={8 + number % 5}-0")
        before = bench.measure("a quarter of an hour each", NODES)
        # It finds the others and puts its own in their place.
        made = bench.as_the_sweeper(tool)
        after = bench.measure("buckets that grow", made)
    if args.json:
        args.json.write_text(json.dumps(bench.rows, indent=1) + "\n", encoding="utf-8")
    return 0 if made <= 54 and after["tried"] >= before["tried"] else 1


if __name__ == "__main__":
    sys.exit(main())
