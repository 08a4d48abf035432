#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the unit tests, then all other suites in one queue, shows what is going on, and ends with 'N passed, N failed'.

A failed test is a failed run. One exception: a cluster test program whose only failures are the harness's own time-outs is run once
more, alone; what passes then is counted as flaky, and from MOST_FLAKY on the run fails.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("unit", "functional", "packaging", "cluster")
BUSY = ("crash-matrix", "crash-ways")  # many programs at a time, one after the other all along


def meson_tests(build):
    """The tests that meson knows, in its order: name, suite, command, environment, time limit."""
    text = subprocess.run(
        ["meson", "introspect", "--tests", str(build)], check=True, capture_output=True, text=True
    ).stdout
    for test in json.loads(text):
        suite = test["suite"][0].split(":")[-1] if test["suite"] else ""
        yield test["name"], suite, test["cmd"], test["env"], test["timeout"]


def chosen(tests, suites, names):
    """Those of the suites, and those of the names; all where neither is given."""
    unknown = set(names) - {test[0] for test in tests}
    if unknown:
        sys.exit(f"run_tests: no test has the name {', '.join(sorted(unknown))}")
    suites = suites if suites or names else SUITES
    return [test for test in tests if test[1] in suites or test[0] in names]


def matching(tests, word):
    """The programs of that name; else those that have tests with the word in their names, and only these tests."""
    named = [test for test in tests if test[0] == word]
    if named:
        return named
    found = []
    for name, suite, cmd, env, timeout in tests:
        if any(word in line for path in cmd if path.endswith(".py") for line in test_lines(path)):
            found.append((name, suite, [*cmd, "-k", word] if suite == "cluster" else cmd, env, timeout))
        elif suite == "unit" and word in subprocess.run([*cmd, "--list-tests"], capture_output=True, text=True, check=False).stdout:
            found.append((name, suite, [*cmd, f"*{word}*"], env, timeout))
    return found or sys.exit(f"run_tests: neither a test program nor a test has {word} in its name")


def test_lines(path):
    return re.findall(r"^\s*def test_\w+", Path(path).read_text(encoding="utf-8"), re.M)


COUNTS = [
    # Catch2 v2 and v3, all well / with failures; the plain line of our scripts; pytest.
    (re.compile(r"All tests passed \(.* in (\d+) test cases?\)"), lambda m: (int(m[1]), 0, 0)),
    (
        re.compile(r"test cases:\s*(\d+) \|\s*(?:(\d+) passed \| )?(?:(\d+) skipped \| )?(\d+) failed"),
        lambda m: (int(m[1]) - int(m[4]), int(m[4]), int(m[3] or 0)),
    ),
    (
        re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M),
        lambda m: (int(m[1]), int(m[2]), int(m[3] or 0)),
    ),
    (
        re.compile(r"^=+ (?:(\d+) failed)?(?:, )?(?:(\d+) passed)?(?:, (\d+) skipped)?.* in [\d.]+s.*=+$", re.M),
        lambda m: (int(m[2] or 0), int(m[1] or 0), int(m[3] or 0)),
    ),
]


def count(output, code):
    """(passed, failed, skipped) of one program by its closing line; the exit code has the last word."""
    for pattern, get in COUNTS:
        matches = list(pattern.finditer(output))
        if matches:
            passed, failed, skipped = get(matches[-1])
            return passed, max(failed, 0 if code == 0 else 1), skipped
    return (1, 0, 0) if code == 0 else (0, 1, 0)


# pytest's line for a test in which the harness waited in vain: a busy machine may be the cause.
TIMED_OUT = re.compile(r"^FAILED \S+(?: [^-]*\])? - (?:harness\.slurm\.)?Timeout: (?:[\w ]+: )?waited ")
MOST_FLAKY = 3


def only_timed_out(output):
    """How many tests failed, if the harness's own time-out was the cause of every failure; else 0."""
    lines = re.findall(r"^(?:FAILED|ERROR) .+", output, re.M)
    return len(lines) if lines and all(TIMED_OUT.match(line) for line in lines) else 0


DURATION = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(?:\S*/)?(\S+\.py::\S+)", re.M)


def durations(output):
    """Seconds of each pytest test, its setup and teardown included."""
    found = {}
    for seconds, test in DURATION.findall(output):
        found[test] = found.get(test, 0.0) + float(seconds)
    return found


# What names a failure in the output of pytest, of our scripts, and of Catch2 (its place, and what it did not find true).
FAILURE = re.compile(r"^(?:FAILED|ERROR|FAIL|not ok) .+|^\S+:\d+: FAILED:.*|^Fatal Python error.*|^.*(?:Sanitizer:|killed after).*", re.M)


def failures(name, output, most=12):
    """One line per failure for the end of the run, where it is looked for first: the output above is long."""
    found = list(dict.fromkeys(match[0].strip() for match in FAILURE.finditer(output)))
    if not found:
        found = [line.strip() for line in output.splitlines() if line.strip()][-5:] or ["it printed nothing"]
    lines = [f"  {name}: {line[:300]}" for line in found[:most]]
    return lines + ([f"  {name}: and {len(found) - most} more"] if len(found) > most else [])


def key(test):
    """What names a test program: two suites may have one of the same name."""
    return f"{test[1]} {test[0]}"


