#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the Debian packages of this checkout, for the Debian that it runs on, into build-deb/. lintian must have nothing to say.

What dpkg-buildpackage does, it does on a copy of the checkout.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import checkout

# A line about what goes on, this often.
EVERY = 10.0
# Compiled as by 'make build', so that ccache has most of it; linked and packed as always.
FAST = {"DEB_CXXFLAGS_SET": "", "DEB_CXXFLAGS_MAINT_APPEND": "", "DEB_CPPFLAGS_SET": "",
        "FLEX_MESON_OPTIONS": "-Doptimization=1 -Ddebug=false -Dwerror=true"}


def say(text):
    print(f"deb: {text}", flush=True)


def build(tree, log_file, args):
    """dpkg-buildpackage, with its whole output in a file and how far it is on the screen; its exit code."""
    options = [os.environ.get("DEB_BUILD_OPTIONS", ""), f"parallel={args.jobs}", "noautodbgsym" if args.fast else ""]
    environment = {**os.environ, "DEB_BUILD_OPTIONS": " ".join(filter(None, options)), "LC_ALL": "C.UTF-8",
                   **(FAST if args.fast else {})}
    environment.pop("MAKEFLAGS", None)  # those of the make that calls this
    with open(log_file, "w", encoding="utf-8") as log:
        process = subprocess.Popen(["dpkg-buildpackage", "-us", "-uc", "-b"], cwd=tree, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace")
        told = time.monotonic()
        for line in process.stdout:
            log.write(line)
            step = re.match(r"\[\d+/\d+\]", line)
            if step and time.monotonic() - told > EVERY:
                told = time.monotonic()
                say(f"compiling {step[0]}")
        return process.wait()


def lint(target):
    """True if lintian finds neither an error nor a warning."""
    say("lintian")
    changes = sorted(target.glob("*.changes"))
    done = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", *map(str, changes)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print("".join(f"  {line}\n" for line in done.stdout.splitlines() if line), end="", flush=True)
    return bool(changes) and done.returncode == 0


def collect(directory, target):
    """Packages and .changes; the old ones go first, so that a name with * means the new ones."""
    kept = (".deb", ".changes", ".buildinfo")
    for old in target.iterdir():
        if old.suffix in kept:
            old.unlink()
    for new in sorted(directory.iterdir()):
        if new.suffix in kept:
            shutil.move(new, target / new.name)
            if new.suffix == ".deb" and "dbgsym" not in new.name:
                print(target / new.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=checkout.ROOT / "build-deb", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at the same time")
    parser.add_argument("--fast", action="store_true", help="compiled as by 'make build': for tests")
    args = parser.parse_args()
    # Always the same place, whose name is in what the compiler writes: a second build is the same, byte by byte.
    place = args.output.absolute() / "work"
    shutil.rmtree(place, ignore_errors=True)
    tree = place / "source"
    tree.mkdir(parents=True)
    checkout.copy_to(tree)
    shutil.copytree(tree / "packaging" / "debian", tree / "debian")
    started = time.monotonic()
    say("dpkg-buildpackage")
    log = args.output / "build.log"
    code = build(tree, log, args)
    if code != 0:
        print("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[-40:]), end="")
        sys.exit(f"deb: dpkg-buildpackage ended with {code}; all of it is in {log}")
    collect(place, args.output)
    shutil.rmtree(place)
    if not lint(args.output):
        sys.exit("deb: lintian does not like them")
    say(f"done in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
