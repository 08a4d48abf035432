# SPDX-License-Identifier: GPL-2.0-or-later
"""flex-gce-emulator as a child, and what a test asks it beside the API."""
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

REGION = "us-central1"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# A VM must not register in the second of the resume call: slurmctld would take it for an old boot.
DEFAULTS = {"latency_ms": 0, "operation_ms": 50, "boot_delay_ms": 2000, "auto_templates": False,
            "templates": [{"name": "flex-template"}], "strict_tokens": True, "eta_seconds": 3600}


def queued_status():
    """What VMs that wait are said to be: FLEX_QUEUED_STATUS (none, pending, mixed), else the emulator's default."""
    chosen = os.environ.get("FLEX_QUEUED_STATUS", "")
    return {"queued_status": chosen} if chosen else {}


@dataclass
class Request:
    """A resize request."""
    group: str
    name: str
    state: str
    nodes: list
    seconds: int
    body: dict

    @property
    def is_active(self):
        return self.state in ("CREATING", "ACCEPTED")

    @property
    def estimate(self):
        """Google's estimatedAvailabilityTime, or ''."""
        for error in (self.body.get("last_attempt") or {}).get("errors", []):
            for detail in error.get("errorDetails", []):
                when = detail.get("errorInfo", {}).get("metadatas", {}).get("estimatedAvailabilityTime")
                if when:
                    return when
        return ""


def requests_in(state):
    """The resize requests of a state, oldest first."""
    return [Request(group=body["group"], name=body["name"], state=body["state"], nodes=body["nodes"],
                    seconds=int(body["run_seconds"]), body=body)
            for body in sorted(state["requests"], key=lambda body: body["created"])]


class Nobody:
    """Watches where nothing is recorded."""

    def is_up(self, what):
        pass

    is_down = is_up


