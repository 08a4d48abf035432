# SPDX-License-Identifier: GPL-2.0-or-later
"""The sweeper's manners: lock, signals, systemd, its files, and which host it works on."""
import json
import os
import re
import signal
import socket
import time

import pytest


@pytest.fixture(autouse=True)
def all_started(stage, still):
    """The scenes of test_sweeper.py and the day's rounds run from now on, beside all that is here."""


@pytest.fixture
def daemon(desk):
    """The desk's daemon, in its second round or later; ended with the test."""
    cluster = desk.cluster
    cluster.start_sweeper()
    cluster.wait_for(lambda: heartbeat(cluster), 20, "the first round")
    cluster.wait_for(lambda: cluster.sweeper_status().get("pid") == cluster.sweeper.pid
                     and cluster.sweeper_status()["round"] >= 2, 20, "two rounds")
    yield cluster
    cluster.kill_sweeper()


def heartbeat(cluster):
    path = cluster.sweeper_dir / "heartbeat"
    return int(float(path.read_text(encoding="ascii"))) if path.exists() else 0


# One at a time

def test_a_second_one_ends_at_once_and_names_the_first(daemon, desk):
    began = time.monotonic()
    done = desk.run("--once")
    assert done.returncode == 1
    assert time.monotonic() < began + 5
    assert re.search(rf"\b{daemon.sweeper.pid}\b", done.stderr), done.stderr
    assert daemon.sweeper.poll() is None


def test_a_dry_run_needs_no_lock(daemon, desk):
    done = desk.run("--once", "--dry-run")
    assert done.returncode == 0, done.stderr


def test_the_lock_of_a_killed_one_is_free(daemon, desk):
    daemon.kill_sweeper()
    done = desk.run("--once")
    assert done.returncode == 0, done.stderr


# Signals

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_asked_to(daemon, number):
    began = time.monotonic()
    daemon.sweeper.send_signal(number)
    assert daemon.sweeper.wait(10) == 0
    assert time.monotonic() < began + 3


def test_a_bad_file_is_refused_on_sighup_and_a_good_one_is_taken(daemon):
    path, log = daemon.dir / "etc" / "flex-start.yaml", "flex-sweeper.log"
    good = path.read_text(encoding="utf-8")
    start = len(daemon.log(log))
    try:
        daemon.sandbox.write("etc/flex-start.yaml", good + "swoop: 1\n", 0o600)
        daemon.reload_sweeper()
        daemon.wait_for(lambda: "swoop" in daemon.log(log)[start:], 10, "the bad file to be logged")
        assert re.search(r"flex-start\.yaml:\d+:\d+", daemon.log(log)[start:])
        before = daemon.sweeper_status()["round"]
        daemon.wait_for(lambda: daemon.sweeper_status()["round"] >= before + 2, 10, "it to go on")
        assert daemon.sweeper.poll() is None
        # A good one with a longer interval: rounds become rare.
        settings = {**daemon.flex_config, "sweeper": {**daemon.flex_config["sweeper"], "interval": "30s"}}
        kept = daemon.flex_config
        daemon.write_flex_config(settings)
        daemon.flex_config = kept
        daemon.reload_sweeper()
        daemon.wait_for(lambda: "event=reloaded" in daemon.log(log)[start:], 10, "the good file to be taken")
        time.sleep(1.5)
        before = daemon.sweeper_status()["round"]
        time.sleep(3)
        assert daemon.sweeper_status()["round"] <= before + 1
    finally:
        daemon.sandbox.write("etc/flex-start.yaml", good, 0o600)
    began = time.monotonic()
    daemon.sweeper.terminate()
    assert daemon.sweeper.wait(10) == 0, "it slept through SIGTERM"
    assert time.monotonic() < began + 3


# Files

def test_status_is_whole_at_any_moment_and_says_what_there_is(daemon):
    path, rounds, beats = daemon.sweeper_dir / "status.json", set(), set()
    end = time.monotonic() + 3.3
    while time.monotonic() < end:
        status = json.loads(path.read_text(encoding="utf-8"))
        assert {"cluster", "pid", "round", "last_round", "nodesets", "requests", "actions"} <= set(status)
        rounds.add(status["round"])
        beats.add(heartbeat(daemon))
    assert status["cluster"] == "desk" and status["pid"] == daemon.sweeper.pid
    assert len(rounds) >= 3 and len(beats) >= 3
    assert abs(max(beats) - time.time()) < 5
    assert "left" in str(status["nodesets"])


