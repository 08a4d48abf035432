#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives flex-timeleft from outside: what it prints, and its exit codes.

Usage: timeleft_test.py FLEX_TIMELEFT
"""
import re
import subprocess
import sys
import time
from pathlib import Path

import plain_tests

PROGRAM = str(Path(sys.argv[1]).resolve())
# Nobody is so slow that this much passes between two lines of a test.
SLACK = 120


def timeleft(*words, end=None, **more):
    """With SLURM_FLEX_END_TIME=`end` and nothing else in its environment."""
    env = {} if end is None else {"SLURM_FLEX_END_TIME": str(end)}
    return subprocess.run([PROGRAM, *words], env=env, text=True,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})


def ends_in(seconds):
    return int(time.time()) + seconds


def it_prints_the_seconds_that_are_left():
    done = timeleft(end=ends_in(3600))
    assert (done.returncode, done.stderr) == (0, ""), done
    assert re.fullmatch(r"\d+\n", done.stdout) and 3600 - SLACK <= int(done.stdout) <= 3600, done


def over_is_0_and_exit_code_1():
    for end in (ends_in(-1), ends_in(-86400), 0):
        done = timeleft(end=end)
        assert (done.returncode, done.stdout, done.stderr) == (1, "0\n", ""), done


def less_than_min_is_exit_code_1_and_still_printed():
    for least in ("2h", "120", "2:00:00", "0-2"):
        done = timeleft("--min", least, end=ends_in(3600))
        assert done.returncode == 1 and int(done.stdout) > 0 and done.stderr == "", done
        done = timeleft(f"--min={least}", end=ends_in(2 * 3600 + SLACK))
        assert done.returncode == 0, done


def people_can_read_it():
    done = timeleft("--human", end=ends_in(2 * 3600 + SLACK))
    assert done.returncode == 0 and re.fullmatch(r"2:0[0-2]:\d\d\n", done.stdout), done
    done = timeleft("--human", end=ends_in(86400 + SLACK))
    assert re.fullmatch(r"1-00:0[0-2]:\d\d\n", done.stdout), done
    assert timeleft("--human", end=0).stdout == "0:00:00\n"


def not_known_is_exit_code_3_and_a_sentence():
    for end in (None, "", "soon", "-5", "12:30", "9" * 10_000):
        for words in ((), ("--min=10m",), ("--human",)):
            done = timeleft(*words, end=end)
            assert (done.returncode, done.stdout) == (3, ""), done
            assert re.fullmatch(r"flex-timeleft: SLURM_FLEX_END_TIME is not .*VMs end.*\n", done.stderr), done


def bad_usage_is_2_and_help_and_version_are_0():
    for words in (("--min=abc",), ("--min=-1",), ("--min=",), ("--min",), ("--max=1h",), ("10m",), ("--min=1h", "--min=2h")):
        for end in (None, ends_in(3600)):
            done = timeleft(*words, end=end)
            assert (done.returncode, done.stdout) == (2, ""), (words, done)
            assert done.stderr, words
    assert "--min: not a time; write minutes" in timeleft("--min=1 h").stderr
    assert timeleft("--version").stdout.startswith("flex-timeleft ")
    done = timeleft("--help")
    assert done.returncode == 0 and "--min TIME" in done.stdout, done


def the_exit_code_counts_where_nobody_reads():
    """As in `flex-timeleft --min=10m >&-`."""
    for seconds, code in ((3600, 0), (60, 1)):
        shell = subprocess.run(["/bin/sh", "-c", '"$0" --min=10m >&- 2>&- <&-', PROGRAM],
                               env={"SLURM_FLEX_END_TIME": str(ends_in(seconds))})
        assert shell.returncode == code, shell


def it_is_light():
    """It starts in job after job on every node: no more libraries than a C++ program needs."""
    needed = subprocess.run(["ldd", PROGRAM], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert not re.search(r"libslurm|libcurl|libyaml|libcrypto", needed), needed


TESTS = [
    it_prints_the_seconds_that_are_left,
    over_is_0_and_exit_code_1,
    less_than_min_is_exit_code_1_and_still_printed,
    people_can_read_it,
    not_known_is_exit_code_3_and_a_sentence,
    bad_usage_is_2_and_help_and_version_are_0,
    the_exit_code_counts_where_nobody_reads,
    it_is_light,
]


if __name__ == "__main__":
    sys.exit(plain_tests.run(TESTS))
