#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""etc/job_submit.lua.example in Debian's Lua: what it takes and refuses, and that the programs see it the same way.

Usage: lua_test.py SOURCE_ROOT WISH_TOOL
"""
import itertools
import random
import shutil
import subprocess
import sys
from pathlib import Path

import plain_tests

ROOT = Path(sys.argv[1]).resolve()
WISH_TOOL = str(Path(sys.argv[2]).resolve())
EXAMPLE = ROOT / "etc/job_submit.lua.example"
LUA_TOOL = ROOT / "test/support/wish_tool.lua"
# slurmctld has one of them in it, which one depends on the distribution.
LUAS = [path for path in map(shutil.which, ("lua5.1", "lua5.2", "lua5.3", "lua5.4")) if path]

TIMES = "VMs live from 10m to 7d"
WAITS = "a job may wait from 1s to 7d"
NO_TIME = "not a time; write minutes, 90m, 4h, 2d or D-HH:MM:SS"
KNOWN = "not known; write flex(run=4h,wait=30m,ontimeout=hold)"

# Comments that are taken, and what they ask for.
GOOD = {
    "flex(run=4h,wait=30m,ontimeout=hold)": "run=14400 wait=1800 ontimeout=hold",
    "my run flex( run = 240 , wait=30:00 ,ontimeout=requeue, ) of Monday": "run=14400 wait=1800 ontimeout=requeue",
    "a;flex(run=1h);flex(run=0-4,ontimeout=cancel)": "run=14400 wait=- ontimeout=cancel",
    "flex(run=10)": "run=600 wait=- ontimeout=-",
    "flex(run=7d)": "run=604800 wait=- ontimeout=-",
    "flex(run=7-00:00:00)": "run=604800 wait=- ontimeout=-",
    "flex(run=1d12h30m)": "run=131400 wait=- ontimeout=-",
    "flex(run=1-12:30)": "run=131400 wait=- ontimeout=-",
    "flex(run=90:00)": "run=5400 wait=- ontimeout=-",
    "flex(run=100:00:00)": "run=360000 wait=- ontimeout=-",
    "flex(wait=1s)": "run=- wait=1 ontimeout=-",
    "flex(wait=0:01)": "run=- wait=1 ontimeout=-",
    "": "run=- wait=- ontimeout=-",
    "the usual": "run=- wait=- ontimeout=-",
    "flex()": "run=- wait=- ontimeout=-",
    "flex(,=, ,)": "run=- wait=- ontimeout=-",
    "flex(run=4h": "run=- wait=- ontimeout=-",
    "flex(run=8d flex(wait=(1s) flex(run=4h)": "run=14400 wait=- ontimeout=-",
    "flex(flex(run=4h))": "run=14400 wait=- ontimeout=-",
    "reflex(run=abc) my-flex(run=abc) Flex(run=abc) flex (run=abc)": "run=- wait=- ontimeout=-",
    "%s %d flex": "run=- wait=- ontimeout=-",
}
# Comments that are refused, and the sentence.
BAD = {
    "flex(run=0)": f"run=0: too short, {TIMES}",
    "flex(run=9)": f"run=9: too short, {TIMES}",
    "flex(run=9:59)": f"run=9:59: too short, {TIMES}",
    "flex(run=8d)": f"run=8d: too long, {TIMES}",
    "flex(run=7-00:00:01)": f"run=7-00:00:01: too long, {TIMES}",
    "flex(run=-1)": f"run=-1: {NO_TIME}, {TIMES}",
    "flex(run=abc)": f"run=abc: {NO_TIME}, {TIMES}",
    "flex(run=)": f"run=: {NO_TIME}, {TIMES}",
    "flex(run)": f"run=: {NO_TIME}, {TIMES}",
    "flex(run=4 h)": f"run=4 h: {NO_TIME}, {TIMES}",
    "flex(run=1h30)": f"run=1h30: {NO_TIME}, {TIMES}",
    "flex(run=30m1h)": f"run=30m1h: {NO_TIME}, {TIMES}",
    "flex(run=1h1h)": f"run=1h1h: {NO_TIME}, {TIMES}",
    "flex(run=1-24)": f"run=1-24: {NO_TIME}, {TIMES}",
    "flex(run=1:60:00)": f"run=1:60:00: {NO_TIME}, {TIMES}",
    "flex(run=1:2:3:4)": f"run=1:2:3:4: {NO_TIME}, {TIMES}",
    "flex(run=4h=5h)": f"run=4h=5h: {NO_TIME}, {TIMES}",
    "flex(run=2147483648)": f"run=2147483648: too long, {TIMES}",
    "flex(run=4h\n5h)": f"run=4h?5h: {NO_TIME}, {TIMES}",
    "flex(run=%s%d%n)": f"run=%s%d%n: {NO_TIME}, {TIMES}",
    f"flex(run={'9' * 10_000})": f"run={'9' * 40}...: too long, {TIMES}",
    f"flex(run={'x' * 10_000})": f"run={'x' * 40}...: {NO_TIME}, {TIMES}",
    "flex(wait=0)": f"wait=0: too short, {WAITS}",
    "flex(wait=8d)": f"wait=8d: too long, {WAITS}",
    "flex(ontimeout=later)": "ontimeout=later: write requeue, hold or cancel",
    "flex(ontimeout=Hold)": "ontimeout=Hold: write requeue, hold or cancel",
    "flex(ontimeout)": "ontimeout=: write requeue, hold or cancel",
    "flex(walk=4h)": f"walk: {KNOWN}",
    "flex(4h)": f"4h: {KNOWN}",
    "flex(=4h)": f": {KNOWN}",
    "flex(run=4h) flex(run=8d)": f"run=8d: too long, {TIMES}",
}


def lua(program, what, *texts):
    done = subprocess.run([program, LUA_TOOL, EXAMPLE, what, *texts], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def answers(output):
    """[[first line, "! …", …], …]"""
    found = []
    for line in output.decode().splitlines():
        if line.startswith("! "):
            found[-1].append(line[2:])
        else:
            found.append([line])
    return found


def programs_say(*texts):
    return subprocess.run([WISH_TOOL, *texts], stdout=subprocess.PIPE, check=True).stdout


def there_is_a_lua():
    assert any(path.endswith("lua5.4") for path in LUAS), "lua5.4 is not installed (try: make setup)"


def good_comments_are_taken():
    for program, what in itertools.product(LUAS, ("submit", "modify")):
        for texts in ([(text, "-") for text in GOOD], [("-", text) for text in GOOD], [("-", "-")]):
            found = answers(lua(program, what, *itertools.chain(*texts)))
            assert found == [["0"]] * len(texts), [pair for pair in zip(texts, found) if pair[1] != ["0"]]


def bad_comments_are_refused_with_a_sentence():
    for program, what in itertools.product(LUAS, ("submit", "modify")):
        for texts in ([(text, "-") for text in BAD], [("flex(run=4h)", text) for text in BAD]):
            found = answers(lua(program, what, *itertools.chain(*texts)))
            assert found == [["-1", f"flex: {sentence}"] for sentence in BAD.values()], (program, found)


def several_problems_are_one_line_that_is_not_endless():
    texts = ["flex(run=0,wait=0)", "flex(ontimeout=x)", f"flex({'a,' * 5000})", "-"]
    two, many = answers(lua(LUAS[-1], "submit", *texts))
    assert two == ["-1", f"flex: run=0: too short, {TIMES}; wait=0: too short, {WAITS}; "
                         "ontimeout=x: write requeue, hold or cancel"], two
    assert many == ["-1", f"flex: a: {KNOWN}; a: {KNOWN}; a: {KNOWN}; and 4997 more"], many


def the_programs_take_the_same_comments_for_the_same():
    assert answers(programs_say(*GOOD)) == [[asked] for asked in GOOD.values()]
    assert [found[1:] for found in answers(programs_say(*BAD))] == [[sentence] for sentence in BAD.values()]
    for program in LUAS:
        assert lua(program, "parse", *GOOD, *BAD) == programs_say(*GOOD, *BAD), program


def the_programs_see_no_text_differently():
    """Texts of the pieces that matter, put together at random, but the same ones each time."""
    chance = random.Random(2205)
    pieces = ["flex(", ")", ",", "=", "run", "wait", "ontimeout", "hold", "cancel", "0", "1", "9", "10", "59", "60", "24",
              "3660", "168", "999999999999", "s", "m", "h", "d", "-", ":", " ", "\t", "\n", "x", "_", "é", "\x7f", "%"]
    values = pieces[9:26]
    texts = ["".join(chance.choices(pieces, k=chance.randint(1, 12))) for _ in range(2000)]
    texts += [f"flex({chance.choice(('run', 'wait'))}={''.join(chance.choices(values, k=chance.randint(1, 6)))})"
              for _ in range(4000)]
    wanted = programs_say(*texts)
    assert sum(len(found) == 1 and found[0] != "run=- wait=- ontimeout=-" for found in answers(wanted)) > 200
    for program in LUAS:
        assert lua(program, "parse", *texts) == wanted, program


TESTS = [
    there_is_a_lua,
    good_comments_are_taken,
    bad_comments_are_refused_with_a_sentence,
    several_problems_are_one_line_that_is_not_endless,
    the_programs_take_the_same_comments_for_the_same,
    the_programs_see_no_text_differently,
]

if __name__ == "__main__":
    sys.exit(plain_tests.run(TESTS))