class Progress:
    """How far it is, and how long it will take by the time that each program took the last time in this build directory."""

    def __init__(self, build, tests):
        self.file = build / "test-times.json"
        self.left = [key(test) for test in tests]
        self.count = len(tests)
        self.begun = 0
        self.lock = threading.Lock()
        self.started = time.monotonic()
        try:
            self.times = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.times = {}

    def longest_first(self, tests):
        return sorted(tests, key=lambda test: -self.times.get(key(test), test[4]))

    def begin(self, test, side_by_side=1):
        with self.lock:
            self.begun += 1
            now = time.monotonic() - self.started
            rest = [self.times.get(each) for each in self.left]
            estimate = "" if None in rest else f", about {clock(sum(rest) / side_by_side)} left"
            print(f"[{self.begun} of {self.count}, {clock(now)} so far{estimate}] {key(test)}", flush=True)

    def end(self, test, seconds):
        with self.lock:
            self.left.remove(key(test))
            self.times[key(test)] = round(seconds, 1)
            self.file.write_text(json.dumps(self.times, indent=1))


class Outcome(NamedTuple):
    """Of one test program."""
    counts: tuple    # passed, failed, skipped
    failures: list   # a line each
    timed_out: int   # failed tests, if all of them are the harness's own time-outs
    times: dict      # test to seconds


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def run(build, name, cmd, env, timeout, mark):
    """Runs one test program; its output goes to the screen as it comes, with a mark before it, or, without one, if it fails."""
    started = time.monotonic()
    environment = {**os.environ, **env, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}
    process = subprocess.Popen(
        cmd, cwd=build, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    lines = []
    alarm = threading.Timer(timeout, process.kill)
    alarm.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if mark:
                # One write: others write, too.
                sys.stdout.write(mark + line)
                sys.stdout.flush()
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=30)
        raise
    finally:
        alarm.cancel()
    if time.monotonic() - started > timeout:
        lines.append(f"{name}: killed after {timeout} s\n")
        print("  " + lines[-1], end="")
    output = "".join(lines)
    counts = count(output, code)
    if counts[1] and not mark:
        print(output)
    state = "ok" if counts[1] == 0 else "FAILED"
    extra = f", {counts[2]} skipped" if counts[2] else ""
    print(f"  {name:<24} {state:<6} {counts[0]} passed{extra} ({time.monotonic() - started:.1f} s)", flush=True)
    if not mark:
        for line in lines:
            if line.startswith("SKIP"):
                print("    " + line, end="")
        closing = [line for line in lines if line.strip() and not line.startswith("===")]
        if closing:
            print("    " + closing[-1], end="", flush=True)
    return Outcome(counts, failures(name, output) if counts[1] else [], only_timed_out(output), durations(output))


def print_slowest(times, most=15):
    slowest = sorted(times.items(), key=lambda item: -item[1])[:most]
    if slowest:
        print("\n".join(["slowest tests:"] + [f"  {seconds:7.1f} s  {test}" for test, seconds in slowest]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", type=Path)
    parser.add_argument("--suite", action="append", default=[], help="unit, functional, packaging, cluster (default: all)")
    parser.add_argument("--test", action="append", default=[], help="a test by its name, also beside --suite")
    parser.add_argument("--match", help="a test program, or only the tests that have this in their names")
    parser.add_argument("--jobs", type=int, default=1 + (os.cpu_count() or 1),
                        help="test programs side by side (default: one more than there are cores)")
    args = parser.parse_args()
    build = args.build if args.build.is_absolute() else ROOT / args.build
    tests = list(meson_tests(build))
    wanted = matching(tests, args.match) if args.match else chosen(tests, args.suite, args.test)
    total = [0, 0, 0]
    failed, twice, flaky, times = [], [], 0, {}
    started = time.monotonic()
    progress = Progress(build, [test for suite in SUITES for test in wanted if test[1] == suite])
    # What is told first takes no time; the rest waits for Slurm more than it works, whatever its suite.
    for suites in (SUITES[:1], SUITES[1:]):
        tests = [test for test in wanted if test[1] in suites]
        if not tests:
            continue
        print(f"{', '.join(suites)}: {len(tests)} program{'s' if len(tests) != 1 else ''}", flush=True)
        jobs = min(args.jobs, len(tests))

        def run_one(test, jobs=jobs, again=False):
            name, suite, cmd, env, timeout = test
            if not again:
                progress.begin(test, jobs)
            begun = time.monotonic()
            result = run(build, name, cmd, env, timeout, mark=f"    {name}: " if suite == "cluster" else "")
            if not again:
                progress.end(test, time.monotonic() - begun)
            return result

        order = progress.longest_first(tests)
        # Two that keep all cores busy would make everything else late.
        busy = [test for test in order if test[0] in BUSY]
        lanes = [(1, busy), (jobs - 1, [test for test in order if test not in busy])] if busy and jobs > 1 else [(jobs, order)]
        lanes = [(ThreadPoolExecutor(width), part) for width, part in lanes if part]
        try:
            running = [(part, pool.map(run_one, part)) for pool, part in lanes]
            results = {key(test): outcome for part, outcomes in running for test, outcome in zip(part, outcomes)}
        finally:
            for pool, _ in lanes:
                pool.shutdown(cancel_futures=True)
        for test in order:
            outcome = results[key(test)]
            times.update(outcome.times)
            if outcome.timed_out and jobs > 1:
                print(f"{test[0]}: the harness waited in vain beside other tests: once more, alone", flush=True)
                timed_out, first = outcome.timed_out, outcome.failures
                outcome = run_one(test, again=True)
                if not outcome.failures:
                    flaky += timed_out
                    twice += first
            total = [a + b for a, b in zip(total, outcome.counts)]
            failed += outcome.failures
    print_slowest(times)
    if twice:
        print("\n".join(["what was late beside other tests, and passed alone:"] + twice))
    print("\n".join(["what failed:"] + failed) if failed else "nothing failed")
    print(f"in {time.monotonic() - started:.0f} s")
    print(f"flaky: {flaky}" + (f", and {MOST_FLAKY} are too many" if flaky >= MOST_FLAKY else ""))
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] or flaky >= MOST_FLAKY else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
