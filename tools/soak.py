#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Random trouble for a private Slurm, the emulator and the programs; exit 0 if all is well in the end.

Jobs come and go, VMs die, leases end, capacity comes and goes, calls fail, and slurmctld, the
sweeper and the cloud are restarted. Then the trouble ends, and nothing may be left or unexplained.
"""
import argparse
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "cluster"))

from soak.report import soak  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--seed", type=int, default=None, help="default: the time")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--settle", type=float, default=300, help="seconds to come to rest (300)")
    parser.add_argument("--save-logs", action="store_true", help="also if all is well")
    args = parser.parse_args()
    seed = int(time.time()) if args.seed is None else args.seed
    build = args.build.resolve()
    problems = soak(build, seed, args.minutes * 60, args.settle,
                    logs=build / "test-logs" / f"soak-{seed}", always_save=args.save_logs)
    print("all is well" if not problems else f"{len(problems)} conditions are not met")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
