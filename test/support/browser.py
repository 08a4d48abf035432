# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, driven through chromedriver's HTTP interface (WebDriver)."""
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

# It talks to nobody but the pages of the test.
FLAGS = ("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-lcd-text", "--font-render-hinting=none", "--force-color-profile=srgb", "--lang=en-GB",
         "--disable-features=OptimizationHints,MediaRouter,Translate")
PATIENCE = 120


def why_missing():
    """What keeps a browser from being started; empty: nothing."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(missing)} not found: Debian's chromium and chromium-driver are needed" if missing else ""


class BrowserError(Exception):
    """chromedriver refused something."""


class Browser:
    """One window. A context manager."""

    def __init__(self, width=1280, height=900):
        self.dir = Path(tempfile.mkdtemp(prefix="flex-browser-"))
        self.driver = None
        try:
            self._start()
            self.resize(width, height)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self):
        environment = {**os.environ, "HOME": str(self.dir), "XDG_CONFIG_HOME": str(self.dir), "XDG_CACHE_HOME": str(self.dir)}
        log = self.dir / "driver.log"
        with log.open("wb") as out:
            self.driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"started successfully on port (\d+)", log.read_text(errors="replace"))):
            if self.driver.poll() is not None or time.monotonic() > deadline:
                raise BrowserError(f"chromedriver did not start: {log.read_text(errors='replace')}")
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{found[1]}"
        flags = [*FLAGS, f"--user-data-dir={self.dir / 'profile'}", "--no-sandbox"]
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": flags}}}})
        self.url += f"/session/{made['sessionId']}"

    def _call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def close(self):
        if self.driver is not None:
            with contextlib.suppress(Exception):
                self._call("DELETE", "")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()
        # Its children may still be writing when they are killed.
        for _ in range(20):
            shutil.rmtree(self.dir, ignore_errors=True)
            if not self.dir.exists():
                break
            time.sleep(0.1)

    # What a person does

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def js(self, script, *args):
        """The value of a function body, in the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def text(self, selector="body"):
        """What a person would read there."""
        return self.js("const found = document.querySelector(arguments[0]); return found ? found.innerText : '';", selector)

    def wait_for(self, condition, what, timeout=60):
        """Until the JavaScript expression, or the function, is true; returns its value."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition() if callable(condition) else self.js(f"return {condition};")
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {timeout} s; the page says:\n{self.text()}")
            time.sleep(0.05)

    def type(self, selector, text):
        """Into a field that is emptied first."""
        self.js("arguments[0].value = '';", self._find(selector))
        element = self._find(selector)
        self._call("POST", f"/element/{next(iter(element.values()))}/value", {"text": text})

    def click(self, selector):
        self._call("POST", f"/element/{next(iter(self._find(selector).values()))}/click")

    def _find(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})

    # How it is looked at

    def cdp(self, command, **params):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def resize(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def prefer(self, scheme):
        """'dark' or 'light'."""
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def console(self):
        """What the page and the browser complained about since the last time."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def screenshot(self, path, most_height=10_000):
        """The whole page from its top, not only what is in the window."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most_height), "scale": 1})
        Path(path).write_bytes(base64.b64decode(shot["data"]))
