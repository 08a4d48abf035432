#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives flexctl from outside: what it prints, writes and refuses, and its exit codes.

Usage: flexctl_test.py FLEXCTL SOURCE_ROOT
"""
import http.server
import json
import os
import pty
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import plain_tests

PROGRAM = str(Path(sys.argv[1]).resolve())
SAMPLES = Path(sys.argv[2]).resolve() / "test/data/import"
FORMATS = {"slurm_gcp": "slurm-gcp", "vertex": "vertex"}


# There is no Slurm here: what needs one says so.
NO_SLURM = {**os.environ, "SLURM_CONF": "/nonexistent/slurm.conf", "TERM": "xterm", "TZ": "UTC"}
NODES = 10000


def flexctl(*words, directory=None, text=None):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=directory, input=text, capture_output=True, text=True,
                          env=NO_SLURM)


def has_terminals():
    """Not in a chroot where nobody has mounted /dev/pts."""
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        return False
    return True


def on_terminal(test):
    def run(*args):
        if has_terminals():
            test(*args)
        else:
            print("     skipped: there are no pseudo-terminals here (/dev/pts)")
    run.__name__ = test.__name__
    return run


def in_scratch(test):
    def run():
        with tempfile.TemporaryDirectory() as directory:
            test(Path(directory))
    run.__name__ = test.__name__
    return run


def samples():
    for directory, name in FORMATS.items():
        for expect in sorted((SAMPLES / directory).glob("*.expect")):
            source = next(path for path in expect.parent.glob(expect.stem + ".*") if path != expect)
            yield name, source, expect.read_text(encoding="utf-8")


def each_sample_becomes_its_file_with_a_report():
    assert len(list(samples())) >= 6
    for name, source, expected in samples():
        done = flexctl("import", name, source.name, directory=source.parent)
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected, done.stdout
        lines = done.stderr.splitlines()
        assert all(line.startswith(source.name + ":") for line in lines), done.stderr
        assert "mapped" in lines[-1] and "assumed" in lines[-1], lines[-1]


def its_own_output_is_refused():
    """flex-start.yaml is neither a blueprint nor a nodeset."""
    done = flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/nodeset.expect")
    assert done.returncode == 2 and done.stdout == "", done.stderr


@in_scratch
def it_writes_a_file_that_the_owner_alone_can_change_and_never_over_another(scratch):
    out = scratch / "flex-start.yaml"
    words = ("import", "vertex", SAMPLES / "vertex/pool.yaml", "--output", out)
    done = flexctl(*words)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    assert "nodesets:" in out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o644, oct(out.stat().st_mode)
    out.write_text("mine")
    done = flexctl(*words)
    assert done.returncode == 2 and "--force" in done.stderr, done.stderr
    assert out.read_text() == "mine"
    assert flexctl(*words, "--force").returncode == 0
    assert "nodesets:" in out.read_text()


@in_scratch
def a_file_that_cannot_be_written_fails(scratch):
    done = flexctl("import", "vertex", SAMPLES / "vertex/pool.yaml", "--output", scratch / "no/such/dir")
    assert done.returncode == 1 and "cannot be written" in done.stderr, done.stderr


@in_scratch
def a_file_that_is_not_there_or_not_one_is_bad_usage(scratch):
    assert flexctl("import", "vertex", scratch / "none.json").returncode == 2
    done = flexctl("import", "vertex", scratch)
    assert done.returncode == 2 and "directory" in done.stderr.lower(), done.stderr


def standard_input_is_a_file_too():
    text = (SAMPLES / "slurm_gcp/config.yaml").read_text(encoding="utf-8")
    done = flexctl("import", "slurm-gcp", "/dev/stdin", text=text)
    assert done.returncode == 0 and "fluid-mega-[0-7]" in done.stdout, done.stderr


def the_report_can_be_json():
    done = flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/blueprint.yaml", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stderr)
    fates = {entry["fate"] for entry in report["report"]}
    assert fates == {"mapped", "assumed", "no equivalent", "left out"}, fates
    assert report["problems"] == []
    placed = [entry for entry in report["report"] if entry["from"].endswith("max_run_duration")]
    assert placed[0]["place"]["line"] == 32, placed


def a_reservation_is_refused_with_its_place():
    text = "nodeset_name: a\nzone: us-east4-a\ndws_flex: {enabled: true}\nreservation_name: pledge\n"
    done = flexctl("import", "slurm-gcp", "/dev/stdin", text=text)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert "/dev/stdin:4:19: reservation_name: nodeset 'a' uses a reservation" in done.stderr, done.stderr
    done = flexctl("import", "slurm-gcp", "/dev/stdin", "--json", text=text)
    assert done.returncode == 2
    assert json.loads(done.stderr)["problems"][0]["place"] == {"line": 4, "column": 19}


def nodesets_and_the_cluster_can_be_chosen():
    done = flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/config.yaml", "--nodeset", "hfour", "--cluster", "wave")
    assert done.returncode == 0, done.stderr
    assert "wave-hfour-0" in done.stdout and "mega" not in done.stdout, done.stdout
    assert flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/config.yaml", "--cluster", "A B").returncode == 2


@in_scratch
def a_log_is_kept_where_it_is_asked_for(scratch):
    log = scratch / "log"
    done = flexctl("import", "vertex", SAMPLES / "vertex/pool.yaml", "--log-file", log)
    assert done.returncode == 0 and "event=imported" in log.read_text(), done.stderr


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def site(scratch, age=3, **changes):
    """A config, and what a sweeper wrote so many seconds ago about ten thousand nodes; the words that choose it."""
    state = scratch / "state"
    state.mkdir(exist_ok=True)
    (scratch / "flex-start.yaml").write_text(
        f"cluster: hpc\nproject: p\nregion: us-central1\nsweeper: {{state_dir: {state}, listen: 'off'}}\n"
        "defaults: {zones: [us-central1-a]}\nnodesets:\n"
        f"  big: {{nodes: 'big-[0-{NODES - 1}]', static_nodes: 'big-[0-1]', instance_template: t}}\n"
        "  few: {nodes: 'few-[0-3]', instance_template: t}\n")
    (scratch / "flex-start.yaml").chmod(0o600)
    then = time.time() - age
    odd = ",".join(map(str, range(1, NODES, 2)))
    status = {
        "cluster": "hpc", "region": "us-central1", "pid": 4711, "state": "active", "interval_seconds": 15, "round": 12,
        "now": iso(then), "last_complete_round": iso(then), "last_round": {"started": iso(then), "milliseconds": 412},
        "nodesets": [{"name": "big", "nodes": NODES, "vms": NODES // 2, "jobs_waiting": 9,
                      "states": {"allocated": NODES // 2, "waiting": NODES // 2},
                      "nodes_by_state": {"waiting": f"big-[{odd}]"}},
                     {"name": "few", "nodes": 4, "vms": 0, "states": {"powered_down": 4}}],
        "requests": [{"name": f"j{n}-x", "nodeset": "big", "state": "ACCEPTED", "job": n, "attempt": 1, "n": 1,
                      "nodes": f"big-{n}", "created": iso(then - n)} for n in range(1, NODES, 2)],
        "vms": [{"nodeset": "big", "nodes": f"big-{n}", "n": 1, "status": "up", "ends": iso(then + 60 + n), "jobs": [n]}
                for n in range(0, NODES, 2)], **changes}
    (state / "status.json").write_text(json.dumps(status))
    return ("--config", scratch / "flex-start.yaml")


@in_scratch
def status_is_whole_lines_in_a_pipe_without_colours(scratch):
    done = flexctl(*site(scratch), "status")
    assert done.returncode == 0, done.stdout[:300] + done.stderr
    assert "\033" not in done.stdout and "…" not in done.stdout
    assert "10004 nodes in 2 nodesets, 5000 VMs, 0 groups, 5000 requests queued, 9 jobs waiting" in done.stdout
    assert done.stdout.count("ACCEPTED") == NODES // 2 and f",{NODES - 1}]" in done.stdout


@in_scratch
def status_says_loudly_what_is_wrong_and_fails(scratch):
    done = flexctl(*site(scratch, age=3600), "status")
    assert done.returncode == 1 and "!! the sweeper (pid 4711) has said nothing for 1 h" in done.stdout
    assert "--live" in done.stderr
    done = flexctl(*site(scratch, leaks=[{"kind": "vm", "target": "big-3", "why": "no node"}]), "status")
    assert done.returncode == 1 and "left behind: vm big-3: no node" in done.stdout
    (scratch / "state/status.json").unlink()
    done = flexctl("--config", scratch / "flex-start.yaml", "status")
    assert done.returncode == 1 and "no sweeper is to be found" in done.stderr and "slurm.conf" in done.stderr


@in_scratch
def status_of_some_nodesets_and_as_json(scratch):
    words = site(scratch)
    done = flexctl(*words, "status", "few", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and [nodeset["name"] for nodeset in report["nodesets"]] == ["few"]
    assert report["requests"] == [] and report["trouble"] == [] and report["source"]["from"] == "file"
    done = flexctl(*words, "status", "fwe")
    assert done.returncode == 2 and "no nodeset 'fwe'" in done.stderr and "big, few" in done.stderr
    done = flexctl(*words, "plan", "--nodes", "few-0", "--time", "\u009b2J\u202e")
    assert done.returncode == 2 and "--time" in done.stderr and not {"\u009b", "\u202e"} & set(done.stderr), done.stderr
    assert flexctl(*words, "status", "--watch=0").returncode == 2


class Sweeper(http.server.BaseHTTPRequestHandler):
    """What a sweeper serves; a token is needed."""

    def do_GET(self):
        is_good = self.path == "/status.json" and self.headers.get("Authorization") == "Bearer s3cret"
        self.send_response(200 if is_good else 401)
        self.end_headers()
        self.wfile.write(self.server.status if is_good else b"no")

    def log_message(self, *_):
        pass


@in_scratch
def status_asks_the_sweeper_s_port_where_its_file_is_not_for_us(scratch):
    config = site(scratch)[1]
    with http.server.HTTPServer(("127.0.0.1", 0), Sweeper) as server:
        server.status = (scratch / "state/status.json").read_bytes()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (scratch / "state/status.json").unlink()
        token = scratch / "token"
        token.write_text("s3cret\n")
        token.chmod(0o600)
        text = config.read_text().replace("'off'", f"'127.0.0.1:{server.server_port}', listen_token_file: {token}")
        config.write_text(text)
        done = flexctl("--config", config, "status", "few", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["source"]["from"] == "http"
        token.write_text("wrong")
        done = flexctl("--config", config, "status")
        assert done.returncode == 1 and "401" in done.stderr, done.stderr
        server.shutdown()


@in_scratch
def status_does_not_take_a_passive_sweeper_for_an_empty_cluster(scratch):
    config = site(scratch, age=400, state="passive", why="slurmctld is in charge on ctl2", nodesets=[], requests=[],
                  vms=[])[1]
    done = flexctl("--config", config, "status")
    assert done.returncode == 1 and "!! this host's sweeper is passive: slurmctld is in charge on ctl2" in done.stdout
    assert "has said nothing" not in done.stdout, done.stdout


class Screen:
    """A program on a terminal of its own."""

    def __init__(self, argv, rows=30, columns=100):
        self.end, terminal = pty.openpty()
        subprocess.run(["stty", "rows", str(rows), "cols", str(columns)], stdin=terminal, check=True)
        self.process = subprocess.Popen([str(word) for word in argv], stdin=terminal, stdout=terminal,
                                        stderr=terminal, env=NO_SLURM, start_new_session=True)
        os.close(terminal)
        self.text = ""

    def read(self, seconds):
        """What has come, until nothing came for so long."""
        while select.select([self.end], [], [], seconds)[0]:
            try:
                part = os.read(self.end, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            self.text += part.decode(errors="replace")
        return self.text

    def until(self, text, seconds=60):
        deadline = time.monotonic() + seconds
        while text not in self.read(0.2):
            assert time.monotonic() < deadline, f"no {text!r} in {self.text[-2000:]!r}"
        return self.text

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.end)


@in_scratch
@on_terminal
def status_fits_a_terminal(scratch):
    screen = Screen([PROGRAM, *site(scratch), "status"])
    screen.process.wait(60)
    lines = screen.read(1).splitlines()
    screen.close()
    assert len(lines) <= 30 and any("REQUESTS: " in line and "of 5000 (--all)" in line for line in lines), lines
    assert "\033[" in screen.text


@in_scratch
@on_terminal
def watch_draws_in_place_and_gives_the_screen_back(scratch):
    screen = Screen([PROGRAM, *site(scratch), "status", "--watch=1"])
    screen.until("sweeper active")
    site(scratch, age=3600)
    screen.until("has said nothing")
    screen.process.send_signal(signal.SIGINT)
    assert screen.process.wait(60) == 0
    text = screen.read(1)
    screen.close()
    assert text.startswith("\033[?1049h") and text.endswith("\033[?25h\033[?1049l"), text[-80:]
    assert all(frame.count("\n") < 30 for frame in text.split("\033[H"))


@in_scratch
@on_terminal
def watch_ends_at_once_while_it_waits_for_an_answer(scratch):
    config = site(scratch)[1]
    (scratch / "state/status.json").unlink()
    with socket.create_server(("127.0.0.1", 0)) as server:  # that never answers
        config.write_text(config.read_text().replace("'off'", f"'127.0.0.1:{server.getsockname()[1]}'"))
        screen = Screen([PROGRAM, "--config", config, "status", "--watch=1"])
        server.accept()
        screen.until("…")
        began = time.monotonic()
        screen.process.send_signal(signal.SIGINT)
        assert screen.process.wait(60) == 0 and time.monotonic() - began < 1.5, time.monotonic() - began
    text = screen.read(1)
    screen.close()
    assert text.endswith("\033[?25h\033[?1049l"), text[-80:]


@in_scratch
def watch_as_json_is_an_object_a_line(scratch):
    with subprocess.Popen([PROGRAM, *map(str, site(scratch)), "status", "few", "--watch=1", "--json"], text=True,
                          stdout=subprocess.PIPE, env=NO_SLURM) as watch:
        for _ in range(2):
            assert [nodeset["name"] for nodeset in json.loads(watch.stdout.readline())["nodesets"]] == ["few"]
        watch.terminate()
        assert watch.wait(60) == 0


@in_scratch
def slurm_conf_follows_the_release_and_needs_no_slurm(scratch):
    words = (*site(scratch), "slurm-conf")
    old = flexctl(*words, "--slurm-version", "22.05")
    assert old.returncode == 0, old.stderr
    lines = [line for line in old.stdout.splitlines() if line and not line.startswith("#")]
    assert all("=" in line for line in lines)
    assert {"ResumeTimeout=65533", "PrivateData=cloud", "SuspendExcNodes=big-[0-1]",
            f"NodeName=big-[0-{NODES - 1}] State=CLOUD"} <= set(lines), lines
    assert "#optional /" in old.stdout
    new = flexctl(*words, "--slurm-version", "25.05").stdout
    assert "\nResumeTimeout=INFINITE\n" in new and "PrivateData" not in new.split("\n\n", 1)[1]
    stack = flexctl(*words, "--plugstack").stdout
    assert stack.splitlines()[-1].startswith("optional ") and stack.strip().endswith("spank_flex_start.so")
    assert set(json.loads(flexctl(*words, "--json").stdout)) == {"slurm_version", "slurm_conf", "plugstack_conf"}
    assert flexctl(*words, "--slurm-version", "new").returncode == 2


@in_scratch
def without_slurm_the_other_commands_say_so(scratch):
    words = site(scratch)
    for command in (("pause", "few"), ("resume", "few"), ("plan", "--job", "7"), ("plan", "--job", "7_1"), ("cancel", "j1-x", "--yes"),
                    ("sweep", "--once")):
        done = flexctl(*words, *command)
        assert done.returncode == 2 and "slurm.conf" in done.stderr, (command, done.returncode, done.stderr)
    done = flexctl(*words, "pause", "fwe")
    assert done.returncode == 2 and "big, few" in done.stderr


def completed(script, config, line):
    """What bash offers for the last word of the line."""
    words = line.split(" ")
    text = f"""source {script}
