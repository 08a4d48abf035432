#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the Debian packages, and tries them in a bare Debian as a new admin would.

test/functional/new_admin installs them, follows README to a first job, upgrades,
removes and purges them. Where no such Debian can be made (no root, no mounts) it says so, and skips that part.
"""
import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

import bare_debian
import checkout

# The machine of a new admin: a Slurm, and what runs the test.
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge", "systemd", "logrotate", "python3")
PROJECT = "srv/project"
DEBS = checkout.ROOT / "build-deb-test"


def say(text):
    print(f"packages: {text}", flush=True)


def build(jobs):
    """As the user that this runs as. Not where 'make deb' has those that are to be used."""
    command = [sys.executable, str(checkout.ROOT / "tools" / "build_deb.py"), "--fast", "--output", str(DEBS)]
    if subprocess.run([*command, *(["--jobs", str(jobs)] if jobs else [])], check=False).returncode != 0:
        sys.exit("packages: they cannot be built")


def try_them(args):
    """The new admin's (passed, failed)."""
    suite = bare_debian.host_release()
    with open(args.directory / "packages.log", "w", encoding="utf-8") as log, \
            bare_debian.BareDebian(suite, args, log, say, PACKAGES) as debian:
        if debian.root is None:
            return 0, 1
        project = debian.root / PROJECT
        checkout.copy_to(project)
        (project / "build-deb").mkdir()
        for deb in args.debs.glob("*.deb"):
            subprocess.run(["cp", str(deb), str(project / "build-deb")], check=True)
        say(f"a new admin on a bare {suite}")
        code, output = debian.run("apt-get -q update && python3 -B test/functional/new_admin/new_admin.py", PROJECT,
                                  is_shown=lambda line: not line.startswith(("Get:", "Hit:", "Reading", "Fetched")))
    found = re.findall(r"^(\d+) passed, (\d+) failed$", output, re.M)
    passed, failed = map(int, found[-1]) if found else (0, 1)
    return passed, max(failed, int(code != 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    bare_debian.add_options(parser, "flex-packages")
    parser.add_argument("--debs", type=Path, help="packages that are built already, and have passed lintian")
    args = parser.parse_args()
    started = time.monotonic()
    if args.debs is None:
        build(args.jobs)
        args.debs = DEBS
        sys.argv += ["--debs", str(args.debs)]
    try:
        bare_debian.become_root(say)
        bare_debian.prepare(args, "packages")
        bare_debian.catch_signals()
        passed, failed = try_them(args)
    except bare_debian.Impossible as why:
        print(f"SKIP a new admin's machine: {why}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    say(f"done in {time.monotonic() - started:.0f} s; all that was printed: {args.directory / 'packages.log'}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; everything is removed")
        sys.exit(130)
