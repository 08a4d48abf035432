#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds and tests the checkout on other Slurm releases, each in a bare Debian of its own.

A suite's Debian is made by debootstrap from the mirror that this machine's apt uses, kept as a tar file, and unpacked
anew for each run.
"""
import argparse
import contextlib
import re
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import bare_debian
import checkout

SUITES = ("trixie", "sid")
# All of these suites, and by name what meets Slurm most. The crash matrix, the ways, the quota and the soak are about
# our own order of calls, which is the same with any Slurm.
TESTS = (("--suite", "unit"), ("--suite", "functional"), ("--test", "cluster"), ("--test", "scenes"), ("--test", "leases"),
         ("--test", "plugin"), ("--test", "job-words"), ("--test", "examples"))
PROJECT = "srv/project"


def say(text):
    print(f"versions: {text}", flush=True)


def counts_of(output):
    """(passed, failed, skipped) by run_tests.py's last line."""
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.M)
    return tuple(int(number or 0) for number in found[-1]) if found else (0, 0, 0)


@dataclass
class Outcome:
    """How a suite went."""
    suite: str
    slurm: str = "no Slurm"
    counts: tuple = (0, 0, 0)
    failed: list = field(default_factory=list)   # names of steps
    seconds: float = 0

    def text(self):
        passed, failed, skipped = self.counts
        how = "FAILED in " + " and ".join(self.failed) if self.failed else "ok"
        return (f"{self.suite:<8} {self.slurm:<24} {how}: {passed} passed, {failed} failed, {skipped} skipped"
                f" ({self.seconds / 60:.0f} min)")


class Suite:
    """One Debian release, in which to work."""

    def __init__(self, name, args):
        self.name, self.args = name, args
        self.logs = args.directory / "logs" / name
        self.debian = self.project = None

    def run(self):
        outcome = Outcome(self.name)
        started = time.monotonic()
        bare_debian.remove(self.logs, say)
        self.logs.mkdir(parents=True)
        with open(self.logs / "output.log", "w", encoding="utf-8") as log, \
                bare_debian.BareDebian(self.name, self.args, log, say) as self.debian:
            if self.debian.root is None:
                outcome.failed.append("debootstrap")
            else:
                self.project = self.debian.root / PROJECT
                checkout.copy_to(self.project)
                self._steps(outcome)
                if outcome.failed:
                    self._save()
        outcome.seconds = time.monotonic() - started
        return outcome

    def _steps(self, outcome):
        jobs = f" -j{self.args.jobs}" if self.args.jobs else ""
        packages = f" --jobs {self.args.jobs}" if self.args.jobs else ""
        tests = shlex.join(word for pair in self.args.test for word in pair)
        for name, command in (("setup", "make setup"),
                              ("build", f"make build/build.ninja && ninja -C build{jobs}"),
                              ("tests", f"python3 tools/run_tests.py {tests}"),
                              ("demo", "make demo"),
                              ("packages", f"tools/setup.sh deb && python3 tools/build_deb.py --fast{packages}")):
            say(f"{self.name}: {name}")
            code, output = self.debian.run(command, PROJECT)
            if name == "setup":
                outcome.slurm = self._slurm()
            if name == "tests":
                outcome.counts = counts_of(output)
            if code != 0:
                outcome.failed.append(name)
                if name in ("setup", "build"):
                    return

    def _slurm(self):
        status = (self.debian.root / "var/lib/dpkg/status").read_text(encoding="utf-8")
        found = re.search(r"^Package: slurmctld\n(?:.+\n)*?Version: (\S+)", status, re.M)
        return f"Slurm {found[1]}" if found else "no Slurm"

    def _save(self):
        """What explains a failure."""
        for name in ("build/test-logs", "build/meson-logs"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copytree(self.project / name, self.logs / Path(name).name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", help=f"a release of Debian (default: {' '.join(SUITES)})")
    parser.add_argument("--test", action="append", help=f"a test's name (default: {' '.join(name for _, name in TESTS)})")
    bare_debian.add_options(parser, "flex-versions")
    args = parser.parse_args()
    try:
        bare_debian.become_root(say)
    except bare_debian.Impossible as why:
        sys.exit(f"versions: {why}")
    bare_debian.prepare(args, "versions")
    args.suite = args.suite or SUITES
    args.test = [("--test", name) for name in args.test] if args.test else TESTS
    bare_debian.catch_signals()
    outcomes = []
    for suite in args.suite:
        outcomes.append(Suite(suite, args).run())
    for outcome in outcomes:
        print(outcome.text())
    print(f"logs: {args.directory / 'logs'}")
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; everything is removed")
        sys.exit(130)
