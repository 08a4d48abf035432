# SPDX-License-Identifier: GPL-2.0-or-later
"""The status page of a running sweeper in a real browser: what it shows is what slurmctld and the cloud say."""
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

import browser  # noqa: E402

HOSTILE = "<b>sweep</b>"
# A time of today, or of another day: an hour before midnight that is most of what is to come.
CLOCK = r"(?:\w{3}, \w+ \w+ )?\d\d:\d\d"
pytestmark = pytest.mark.skipif(bool(browser.why_missing()), reason=browser.why_missing() or "-")


@pytest.fixture(scope="module")
def page_site(build):
    from page_site import PageSite
    with PageSite(build, HOSTILE) as site:
        site.begin()
        site.wait_shown()
        yield site


@pytest.fixture(scope="module")
def window(page_site):
    with browser.Browser() as window:
        window.open(page_site.url())
        window.wait_for("!document.getElementById('content').hidden", "the page")
        yield window


def rows(window, section):
    """The texts of its rows."""
    return window.js("return [...document.querySelectorAll(arguments[0])].map((row) => row.innerText.replace(/\\s+/g, ' '));", section)


def row_with(window, section, words):
    found = [row for row in rows(window, section) if words in row]
    assert len(found) == 1, (words, rows(window, section))
    return found[0]


def test_the_queue_shows_who_waits_and_what_google_says(page_site, window):
    waiting = page_site.jobs["finetune"]
    row = row_with(window, "#queue tbody tr", f"{waiting} finetune")
    request = page_site.cluster.emulator.requests_of(waiting)[0]
    assert "queued" in row and re.search(r"2\d min since", row), row
    assert re.search(rf"expects VMs {CLOCK} \(in", row) and re.search(rf"gives up {CLOCK} ?in", row), row
    assert f" 8 {page_site.cluster.job(waiting)['NodeList']} " in row, (row, request)


def test_a_name_is_never_more_than_a_name(page_site, window):
    assert f"{page_site.jobs[HOSTILE]} {HOSTILE} " in row_with(window, "#queue tbody tr", "sweep")


def test_the_timeline_shows_vms_their_ends_and_their_jobs(page_site, window):
    for name in ("train-llm", "eval", "cfd-wing"):
        job = page_site.jobs[name]
        row = row_with(window, ".lane", f"{job} {name}")
        nodes = page_site.cluster.job(job)["NodeList"]
        assert row.startswith(nodes) and " up " in row and re.search(r"\d (min|h \d+ min) left ends", row), row
    assert "no job" in row_with(window, ".lane", "viz-0 ")
    bars = window.js("return [...document.querySelectorAll('.vm')].map((bar) => bar.getBoundingClientRect().width);")
    assert len(bars) == 5 and min(bars) > 5, bars


def test_nodesets_and_totals_are_the_clusters(page_site, window):
    text = window.text("#nodesets")
    assert re.search(r"a3u[\s\S]*24 nodes[\s\S]*6 busy[\s\S]*12 waiting for a VM[\s\S]*6 off", text), text
    assert re.search(r"h4d[\s\S]*3 busy[\s\S]*5 off", text), text
    totals = window.text("#totals")
    assert re.search(r"Jobs waiting\s+3", totals) and re.search(r"VMs\s+11\s", totals), totals


def test_actions_have_their_why(window):
    window.click("#actions-notes")
    assert rows(window, "#actions tbody tr")
    assert all(row.strip() for row in rows(window, "#actions tbody td:last-child"))


def test_nothing_was_complained_about(page_site, window):
    assert window.console() == []
    assert window.js("return performance.getEntriesByType('resource').map((entry) => new URL(entry.name).pathname)"
                     ".filter((path) => path !== '/status.json');") == []


def test_a_phone_in_the_dark(page_site, window, build):
    for size, scheme, name in (((1280, 900), "light", "page"), ((375, 800), "dark", "page-phone")):
        window.resize(*size)
        window.prefer(scheme)
        assert window.js("return document.documentElement.scrollWidth <= innerWidth;")
        target = build / "test-logs" / f"{name}.png"
        target.parent.mkdir(exist_ok=True)
        window.screenshot(target)
        assert target.stat().st_size > 20_000


def test_it_is_live(page_site, window):
    """A job that ends leaves the queue, without anybody touching the page."""
    page_site.cluster.scancel(page_site.jobs["render"])
    window.wait_for("!document.getElementById('queue').innerText.includes('render')", "the job to leave the queue")


def test_a_sweeper_that_stops_is_told(page_site, window):
    page_site.cluster.stop_sweeper()
    window.wait_for("/does not answer/.test(document.getElementById('alerts').innerText)", "the alarm")