class Emulator:
    """Started by Cluster; its hook starts and ends a slurmd for each VM. `name`: of its files, where
    there are several."""

    def __init__(self, program, name="emulator", **settings):
        self.program, self.name = Path(program), name
        self.settings = {**DEFAULTS, **queued_status(), **settings}
        self.url = ""
        self.earlier = []  # the journals of those that were stopped or killed
        self.by_hand = []  # what the test itself asked for: the bodies of its calls
        self._past = []    # what is no longer in the emulator's own history
        self._cleared = [] # journals that a test has cleared
        self._sandbox = self._child = None
        self._port = 0
        self._token = ""
        self.watcher = Nobody()

    # Life

    def start(self, sandbox):
        self._sandbox = sandbox
        sandbox.install(self.program)
        self._port = sandbox.port()
        self.start_again()

    def start_again(self):
        """On the same port and with the world that it left."""
        sandbox = self._sandbox
        settings = {"hook": [str(sandbox.dir / "bin" / "vm_hook")], **self.settings}
        config = sandbox.write(f"etc/{self.name}.json", json.dumps(settings))
        port_file = sandbox.dir / "run" / f"{self.name}.port"
        port_file.unlink(missing_ok=True)
        self._token = ""
        self._child = sandbox.spawn(
            [sandbox.dir / "bin" / self.program.name, "--port", self._port, "--port-file", port_file,
             "--config", config, "--state", sandbox.dir / "run" / f"{self.name}.state"], f"{self.name}.log")
        deadline = time.monotonic() + 20
        while not (port_file.exists() and port_file.read_text(encoding="utf-8").strip()):
            if self._child.poll() is not None or time.monotonic() > deadline:
                log = (sandbox.dir / "log" / f"{self.name}.log").read_text(encoding="utf-8")
                raise RuntimeError(f"the emulator did not start\n{log}")
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{self._port}"
        if self._past:
            self._mend_history()
        self.watcher.is_up("emulator")

    def stop(self):
        """Its world stays in a file; its faults do not. The VMs run on."""
        self._keep()
        self._sandbox.stop(self._child)

    def kill(self):
        """With SIGKILL: the changes of the last 100 ms are lost."""
        self._keep()
        self._child.kill()
        self._child.wait()

    def _keep(self):
        self.earlier.append(self.journal())
        self._past += self.history()
        self.watcher.is_down("emulator")

    def _mend_history(self):
        """What ended while nobody looked, or was forgotten by one that was killed."""
        state = self.state()
        there = {("vm", vm["name"], vm["zone"]) for vm in state["vms"]}
        there |= {("request", request["group"], request["name"]) for request in state["requests"]
                  if request["state"] in ("CREATING", "ACCEPTED")}
        open_things = {}
        for event in self._past:
            is_vm = event["event"].startswith("vm_")
            key = ("vm", event["name"], event["zone"]) if is_vm else ("request", event.get("group"), event.get("name"))
            if event["event"].endswith("_made"):
                open_things[key] = event
            else:
                open_things.pop(key, None)
        for key, event in open_things.items():
            if key not in there:
                what = {"event": "vm_gone", "how": "ended while the emulator was away"} if key[0] == "vm" else \
                    {"event": "request_ended", "state": "ended while the emulator was away"}
                self._past.append({**event, **what, "time": state["time"], "virtual_time": state["virtual_time"]})

    def restart(self):
        self.stop()
        self.start_again()

    def key_file(self):
        """Credentials of the sort that `gcloud auth application-default login` writes."""
        return {"type": "authorized_user", "client_id": "test", "client_secret": "test",
                "refresh_token": "test", "token_uri": f"{self.url}/_emulator/oauth/token"}

    # HTTP

    def _call(self, verb, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=verb,
                                         headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with OPENER.open(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{verb} {path}: {error.code} {error.read().decode()}") from error

    def api(self, verb, path, body=None):
        """A call as any other client makes it: it is in the journal."""
        if body is not None:
            self.by_hand.append(body)
        if not self._token:
            form = urllib.parse.urlencode({"grant_type": "refresh_token", "refresh_token": "test",
                                           "client_id": "test", "client_secret": "test"}).encode()
            request = urllib.request.Request(f"{self.url}/_emulator/oauth/token", data=form)
            with OPENER.open(request, timeout=30) as answer:
                self._token = json.loads(answer.read())["access_token"]
        return self._call(verb, f"/compute/v1/projects/flex-test/{path}", body,
                          {"Authorization": f"Bearer {self._token}"})

    # Control

    def config(self, **settings):
        """Changes settings; maps are merged. They outlive a restart."""
        answer = self._call("POST", "/_emulator/config", settings)
        for key, value in settings.items():
            is_map = isinstance(value, dict)
            self.settings[key] = {**self.settings.get(key, {}), **value} if is_map else value
        return answer

    def configuration(self):
        """All settings as they are now."""
        return self._call("GET", "/_emulator/config")

    def set_capacity(self, **zones):
        """set_capacity(b=3): zone us-central1-b has room for 3 VMs in all; -1: no bound."""
        return self.config(capacity={f"{REGION}-{letter}": size for letter, size in zones.items()})

    def fault(self, method, kind, **more):
        """One fault of this kind at the next call of the method; more: count, after, code, …"""
        return self._call("POST", "/_emulator/faults", {"method": method, "kind": kind, "count": 1, **more})

    def faults(self):
        return self._call("GET", "/_emulator/faults")

    def clear_faults(self):
        return self._call("DELETE", "/_emulator/faults")

    def kill_instance(self, name):
        """The VM vanishes as on a host error; its entry stays in the group."""
        return self._call("POST", "/_emulator/kill_instance", {"name": name})

    def advance(self, seconds):
        """Moves the time of leases."""
        return self._call("POST", "/_emulator/advance", {"seconds": seconds})

    def reset(self):
        """All state away; settings stay."""
        return self._call("POST", "/_emulator/reset", {})

    def clear_journal(self):
        self._cleared += self.journal()
        return self._call("DELETE", "/_emulator/journal")

    def journal(self, since=0):
        return self._call("GET", f"/_emulator/journal?since={since}")

    def history(self):
        """The lives of VMs and requests since its last start."""
        return self._call("GET", "/_emulator/history")["events"]

    def whole_history(self):
        return self._past + self.history()

    def whole_journal(self):
        return [entry for life in self.earlier for entry in life] + self._cleared + self.journal()

    def calls(self, method, since=0):
        """Journal entries of a method, named by its last two words: 'resizeRequests.insert'."""
        return [entry for entry in self.journal(since)
                if entry["method"].lower().endswith(method.lower())]

    def counters(self):
        return self._call("GET", "/_emulator/counters")

    def state(self):
        return self._call("GET", "/_emulator/state")

    def reaches(self, timeout=10, **counts):
        """True as soon as the state has so many of what is named: operations=0, running=4, held=1, …"""
        query = urllib.parse.urlencode({**counts, "timeout": timeout})
        return self._call("GET", f"/_emulator/wait?{query}")["reached"]

    def wait(self, timeout=20, **counts):
        """wait(operations=0): until it is so, or the test has failed."""
        assert self.reaches(timeout, **counts), (counts, self.state())

    # State

    def groups(self):
        """By name."""
        return {group["name"]: group for group in self.state()["groups"]}

    def requests(self, group=None):
        """Resize requests, oldest first; of one group or of all."""
        return [request for request in requests_in(self.state()) if group in (None, request.group)]

    def requests_of(self, job):
        return [request for request in self.requests() if request.name.startswith(f"j{job}-")]

    def vms(self):
        """Name to status."""
        return {vm["name"]: vm["status"] for vm in self.state()["vms"]}

    def save(self, target):
        journal = [entry for life in self.earlier for entry in life] + self.journal()
        for name, content in (("journal", journal), ("state", self.state())):
            (Path(target) / f"emulator-{name}.json").write_text(json.dumps(content, indent=1),
                                                                encoding="utf-8")
