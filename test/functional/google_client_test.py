#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Google's own client for Node.js, with Google's auth library, against the emulator: google_client.cjs.

Usage: google_client_test.py EMULATOR SOURCE_ROOT DIRECTORY

The client comes from npm into DIRECTORY, once; nothing of it belongs to the source. Where npm or its registry cannot be
had, the test says so and is skipped. FLEX_GOOGLE_CLIENT=NODE_MODULES takes one that is there.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAM, ROOT, DIRECTORY = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

from emulator_client import Emulator  # noqa: E402
from plain_tests import run  # noqa: E402

CLIENT = "@google-cloud/compute@6"
OLDEST = 18  # release of Node.js that the client needs
PATIENCE = 300
MODULES = Path(os.environ.get("FLEX_GOOGLE_CLIENT") or DIRECTORY / "node_modules")


def skip(why):
    print(f"SKIP: Google's client for Node.js cannot be had: {why}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def find_node():
    """Node.js of a release that the client takes, or the reason why not."""
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        skip("there is no node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    release = version.lstrip("v").partition(".")[0]
    if not release.isdigit() or int(release) < OLDEST:
        skip(f"it needs Node.js {OLDEST}, this is {version or 'none that says its version'}")
    return node


def install():
    """With npm, unless it is there. No package's own scripts are run."""
    if (MODULES / "@google-cloud" / "compute").is_dir() and (MODULES / ".package-lock.json").exists():
        return
    npm = shutil.which("npm")
    if not npm:
        skip("there is no npm")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    print(f"npm install {CLIENT} into {DIRECTORY}", flush=True)
    try:
        done = subprocess.run([npm, "install", "--prefix", DIRECTORY, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save",
                               "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000", CLIENT],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        skip(f"npm has not ended in {PATIENCE} s")
    if done.returncode != 0:
        skip(f"npm says: {last_line(done.stderr)}")


def googles_client_lives_a_whole_life():
    settings = {"operation_ms": 20, "boot_delay_ms": 20, "strict_tokens": True}
    with Emulator(PROGRAM, settings) as emulator:
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("GOOGLE_", "GCLOUD_", "CLOUDSDK_")) and not key.lower().endswith("_proxy")}
        environment.update(GCE_METADATA_HOST=f"127.0.0.1:{emulator.port}", METADATA_SERVER_DETECTION="ping-only",
                           HOME=emulator.dir.name)
        done = subprocess.run([NODE, ROOT / "test" / "functional" / "google_client.cjs", MODULES, str(emulator.port)],
                              env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        print(done.stdout, end="", flush=True)
        assert done.returncode == 0 and " steps passed" in done.stdout, done.stdout + done.stderr
        refused = [(entry["method"], entry["status"]) for entry in emulator.control("journal") if entry["status"] >= 400]
        # The three that are no part of the life, in each group: a policy in use, and things that are gone.
        assert {status for _, status in refused} <= {400, 404}, refused
        methods = {entry["method"] for entry in emulator.control("journal")}
        assert len(methods) > 40, sorted(methods)


NODE = find_node()
install()
sys.exit(run([googles_client_lives_a_whole_life]))
