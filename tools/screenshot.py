#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes docs/images/status-page*.png anew: a private Slurm with jobs that run and wait, and the sweeper's page over it.

Usage: tools/screenshot.py [BUILD_DIR [IMAGE_DIR]]
"""
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "test" / "cluster"), str(ROOT / "test" / "support")]

from browser import Browser, why_missing  # noqa: E402
from page_site import PageSite  # noqa: E402
from small_png import shrink  # noqa: E402

# With the first few of the actions; a phone's page is long.
SHOTS = (("status-page", (1280, 900), 1650, "light"), ("status-page-phone", (375, 800), 3300, "dark"))
# A picture in a repository is there for ever.
MOST_BYTES = 200_000


def shoot(url, images):
    with Browser() as window:
        for name, size, height, scheme in SHOTS:
            window.resize(*size)
            window.prefer(scheme)
            window.open(url)
            window.wait_for("!document.getElementById('content').hidden", "the page")
            time.sleep(1)  # fonts and layout
            target = images / f"{name}.png"
            window.screenshot(target, height)
            target.write_bytes(shrink(target.read_bytes()))
            print(f"{target}: {target.stat().st_size} bytes")
            if complaints := window.console():
                sys.exit(f"screenshot: the page complains: {complaints}")
            if target.stat().st_size > MOST_BYTES:
                sys.exit("screenshot: the picture is too big")


def cancel_one(site):
    """For an action or two that people know: a job that waits is cancelled."""
    job = site.submit("mistake", "g2", 4, 1)
    requests = site.cluster.emulator.requests_of
    site.cluster.wait_for(lambda: any(request.state == "ACCEPTED" for request in requests(job)), 120, "its request")
    site.cluster.scancel(job)
    site.cluster.wait_for(lambda: not any(request.is_active for request in requests(job)), 120, "it to be cancelled")


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    images = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs" / "images").resolve()
    if why_missing():
        sys.exit(f"screenshot: {why_missing()}")
    images.mkdir(parents=True, exist_ok=True)
    with PageSite(build) as site:
        print("screenshot: a Slurm is started, and jobs are submitted")
        site.begin()
        cancel_one(site)
        site.wait_shown()
        shoot(site.url(), images)


main()