flexctl() {{ {PROGRAM} "$@"; }}
COMP_WORDS=({" ".join(repr(word) for word in words)})
COMP_CWORD={len(words) - 1}
_flexctl
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, cwd=config.parent,
                          env={**NO_SLURM, "FLEX_START_CONFIG": str(config)})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


@in_scratch
def bash_completes_commands_options_and_names(scratch):
    config = site(scratch, requests=[{"name": "j7-x", "state": "ACCEPTED"}, {"name": "j8-x", "state": "FAILED"}])[1]
    script = scratch / "flexctl.bash"
    script.write_text(flexctl("completion", "bash").stdout)

    def offer(line):
        return completed(script, config, line)

    assert {"status", "plan", "cancel", "pause", "resume", "sweep", "slurm-conf", "import", "completion"} <= \
        set(offer("flexctl ")), offer("flexctl ")
    assert offer("flexctl stat") == ["status"]
    assert set(offer("flexctl cancel --")) >= {"--hold", "--requeue", "--cancel-job", "--yes", "--json", "--config"}
    assert offer("flexctl status ") == ["big", "few"]
    assert offer("flexctl pause f") == ["few"]
    assert offer("flexctl cancel j") == ["j7-x"]
    assert offer("flexctl import ") == ["slurm-gcp", "vertex"]
    assert offer("flexctl --log-level w") == ["warning"]
    assert offer("flexctl completion z") == ["zsh"]
    assert "flex-start.yaml" in offer("flexctl --config flex")
    other = scratch / "other.yaml"
    other.write_text((scratch / "flex-start.yaml").read_text().replace("few", "lot"))
    other.chmod(0o600)
    assert offer("flexctl --config other.yaml status l") == ["lot"]


