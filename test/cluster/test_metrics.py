# SPDX-License-Identifier: GPL-2.0-or-later
"""The sweeper's HTTP server and its metrics, on a real Slurm: /metrics against the emulator's own counters."""
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

ROOT = Path(__file__).resolve().parents[2]
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
TOKEN = "0123456789abcdef0123456789abcdef"
INSERT = "regionInstanceGroupManagerResizeRequests.insert"
METRIC = r"flex_start_[a-z_]+"


def promtool():
    own = ROOT / ".tools/promtool"
    return str(own) if own.exists() else shutil.which("promtool")


class Meter:
    """A cluster with a sweeper, whose server is asked."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-a": 4, f"{REGION}-b": 0})
        self.cluster = Cluster([Nodeset("gpu", 2, {"zones": [f"{REGION}-a"], "retry": {"base": "1s", "max": "2s"}}),
                                Nodeset("scarce", 1, {"zones": [f"{REGION}-b"]}, boots=False)],
                               build=build, emulator=self.emulator, log_level="info")
        self.address = ""
        self.seen = set()  # names of metrics

    def begin(self):
        """Nothing has been called before the sweeper."""
        self.emulator.clear_journal()
        self.cluster.start_sweeper()
        self.find()

    def find(self):
        """Where it listens now."""
        def listens():
            status = self.cluster.sweeper_status()
            self.address = status.get("http", "") if status.get("pid") == self.cluster.sweeper.pid else ""
            return self.address
        self.cluster.wait_for(listens, 60, "the sweeper to listen")

    def configure(self, **sweeper):
        """Other keys of `sweeper`; the running one reads them."""
        config = dict(self.cluster.flex_config)
        config["sweeper"] = {key: value for key, value in {**config["sweeper"], **sweeper}.items() if value is not None}
        self.cluster.write_flex_config(config)
        self.cluster.reload_sweeper()

    def ask(self, path, verb="GET", **headers):
        """Status, headers and text."""
        request = urllib.request.Request(f"http://{self.address}{path}", method=verb,
                                         headers={name.replace("_", "-"): value for name, value in headers.items()})
        try:
            with OPENER.open(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()
        except OSError as error:  # between one server and the next
            return 0, {}, str(error)

    def metrics(self):
        status, _, text = self.ask("/metrics")
        assert status == 200, text
        self.seen.update(re.findall(rf"^({METRIC})", text, re.MULTILINE))
        return text

    def value(self, name, **labels):
        """The sum of all that have these labels."""
        total = 0
        for line in re.findall(rf"^{name}(?:{{.*}})? .*$", self.metrics(), re.MULTILINE):
            if all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def told_calls(self):
        """Method and status to count, of all programs."""
        calls = Counter()
        for line in re.findall(r"^flex_start_api_calls_total{.*$", self.metrics(), re.MULTILINE):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels["status"] != "0":
                calls[labels["method"], labels["status"]] += int(float(line.rsplit(" ", 1)[1]))
        return calls

    def made_calls(self):
        """The same as the emulator has counted it; what it has dropped was no answer."""
        return Counter({(method, status): count for method, by_status in self.emulator.counters()["calls"].items()
                        for status, count in by_status.items() if status != "0"})


@pytest.fixture(scope="module")
def running_meter(build):
    meter = Meter(build)
    with meter.cluster:
        meter.begin()
        yield meter


@pytest.fixture
def meter(running_meter):
    return running_meter


@pytest.fixture(scope="module")
def lived(running_meter):
    """A job that came and went, after a request that failed; another that waits and is cancelled."""
    meter = running_meter
    cluster, emulator = meter.cluster, meter.emulator
    emulator.fault("regionInstanceGroupManagerResizeRequests.list", "503")
    emulator.fault(INSERT, "request_failed", code="ZONE_RESOURCE_POOL_EXHAUSTED", message="none left")
    job = cluster.sbatch("-p", "gpu", "-N2", "--time=10")
    cluster.wait_for(lambda: emulator.requests_of(job), 60, "a request")
    waiting = cluster.sbatch("-p", "scarce", "-N1", "--time=10")
    cluster.wait_for(lambda: meter.value("flex_start_jobs", nodeset="scarce", state="waiting") == 1, 60, "the job to be told")
    assert meter.value("flex_start_requests_created_total", nodeset="gpu") >= 1
    cluster.wait_for(lambda: meter.value("flex_start_vms", nodeset="gpu", state="up") == 2, 120, "VMs to be told")
    assert meter.value("flex_start_lease_seconds_left_min", nodeset="gpu") > 0
    cluster.wait_job(job, "COMPLETED", timeout=180)
    cluster.wait_for(lambda: meter.value("flex_start_request_attempts_total", nodeset="scarce"), 60, "Google's reason to be told")
    cluster.scancel(waiting)
    cluster.give_back("gpu-[0-1]")
    cluster.wait_off("gpu-0", "gpu-1", "scarce-0", timeout=120)
    cluster.wait_for(lambda: not emulator.vms() and not [each for each in emulator.requests() if each.is_active], 60, "all to be gone")
    return meter


def test_it_serves_page_status_health_and_metrics(meter):
    status, headers, text = meter.ask("/")
    assert status == 200 and "<!DOCTYPE html>" in text and "default-src 'none'" in headers["Content-Security-Policy"]
    status, headers, text = meter.ask("/status.json")
    assert status == 200 and json.loads(text)["http"] == meter.address
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    meter.cluster.wait_for(lambda: meter.ask("/healthz")[2] == "ok: active\n", 60, "an active sweeper")
    assert "flex_start_build_info" in meter.metrics()
    assert meter.ask("/nowhere")[0] == 404
    assert meter.ask("/metrics", verb="HEAD")[0] == 200
    assert meter.ask("/metrics", verb="POST")[0] == 405


def test_no_other_host_name_is_answered(meter):
    port = meter.address.rpartition(":")[2]
    for path in ("/", "/metrics", "/status.json", "/healthz"):
        assert meter.ask(path, Host=f"evil.example.com:{port}")[0] == 403
        assert meter.ask(path, Host=f"localhost:{port}")[0] == 200


def test_promtool_finds_the_metrics_right(lived):
    tool = promtool()
    if tool is None:
        pytest.skip("Debian has no promtool here (tools/promtool.sh)")
    done = subprocess.run([tool, "check", "metrics"], input=lived.metrics(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_alerts_and_dashboard_ask_for_is_there(lived):
    lived.cluster.wait_for(lambda: lived.metrics() and "flex_start_actions_total" in lived.seen, 30, "actions to be told")
    for name in ("prometheus/flex-start.rules.yml", "grafana/slurm-flex-start.json"):
        wanted = set(re.findall(METRIC, (ROOT / "etc" / name).read_text(encoding="utf-8")))
        assert wanted <= lived.seen, (name, wanted - lived.seen)


def test_a_job_s_life_is_counted(lived):
    lived.cluster.wait_for(lambda: lived.value("flex_start_resume_to_up_seconds_count", nodeset="gpu") == 2, 30, "both nodes to be counted")
    assert lived.value("flex_start_queue_wait_seconds_count", nodeset="gpu") == 1
    assert lived.value("flex_start_request_failures_total", nodeset="gpu", code="ZONE_RESOURCE_POOL_EXHAUSTED", kind="no_capacity") == 1
    assert lived.value("flex_start_requests_created_total", nodeset="gpu") >= 2
    assert lived.value("flex_start_rounds_total", result="complete") > 3
    lived.cluster.wait_for(lambda: lived.value("flex_start_leaked_resources") == 0, 60, "nothing to be left")
    assert lived.value("flex_start_last_successful_round_timestamp_seconds") > time.time() - 120


def test_the_calls_of_all_programs_are_those_that_the_emulator_has_counted(lived):
    # A round at once, and then none: nobody calls any more.
    lived.configure(interval="1h")
    lived.cluster.wait_for(lambda: lived.told_calls() == lived.made_calls(), 60, "the same figures")
    text = lived.metrics()
    for program in ("flex-sweeper", "flex-resume", "flex-suspend"):
        assert f'program="{program}"' in text, program
    assert lived.value("flex_start_api_calls_total", program="flex-resume", method=INSERT) >= 1
    lived.configure(interval="1s")


def test_a_token_is_asked_for_where_there_is_one(meter):
    file = meter.cluster.sandbox.write("etc/token", TOKEN + "\n", 0o600)
    meter.configure(listen_token_file=str(file))
    meter.cluster.wait_for(lambda: meter.find() or meter.ask("/metrics")[0] == 401, 60, "a token to be needed")
    for path in ("/metrics", "/status.json"):
        assert meter.ask(path)[0] == 401
        assert meter.ask(path, Authorization="Bearer wrong")[0] == 401
        assert meter.ask(path, Authorization=f"Bearer {TOKEN}", Host="head.example.com")[0] == 200
    assert meter.ask("/healthz")[0] == 200
    assert meter.ask("/")[0] == 200
    file.chmod(0o644)
    meter.cluster.wait_for(lambda: meter.cluster.sweeper_status().get("http") == "", 60, "it not to listen with a token that all can read")
    assert "chmod go-r" in meter.cluster.log("flex-sweeper.log")
    assert TOKEN not in meter.cluster.log("flex-sweeper.log")
    meter.configure(listen_token_file=None)
    meter.cluster.wait_for(lambda: meter.find() or meter.ask("/metrics")[0] == 200, 60, "no token to be needed")


def test_a_port_that_is_taken_is_tried_again_while_it_works(meter):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        meter.configure(listen=address)
        meter.cluster.wait_for(lambda: meter.cluster.sweeper_status()["http"] == "", 60, "the port to be found taken")
        round_then = meter.cluster.sweeper_status()["round"]
        meter.cluster.wait_for(lambda: meter.cluster.sweeper_status()["round"] > round_then + 1, 60, "more rounds")
        assert f"cannot listen on {address}" in meter.cluster.log("flex-sweeper.log")
    meter.cluster.wait_for(lambda: meter.cluster.sweeper_status()["http"] == address, 60, "the port that is free again")
    meter.configure(listen="off")
    meter.cluster.wait_for(lambda: meter.cluster.sweeper_status()["http"] == "", 60, "no server")
    meter.configure(listen="127.0.0.1:0")
    meter.find()


def test_clients_that_say_nothing_hold_up_neither_rounds_nor_the_end(meter):
    host, _, port = meter.address.rpartition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(50)]
    for each in silent:
        with contextlib.suppress(OSError):  # the first ones may have been hung up on by now
            each.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
    round_then = meter.cluster.sweeper_status()["round"]
    meter.cluster.wait_for(lambda: meter.cluster.sweeper_status()["round"] > round_then + 2, 60, "more rounds")
    meter.cluster.wait_for(lambda: meter.ask("/healthz")[0] == 200, 60, "somebody who asks to be served")
    meter.cluster.sweeper.send_signal(signal.SIGTERM)
    assert meter.cluster.sweeper.wait(timeout=60) == 0
    for each in silent:
        each.close()
