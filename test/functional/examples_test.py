#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The example job scripts without a cluster: what they say to sbatch, and that train.py loses nothing when stopped.

Usage: examples_test.py SOURCE_ROOT WISH_TOOL FLEX_TIMELEFT
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import plain_tests

EXAMPLES = Path(sys.argv[1]).resolve() / "etc/examples"
WISH_TOOL = str(Path(sys.argv[2]).resolve())
TIMELEFT = Path(sys.argv[3]).resolve()
SCRIPTS = sorted(EXAMPLES.glob("*.sh"))
FIELDS = {"run-duration": "run", "max-wait": "wait", "on-timeout": "ontimeout"}
STEPS = 60


def shellcheck_finds_nothing():
    program = shutil.which("shellcheck")
    assert program, "shellcheck is not installed (try: make setup)"
    done = subprocess.run([program, *SCRIPTS], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout


def components(script):
    return script.read_text(encoding="utf-8").split("#SBATCH hetjob\n")


def every_component_has_a_time_and_says_the_same_with_and_without_the_plugin():
    assert len(SCRIPTS) == 3
    for script in SCRIPTS:
        for part in components(script):
            assert re.search(r"^#SBATCH .*--time=", part, re.M), script
            options = dict(re.findall(r"^#SBATCH --flex-([a-z-]+)=(\S+)", part, re.M))
            token, = re.findall(r"^##SBATCH --comment='(.*)'$", part, re.M)
            said = ",".join(f"{FIELDS[name]}={value}" for name, value in options.items())
            assert token == f"flex({said})", (script, token, said)
            meant = subprocess.run([WISH_TOOL, token], stdout=subprocess.PIPE, text=True, check=True).stdout
            assert len(meant.splitlines()) == 1 and meant.count("-") == 3 - len(options), meant


def scripts_go_back_into_the_queue_only_if_sbatch_lets_them():
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert "scontrol requeue" in text and "\n#SBATCH --requeue" in text, script
        assert "\n#SBATCH --open-mode=append" in text, script


class Training:
    """train.py in a directory of its own, with flex-timeleft in its PATH."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.checkpoint = self.directory / "checkpoint.json"

    def start(self, *options, seconds=0.0, **env):
        return subprocess.Popen(
            [sys.executable, EXAMPLES / "train.py", "--checkpoint", self.checkpoint, f"--steps={STEPS}",
             f"--step-seconds={seconds}", *options],
            env={"PATH": f"{TIMELEFT.parent}:{os.environ['PATH']}", **env}, cwd=self.directory,
            stdout=subprocess.PIPE, text=True)

    def run(self, *options, **more):
        process = self.start(*options, **more)
        text = process.communicate()[0]
        return process.returncode, text.splitlines()


def in_scratch(test):
    def run():
        with tempfile.TemporaryDirectory() as directory:
            test(Training(directory))
    run.__name__ = test.__name__
    return run


def undisturbed():
    """The last line of a training that nobody stopped."""
    with tempfile.TemporaryDirectory() as directory:
        code, lines = Training(directory).run()
    assert code == 0 and lines[0] == "begins", lines
    return lines[-1]


@in_scratch
def a_signal_makes_it_save_and_the_next_run_goes_on(training):
    for number in (signal.SIGURG, signal.SIGUSR1):
        training.checkpoint.unlink(missing_ok=True)
        process = training.start("--save-every=1", seconds=0.2)
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert lines == ["begins\n", "saved step 1\n"], lines
        process.send_signal(number)
        lines = process.communicate()[0].splitlines()
        assert process.returncode == 75, lines
        step, why = re.fullmatch(r"saved step (\d+): (.*)", lines[-1]).groups()
        assert why == f"got {number.name}"
        code, lines = training.run()
        assert code == 0 and lines[0] == f"goes on from step {step}", lines
        assert lines[-1] == undisturbed(), lines


@in_scratch
def little_time_left_makes_it_save_after_a_step_and_enough_does_not(training):
    for run in range(1, 4):
        code, lines = training.run(SLURM_FLEX_END_TIME=str(int(time.time()) + 300))
        assert code == 75 and lines[-1] == f"saved step {run}: the VMs end in less than 10m", lines
    code, lines = training.run("--stop-before=1m", SLURM_FLEX_END_TIME=str(int(time.time()) + 3600))
    assert code == 0 and lines == ["goes on from step 3", f"saved step {STEPS}", undisturbed()], lines


@in_scratch
def it_can_go_on_after_a_warning(training):
    code, lines = training.run("--go-on", SLURM_FLEX_END_TIME="1")
    assert code == 0 and lines[1] == "saved step 1: the VMs end in less than 10m", lines
    assert lines[-1] == undisturbed(), lines


@in_scratch
def it_runs_where_nothing_of_flex_start_is(training):
    code, lines = training.run(PATH="/nowhere")
    assert code == 0 and lines[-1] == undisturbed(), lines


@in_scratch
def a_save_that_was_cut_off_does_no_harm_and_one_rank_writes_for_all(training):
    Path(f"{training.checkpoint}.new").write_text('{"step": 5', encoding="utf-8")
    code, lines = training.run(SLURM_PROCID="1", SLURM_FLEX_END_TIME="1")
    assert (code, lines) == (75, []) and not training.checkpoint.exists()
    code, lines = training.run(SLURM_PROCID="0")
    assert code == 0 and lines[-1] == undisturbed(), lines
    assert json.loads(training.checkpoint.read_text(encoding="utf-8"))["step"] == STEPS
    # Once it is done, it is done.
    assert training.run() == (0, [f"goes on from step {STEPS}", undisturbed()])


TESTS = [
    shellcheck_finds_nothing,
    every_component_has_a_time_and_says_the_same_with_and_without_the_plugin,
    scripts_go_back_into_the_queue_only_if_sbatch_lets_them,
    a_signal_makes_it_save_and_the_next_run_goes_on,
    little_time_left_makes_it_save_after_a_step_and_enough_does_not,
    it_can_go_on_after_a_warning,
    it_runs_where_nothing_of_flex_start_is,
    a_save_that_was_cut_off_does_no_harm_and_one_rank_writes_for_all,
]

if __name__ == "__main__":
    sys.exit(plain_tests.run(TESTS))