@in_scratch
def completion_runs_nothing_of_what_it_offers(scratch):
    bad = "$(touch ran)"
    config = site(scratch, requests=[{"name": bad, "state": "ACCEPTED"}, {"name": "j7-x", "state": "ACCEPTED"}])[1]
    assert flexctl("--config", config, "completion", "requests").stdout == "j7-x\n"
    script = scratch / "flexctl.bash"
    # And if a name got there all the same.
    script.write_text(flexctl("completion", "bash").stdout + f"_flexctl_ask() {{ echo '{bad}' '`touch ran`' '*'; }}\n")
    offered = completed(script, config, "flexctl cancel ")
    assert not (scratch / "ran").exists() and "*" in offered, offered


@in_scratch
@on_terminal
def zsh_completes_where_it_is_installed(scratch):
    zsh = shutil.which("zsh")
    if zsh is None:
        print("     skipped: there is no zsh here")
        return
    config = site(scratch)[1]
    (scratch / "_flexctl").write_text(flexctl("completion", "zsh").stdout)
    (scratch / "bin").mkdir()
    (scratch / "bin/flexctl").symlink_to(PROGRAM)
    (scratch / ".zshrc").write_text(
        f"PS1='ready> '\nfpath=({scratch} $fpath)\nautoload -Uz compinit\ncompinit -u -D\n"
        f"path=({scratch}/bin $path)\nexport FLEX_START_CONFIG={config}\nLISTMAX=1000\n")
    screen = Screen(["env", f"ZDOTDIR={scratch}", "TERM=dumb", zsh, "-i"])

    def press(keys, expect):
        screen.text = ""
        os.write(screen.end, keys.encode())
        screen.until(expect)

    screen.until("ready>")
    press("flexctl stat\t", "flexctl status")
    press("f\t", "few")
    press("--wa\t", "--watch")
    press("\x15flexctl ca\t", "flexctl cancel")
    press("--\t", "--requeue")
    screen.close()


