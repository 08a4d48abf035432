# SPDX-License-Identifier: GPL-2.0-or-later
"""A soak from start to end, told to a reader."""
import collections
import time
from pathlib import Path

from . import checks, site
from .run import Run


def _table(title, counter):
    if not counter:
        return []
    width = max(len(str(key)) for key in counter)
    return [title] + [f"  {key:<{width}}  {number}" for key, number in sorted(counter.items())]


def summary(run, took):
    calls = checks.journal(run)
    actions = collections.Counter(
        f"{line.words.get('rule')} {line.words.get('what')}" for line in checks.log_lines(run)
        if line.event == "action")
    lines = [f"seed {run.seed}: {run.seconds:.0f} s of trouble, {took:.0f} s in all, "
             f"{len(run.jobs)} jobs, {len(calls)} calls"]
    lines += _table("jobs by outcome", collections.Counter(what for _, what, _ in checks.outcomes(run)))
    lines += _table("events", run.done)
    lines += _table("faults hit", run.faults_hit)
    lines += _table("sweeper's actions", actions)
    return "\n".join(lines)


def soak(build, seed, seconds, settle, *, logs, tell=print, always_save=False, most_waiting=24):
    """Runs it; the unmet conditions."""
    build, began = Path(build), time.monotonic()
    with site.make_cluster(build, seed) as cluster:
        try:
            foreign = site.add_foreigners(cluster)
            run = Run(cluster, seed, seconds, most_waiting=most_waiting)
            run.first_call = len(checks.journal(run))
            tell(f"soak: seed {seed}, {seconds:.0f} s, logs in {cluster.dir}/log", flush=True)
            run.go()
            tell("settling", flush=True)
            problems = run.settle(settle, checks.unmet)
            problems += checks.final(run, foreign)
            cluster.recorder = None  # its invariants have been asked
            tell(summary(run, time.monotonic() - began))
        except BaseException:
            _save(cluster, logs, tell)
            raise
        if problems or always_save:
            _save(cluster, logs, tell)
    if problems:
        tell(f"FAILED with seed {seed}:")
        for problem in problems[:40]:
            tell(f"  {problem}")
        if len(problems) > 40:
            tell(f"  and {len(problems) - 40} more")
    return problems


def _save(cluster, target, tell):
    try:
        cluster.save_logs(target)
        tell(f"logs are in {target}")
    except Exception as error:  # what went wrong before is what matters
        tell(f"logs could not be saved: {error!r}")
