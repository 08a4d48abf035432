#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The sweeper's status page in a real browser, against texts that a sweeper could have written.

Usage: page_test.py INDEX_HTML SOURCE_ROOT
"""
import base64
import contextlib
import hashlib
import http.server
import json
import re
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

PAGE = Path(sys.argv[1]).read_bytes()
sys.path.insert(0, str(Path(sys.argv[2]) / "test" / "support"))

import browser  # noqa: E402
import plain_tests  # noqa: E402
import status_fixtures as fixtures  # noqa: E402

SKIPPED = 77
TOKEN = "s3cret-of-this-test"
PHONE, DESK = (375, 800), (1280, 900)


def policy():
    """What the sweeper sends with the page, no more."""
    scripts = re.findall(rb"<script>(.*?)</script>", PAGE, re.DOTALL)
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in scripts)
    return (f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class Sweeper(http.server.ThreadingHTTPServer):
    """Serves the page, and what `status` makes; None: it is out of order."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = fixtures.small
        self.token = ""
        self.paths = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.paths.append(self.path)
        if self.path == "/":
            self.answer(200, PAGE, "text/html; charset=utf-8")
        elif self.path != "/status.json":
            self.answer(404, b"no such page\n", "text/plain")
        elif self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self.answer(401, b"a token is needed\n", "text/plain")
        elif self.server.status is None:
            self.answer(503, b"away\n", "text/plain")
        else:
            self.answer(200, json.dumps(self.server.status()).encode(), "application/json")

    def answer(self, code, body, kind):
        self.send_response(code)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", policy()), ("X-Content-Type-Options", "nosniff")):
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the next page has been opened
            self.wfile.write(body)


def show(status, size=DESK, scheme="light"):
    """The page with this status, shown."""
    SERVER.status, SERVER.token = status, ""
    WINDOW.resize(*size)
    WINDOW.prefer(scheme)
    WINDOW.console()
    WINDOW.open(SERVER.url())
    WINDOW.wait_for("!document.getElementById('content').hidden", "the page to show something")


def is_narrow_enough():
    wide = WINDOW.js("return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1"
                     " && !e.closest('.unseen, thead, .track')).map((e) => e.tagName + '.' + e.className).slice(0, 5);")
    assert wide == [], wide
    assert WINDOW.js("return document.documentElement.scrollWidth <= innerWidth;")