def test_its_files_are_for_nobody_else_to_write(daemon):
    for path in [daemon.sweeper_dir, *daemon.sweeper_dir.iterdir()]:
        assert not path.stat().st_mode & 0o022, path


# systemd

def test_it_tells_systemd_how_it_is(desk):
    cluster = desk.cluster
    path = cluster.dir / "run" / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        cluster.sandbox.own(path)
        os.chmod(path, 0o777)
        server.settimeout(0.2)
        heard = []

        def hear(word, seconds=15):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if any(line.startswith(word) for message in heard for line in message.splitlines()):
                    return True
                try:
                    heard.append(server.recv(65536).decode())
                except TimeoutError:
                    pass
            return False

        child = desk.spawn("--log-file", cluster.dir / "log" / "notify.log", log="notify.out",
                           env={"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "2000000"})
        try:
            for word in ("READY=1", "STATUS=", "WATCHDOG=1"):
                assert hear(word), (word, heard)
            heard.clear()
            # Within the time that systemd gives it, again and again.
            assert hear("WATCHDOG=1", 2), heard
            child.terminate()
            assert hear("STOPPING=1"), heard
            assert child.wait(10) == 0
        finally:
            child.kill()
            path.unlink()


# Which host

def other_conf(cluster, host):
    text = re.sub(r"^SlurmctldHost=.*$", f"SlurmctldHost={host}", cluster.conf.read_text(encoding="utf-8"),
                  flags=re.MULTILINE)
    assert host in text
    return cluster.sandbox.write("etc/other.conf", text)


def test_where_slurmctld_is_not_it_stays_passive(desk):
    cluster = desk.cluster
    conf = other_conf(cluster, "elsewhere(203.0.113.1)")
    state = cluster.dir / "run" / "elsewhere"
    config = desk.config("elsewhere.yaml", sweeper={"state_dir": str(state)})
    calls = len(desk.emulator.journal())
    log = cluster.dir / "log" / "elsewhere.log"
    child = desk.spawn("--config", config, "--log-file", log, log="elsewhere.out", env={"SLURM_CONF": str(conf)})
    try:
        cluster.wait_for(lambda: log.exists() and "event=passive" in log.read_text(encoding="utf-8"), 20,
                         "it to say that it is passive")
        time.sleep(2.2)
        assert child.poll() is None
        assert len(desk.emulator.journal()) == calls
        assert log.read_text(encoding="utf-8").count("event=passive") == 1, "it says so again and again"
        # The controllers share the state directory: it is the other one's to lock and to write.
        assert not list(state.iterdir())
        began = time.monotonic()
        child.terminate()
        assert child.wait(10) == 0
        assert time.monotonic() < began + 3
    finally:
        child.kill()


def test_where_slurmctld_never_is_it_needs_no_directory(desk):
    """A login node or a VM with the controller's files."""
    cluster = desk.cluster
    conf = other_conf(cluster, "elsewhere(203.0.113.1)")
    config = desk.config("nowhere.yaml", sweeper={"state_dir": str(cluster.dir / "run" / "no" / "such")})
    log = cluster.dir / "log" / "nowhere.log"
    child = desk.spawn("--config", config, "--log-file", log, log="nowhere.out", env={"SLURM_CONF": str(conf)})
    try:
        cluster.wait_for(lambda: log.exists() and "none of slurm.conf's SlurmctldHosts" in log.read_text(encoding="utf-8"), 20,
                         "it to say that it is not needed here")
        assert child.poll() is None
        child.terminate()
        assert child.wait(10) == 0
    finally:
        child.kill()


def test_another_name_for_this_host_is_this_host(desk):
    conf = other_conf(desk.cluster, "elsewhere(127.0.0.1)")
    calls = len(desk.emulator.journal())
    done = desk.run("--once", env={"SLURM_CONF": str(conf)})
    assert done.returncode == 0, done.stderr
    assert len(desk.emulator.journal()) > calls