def bad_usage_is_2_and_help_and_version_are_0():
    for words in ((), ("frobnicate",), ("import",), ("import", "kueue", "x"), ("import", "vertex"),
                  ("import", "vertex", "a", "b"), ("--log-level", "loud", "import", "vertex", os.devnull)):
        assert flexctl(*words).returncode == 2, words
    assert flexctl("--help").returncode == 0 and "import" in flexctl("--help").stdout
    assert flexctl("import", "vertex", "--help").returncode == 0
    assert flexctl("--version").stdout.startswith("flexctl ")


TESTS = [
    each_sample_becomes_its_file_with_a_report,
    its_own_output_is_refused,
    it_writes_a_file_that_the_owner_alone_can_change_and_never_over_another,
    a_file_that_cannot_be_written_fails,
    a_file_that_is_not_there_or_not_one_is_bad_usage,
    standard_input_is_a_file_too,
    the_report_can_be_json,
    a_reservation_is_refused_with_its_place,
    nodesets_and_the_cluster_can_be_chosen,
    a_log_is_kept_where_it_is_asked_for,
    bad_usage_is_2_and_help_and_version_are_0,
    status_is_whole_lines_in_a_pipe_without_colours,
    status_says_loudly_what_is_wrong_and_fails,
    status_of_some_nodesets_and_as_json,
    status_asks_the_sweeper_s_port_where_its_file_is_not_for_us,
    status_does_not_take_a_passive_sweeper_for_an_empty_cluster,
    status_fits_a_terminal,
    watch_draws_in_place_and_gives_the_screen_back,
    watch_ends_at_once_while_it_waits_for_an_answer,
    watch_as_json_is_an_object_a_line,
    slurm_conf_follows_the_release_and_needs_no_slurm,
    without_slurm_the_other_commands_say_so,
    bash_completes_commands_options_and_names,
    completion_runs_nothing_of_what_it_offers,
    zsh_completes_where_it_is_installed,
]


if __name__ == "__main__":
    sys.exit(plain_tests.run(TESTS))