def luminance(colour):
    def linear(value):
        value /= 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
    red, green, blue = (linear(float(part)) for part in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrasts():
    """Of the text in each kind of element with what is behind it."""
    pairs = WINDOW.js("""
      const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
      return [...document.querySelectorAll('h1, h2, p, dt, dd, small, td, th, .pill, .alert, .on, .tick, .soon, label, button')]
        .filter((e) => e.innerText && e.getClientRects().length > 0)
        .map((e) => [e.tagName + '.' + e.className, getComputedStyle(e).color, behind(e)]);""")
    for what, front, back in pairs:
        low, high = sorted((luminance(front), luminance(back)))
        yield (high + 0.05) / (low + 0.05), what, front, back


# ---- what is shown ----

def it_shows_nodesets_queue_timeline_and_actions():
    show(fixtures.small)
    head = WINDOW.text("header")
    assert "hpc" in head and "us-central1" in head and "active" in head and "live" in head, head
    sets = WINDOW.text("#nodesets")
    assert re.search(r"a3u[\s\S]*16 busy[\s\S]*8 waiting for a VM[\s\S]*40 off", sets), sets
    queue = WINDOW.text("#queue")
    for words in ("102 finetune", "bob", "queued", "25 min", "ZONE_RESOURCE_POOL_EXHAUSTED", "expects VMs", "gives up", "waits its turn"):
        assert words in queue, (words, queue)
    lanes = WINDOW.text("#timeline")
    for words in ("a3u-[0-15]", "16 VMs · up · us-central1-a", "job 101 train", "no job"):
        assert words in lanes, (words, lanes)
    assert re.search(r"2 h (30|2\d) min left", lanes), lanes
    assert "no powered-up node claims it" in WINDOW.text("#actions")
    assert not WINDOW.js("return document.querySelector('#alerts p');")


def jobs_without_a_request_in_the_queue_say_what_they_wait_for():
    show(fixtures.served)
    rows = WINDOW.js("return [...document.querySelectorAll('#queue tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' '));")
    assert len(rows) == 3, rows
    for row, name, words in zip(rows, ("102 finetune", "103 eval", "104 bulk"), ("VMs boot", "asked for again", "VMs are coming")):
        assert name in row and words in row, rows
    assert re.search(r"again (?:\w{3}, \w+ \w+ )?\d\d:\d\d ?in 2 min", rows[1]), rows[1]


def bars_are_where_the_times_are():
    show(fixtures.small)
    WINDOW.js("document.getElementById('timeline-span').value = 'all'; document.getElementById('timeline-span')"
              ".dispatchEvent(new Event('change'));")
    start, end, now, track = WINDOW.js("""
      const lane = [...document.querySelectorAll('.lane')].find((e) => e.innerText.includes('g2-'));
      const bar = lane.querySelector('.vm').getBoundingClientRect(), track = lane.querySelector('.track').getBoundingClientRect();
      return [bar.left - track.left, bar.right - track.left,
        parseFloat(getComputedStyle(lane.querySelector('.track'), '::after').left), track.width];""")
    assert abs(start) < 3 and end < track, (start, end, track)
    assert abs((now - start) / (end - start) - 300000 / 604800) < 0.02, (start, now, end)


def times_are_the_viewers_with_utc_in_the_title():
    WINDOW.cdp("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    try:
        show(fixtures.small)
        text, title, stamp = WINDOW.js("const t = document.querySelector('#actions time'); return [t.innerText, t.title, t.dateTime];")
    finally:
        WINDOW.cdp("Emulation.setTimezoneOverride", timezoneId="")
    hour = int(stamp[11:13])
    assert title == f"{stamp[:10]} {stamp[11:19]} UTC", (title, stamp)
    assert text.endswith(f"{(hour + 9) % 24:02d}{stamp[13:19]}"), (text, stamp)


def clock_of(stamp, zone, now):
    """What the page writes for a time: its time of day, and whether its day must be there, too."""
    time_there = datetime.fromisoformat(stamp.replace("Z", "+00:00")).astimezone(zone)
    return f"{time_there:%H:%M}", str(time_there.day) if time_there.date() != now.astimezone(zone).date() else ""


def is_clock(text, stamp, zone, now):
    clock, day = clock_of(stamp, zone, now)
    return text == clock if not day else bool(re.fullmatch(rf"\w{{3}}, .*\b{day}\b.* {clock}", text))


def a_time_of_another_day_says_which():
    """At every hour: in a zone where it is noon, and in one where it is the hour before midnight."""
    for hour in (12, 23):
        hours = (hour - datetime.now(timezone.utc).hour + 12) % 24 - 12
        zone = timezone(timedelta(hours=hours))
        # The names of these zones count the other way round.
        WINDOW.cdp("Emulation.setTimezoneOverride", timezoneId=f"Etc/GMT{-hours:+d}")
        try:
            before = datetime.now(timezone.utc)
            show(fixtures.small)
            times = WINDOW.js("return [...document.querySelectorAll('#queue time')].map((t) => [t.innerText, t.dateTime]);")
            after = datetime.now(timezone.utc)
        finally:
            WINDOW.cdp("Emulation.setTimezoneOverride", timezoneId="")
        assert len(times) > 2, times
        for text, stamp in times:
            assert is_clock(text, stamp, zone, before) or is_clock(text, stamp, zone, after), (hour, text, stamp)
        has_day = [text for text, _ in times if "," in text]
        assert has_day or hour == 12, times


def an_empty_cluster_says_so():
    show(fixtures.status)
    text = WINDOW.text()
    for words in ("None are configured.", "Nobody waits for VMs.", "There are no VMs.", "Nothing has been done"):
        assert words in text, (words, text)
    assert WINDOW.console() == []


def what_was_not_looked_at_is_not_told():
    sets = [fixtures.nodeset("a3u", {}, nodes=64)]
    show(lambda: fixtures.status(looked=False, state="starting", last_complete_round="", started=fixtures.iso(-2), nodesets=sets))
    for part in ("#nodesets", "#queue", "#timeline"):
        assert WINDOW.text(part) == "Not looked yet.", (part, WINDOW.text(part))
    show(lambda: fixtures.status(looked=False, state="passive", why="slurmctld is in charge on head2", nodesets=sets))
    assert "see the page of the sweeper that is active" in WINDOW.text("#nodesets") and "head2" in WINDOW.text("#alerts")
    assert "64" not in WINDOW.text("#totals") and WINDOW.console() == []


def trouble_is_loud():
    show(fixtures.troubled)
    alerts = WINDOW.text("#alerts")
    for words in ("decides nothing", "HTTP 503", "Nodeset a3u is stopped", "3 boots in a row", "leaked"):
        assert words in alerts, (words, alerts)
    assert WINDOW.js("return document.getElementById('alerts').getAttribute('role');") == "alert"
    trouble = WINDOW.text("#trouble")
    for words in ("a3u-9", "no node wants it", "2 attempts, 1 refusal", "it stays drained"):
        assert words in trouble, (words, trouble)
    queue = WINDOW.text("#queue")
    assert "failed" in queue and "again" in queue and "QUOTA_EXCEEDED" in queue, queue


def what_became_of_an_action_is_told():
    show(fixtures.troubled)
    rows = WINDOW.js("return [...document.querySelectorAll('#actions tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' '));")
    assert "moment missed" in rows[0] and "×" not in rows[0], rows
    assert "failed" in rows[1] and "×37 since" in rows[1] and "compute.instances.delete" in rows[1], rows
    show(fixtures.small)
    assert "failed" not in WINDOW.text("#actions") and not WINDOW.js("return document.querySelector('#actions .pill');")


def a_pause_is_told_and_is_no_alarm():
    paused = "paused by ann: new image"
    show(lambda: fixtures.status(nodesets=[fixtures.nodeset("a3u", {"powered_down": 4}, stopped=paused, paused=paused)]))
    assert paused in WINDOW.text("#nodesets .pill"), WINDOW.text("#nodesets")
    assert not WINDOW.js("return document.querySelector('.alert.error:not([hidden])');")


def an_old_round_is_loud():
    show(lambda: fixtures.status(last_complete_round=fixtures.iso(-7200), now=fixtures.iso(-7200), why="slurmctld: no answer"))
    alerts = WINDOW.text("#alerts")
    assert "nobody looks after the VMs" in alerts and "slurmctld: no answer" in alerts, alerts
    assert "silent" in WINDOW.text("#state")


def a_clock_that_is_wrong_is_no_alarm():
    """An hour off, but going on: the page sees it change."""
    show(lambda: fixtures.status(interval_seconds=1, last_complete_round=fixtures.iso(-3600), now=fixtures.iso(-3600)))
    WINDOW.wait_for("!document.querySelector('#alerts p')", "the alarm to end")
    assert " s ago" in WINDOW.text("#round"), WINDOW.text("#round")


def actions_can_be_searched():
    show(fixtures.small)
    assert "tell job" not in WINDOW.text("#actions")
    WINDOW.click("#actions-notes")
    assert "tell job" in WINDOW.text("#actions")
    WINDOW.type("#actions-filter", "orphan a3u-30")
    assert "tell job" not in WINDOW.text("#actions") and "delete instances" in WINDOW.text("#actions")
    WINDOW.type("#actions-filter", "nothing like it")
    assert "Nothing is found." in WINDOW.text("#actions")


def it_goes_on_by_itself():
    started = time.time()
    show(lambda: fixtures.status(interval_seconds=1, cluster=f"hpc{int(time.time() - started) // 2}"))
    first = WINDOW.text("h1")
    WINDOW.wait_for(lambda: WINDOW.text("h1") != first, "the next status")


# ---- many, narrow, dark, hostile ----

def ten_thousand_nodes_are_shown_at_once_and_stay_usable():
    show(fixtures.big)
    # Far more than it takes: the machine may be busy.
    assert WINDOW.js("const start = performance.now(); window.dispatchEvent(new Event('resize')); return performance.now() - start;") < 5000
    assert WINDOW.js("return document.querySelectorAll('.lane').length;") == 40
    WINDOW.click("#timeline-more")
    assert WINDOW.js("return document.querySelectorAll('.lane').length;") == 300
    WINDOW.type("#timeline-filter", "1017")
    assert WINDOW.js("return document.querySelectorAll('.lane').length;") == 1
    assert "10,000 nodes" in WINDOW.text("#totals") and WINDOW.console() == []


def what_is_left_out_is_announced():
    show(lambda: {**fixtures.big(), "active_requests": 130, "requests_omitted": 400, "jobs_waiting_omitted": 1700, "jobs_running_omitted": 21,
                  "vms_omitted": 1000, "jobs": [job for job in fixtures.big()["jobs"] if job["id"] != 2099]})
    assert "and 30 requests, 1,700 jobs more" in WINDOW.text("#queue"), WINDOW.text("#queue")[-200:]
    assert "100+" in WINDOW.text("#queue-title") and re.search(r"Google's queue\s+130", WINDOW.text("#totals")), WINDOW.text("#totals")
    assert "7,000 VMs" in WINDOW.text("#timeline-title"), WINDOW.text("#timeline-title")
    assert "and 1,000 VMs more; 21 running jobs without name and bar" in WINDOW.text("#timeline")
    assert "2099" in WINDOW.text("#queue") and "no longer waiting" not in WINDOW.text("#queue")
    assert "1799 waiting" in WINDOW.js("return document.title;"), WINDOW.js("return document.title;")


def a_phone_needs_no_scrolling_sideways():
    for status in (fixtures.small, fixtures.troubled, fixtures.big, fixtures.hostile, fixtures.status):
        show(status, PHONE)
        is_narrow_enough()
        WINDOW.resize(320, 700)
        is_narrow_enough()


def a_phone_shows_a_short_queue_and_the_rest_when_asked():
    show(fixtures.big, PHONE)
    assert WINDOW.js("return document.querySelectorAll('#queue tbody tr').length;") == 5
    heights = WINDOW.js("return [...document.querySelectorAll('#queue tbody tr')].map((row) => row.offsetHeight);")
    assert max(heights) < 100, heights
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" not in WINDOW.text("#queue")
    WINDOW.click("#queue tbody tr:nth-child(2) .tell")
    assert WINDOW.text("#queue").count("ZONE_RESOURCE_POOL_EXHAUSTED") == 1
    is_narrow_enough()
    WINDOW.js("document.dispatchEvent(new Event('visibilitychange'));")
    time.sleep(1)
    assert WINDOW.text("#queue").count("ZONE_RESOURCE_POOL_EXHAUSTED") == 1, "it was closed by the next status"
    WINDOW.click("#queue-more")
    assert WINDOW.js("return document.querySelectorAll('#queue tbody tr').length;") == 100
    WINDOW.resize(*DESK)
    assert not WINDOW.js("return document.querySelector('.tell').offsetParent;")


def text_can_be_read_in_light_and_dark():
    for scheme in ("light", "dark"):
        for status in (fixtures.small, fixtures.troubled):
            show(status, DESK, scheme)
            poor = [found for found in contrasts() if found[0] < 4.5]
            assert poor == [], (scheme, poor)
        back = luminance(WINDOW.js("return getComputedStyle(document.body).backgroundColor;"))
        assert back < 0.05 if scheme == "dark" else back > 0.8, (scheme, back)


def hostile_text_is_only_text():
    show(fixtures.hostile)
    WINDOW.click("#actions-notes")
    text = WINDOW.text()
    assert text.count("<script>window.broken = 1</script>") > 15, text
    assert WINDOW.js("return [window.broken || 0, document.querySelectorAll('main script, img').length];") == [0, 0]
    assert WINDOW.console() == []


def it_is_built_of_what_screen_readers_know():
    show(fixtures.big, PHONE)
    assert WINDOW.js("return [...document.querySelectorAll('table')].every((t) => t.caption && t.getAttribute('role') === 'table');")
    assert WINDOW.js("return [...document.querySelectorAll('section')].every((s) => document.getElementById(s.getAttribute('aria-labelledby')));")
    assert WINDOW.js("return [...document.querySelectorAll('input, select')].every((i) => i.labels.length === 1);")
    assert WINDOW.js("return [...document.querySelectorAll('.stack')].every((b) => /600 busy/.test(b.getAttribute('aria-label')));")


# ---- the server ----

def it_loads_nothing_but_its_status():
    SERVER.paths.clear()
    show(fixtures.small)
    assert set(SERVER.paths) == {"/", "/status.json"}, SERVER.paths
    assert not re.search(rb"(?:src|href)=[\"'](?!data:,)|url\(|@import|https?://", PAGE), "something from elsewhere"
    assert WINDOW.console() == []


def a_token_is_asked_for_once():
    SERVER.status, SERVER.token = fixtures.small, TOKEN
    WINDOW.open(SERVER.url())
    WINDOW.wait_for("!document.getElementById('login').hidden", "the question for the token")
    assert WINDOW.js("return document.getElementById('content').hidden;")
    WINDOW.type("#token", "wrong")
    WINDOW.click("#login button")
    WINDOW.wait_for("/does not take/.test(document.getElementById('login').innerText)", "the refusal")
    WINDOW.type("#token", TOKEN)
    WINDOW.click("#login button")
    WINDOW.wait_for("!document.getElementById('content').hidden", "the page")
    assert TOKEN not in WINDOW.js("return location.href + document.cookie + JSON.stringify(localStorage);")
    WINDOW.open(SERVER.url())
    WINDOW.wait_for("!document.getElementById('content').hidden", "the page again, without a question")
    WINDOW.click("#forget")
    assert not WINDOW.js("return document.getElementById('login').hidden;")
    assert WINDOW.js("return sessionStorage.length;") == 0


def a_server_that_is_away_is_told_and_found_again():
    show(fixtures.small)
    SERVER.status = None
    WINDOW.js("document.dispatchEvent(new Event('visibilitychange'));")
    WINDOW.wait_for("/does not answer since/.test(document.getElementById('alerts').innerText)", "the alarm")
    assert "away, next try in" in WINDOW.text("#link")
    assert "a3u" in WINDOW.text("#nodesets"), "what was known is gone"
    SERVER.status = fixtures.small
    WINDOW.wait_for("!document.querySelector('#alerts p')", "the alarm to end")
    assert "live" in WINDOW.text("#link")


def a_page_that_nobody_sees_asks_for_nothing():
    def hide(is_hidden):
        WINDOW.js("Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
                  "document.dispatchEvent(new Event('visibilitychange'));", is_hidden)
    show(lambda: fixtures.status(interval_seconds=1))
    hide(True)
    WINDOW.wait_for("document.hidden", "it to be hidden")
    time.sleep(1)  # for a question that was under way
    SERVER.paths.clear()
    time.sleep(3)
    assert SERVER.paths == []
    hide(False)
    WINDOW.wait_for(lambda: "/status.json" in SERVER.paths, "a question as soon as it is seen again")


def what_changed_while_nobody_looked_says_nothing_of_clocks():
    """A sweeper that made a round and then hung, while the tab was in the background for ten minutes."""
    written = [fixtures.iso()]
    show(lambda: fixtures.status(interval_seconds=1, last_complete_round=written[0], now=written[0]))
    WINDOW.js("Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
              "document.dispatchEvent(new Event('visibilitychange'));"
              "const real = Date.now; Date.now = () => real() + 600000;")
    time.sleep(2)  # for a question that was under way
    written[0] = fixtures.iso()
    WINDOW.js("Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
              "document.dispatchEvent(new Event('visibilitychange'));")
    WINDOW.wait_for("/nobody looks after the VMs/.test(document.getElementById('alerts').innerText)", "the alarm")
    time.sleep(3)
    assert "nobody looks after the VMs" in WINDOW.text("#alerts"), WINDOW.text("#alerts")


def what_is_no_status_is_told_too():
    show(fixtures.small)
    SERVER.status = lambda: {}
    WINDOW.open(SERVER.url())
    WINDOW.wait_for("document.getElementById('link').innerText === 'live'", "an answer")
    assert "Nobody waits" in WINDOW.text("#queue")
    assert WINDOW.console() == []


if browser.why_missing():
    print(f"skipped: {browser.why_missing()}")
    sys.exit(SKIPPED)
SERVER = Sweeper()
with browser.Browser(*DESK) as WINDOW:
    CODE = plain_tests.run([
        it_shows_nodesets_queue_timeline_and_actions, jobs_without_a_request_in_the_queue_say_what_they_wait_for,
        bars_are_where_the_times_are, times_are_the_viewers_with_utc_in_the_title, a_time_of_another_day_says_which,
        an_empty_cluster_says_so, what_was_not_looked_at_is_not_told, trouble_is_loud, what_became_of_an_action_is_told, a_pause_is_told_and_is_no_alarm, an_old_round_is_loud, a_clock_that_is_wrong_is_no_alarm, actions_can_be_searched,
        it_goes_on_by_itself, ten_thousand_nodes_are_shown_at_once_and_stay_usable, what_is_left_out_is_announced, a_phone_needs_no_scrolling_sideways,
        a_phone_shows_a_short_queue_and_the_rest_when_asked,
        text_can_be_read_in_light_and_dark, hostile_text_is_only_text, it_is_built_of_what_screen_readers_know,
        it_loads_nothing_but_its_status, a_token_is_asked_for_once, a_server_that_is_away_is_told_and_found_again,
        a_page_that_nobody_sees_asks_for_nothing, what_changed_while_nobody_looked_says_nothing_of_clocks, what_is_no_status_is_told_too])
sys.exit(CODE)
