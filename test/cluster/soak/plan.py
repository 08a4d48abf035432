# SPDX-License-Identifier: GPL-2.0-or-later
"""What will happen, worked out from the seed alone (pure)."""
import random
from dataclasses import dataclass

# Times a minute. Whom an event hits is decided by its dice when it is due.
RATES = {"submit": 26, "cancel": 5, "requeue": 1, "capacity": 6, "kill_vm": 3, "advance": 1.2,
         "restart_slurmctld": 0.6, "kill_sweeper": 0.8, "stop_sweeper": 0.6, "reload_sweeper": 0.4,
         "restart_emulator": 0.8, "time_limit": 4, "resubmit": 4, "drain": 2, "pause": 1, "wrong_registration": 1.5}
# Every run has these at least once.
ALWAYS = ("cancel", "capacity", "kill_vm", "advance", "restart_slurmctld", "kill_sweeper",
          "stop_sweeper", "restart_emulator", "time_limit", "resubmit", "drain", "pause", "wrong_registration")
FIRST_JOBS = 8
DICE = 6


@dataclass(frozen=True)
class Event:
    at: float     # seconds from the start
    kind: str
    dice: tuple   # numbers in [0, 1)

    def pick(self, number, options):
        """One of the options by one of the dice."""
        return options[int(self.dice[number] * len(options))]

    def between(self, number, low, high):
        return low + self.dice[number] * (high - low)


def make(seed, seconds, submit_until=0.8):
    """All events in order; jobs are submitted in the first part of the time."""
    rng = random.Random(seed)
    found = [(0.0, "submit") for _ in range(FIRST_JOBS)]
    found += [(rng.uniform(0.15, 0.95) * seconds, kind) for kind in ALWAYS]
    for kind, rate in RATES.items():
        end = seconds * (submit_until if kind == "submit" else 1)
        at = rng.expovariate(rate / 60)
        while at < end:
            found.append((at, kind))
            at += rng.expovariate(rate / 60)
    return [Event(at, kind, tuple(rng.random() for _ in range(DICE))) for at, kind in sorted(found)]


@dataclass(frozen=True)
class Job:
    """What a submit event asks for."""
    nodeset: str
    how: str          # batch, array, srun
    nodes: int
    tasks: int        # of an array
    seconds: int
    minutes: int      # its time limit
    may_requeue: bool
    has_step: bool


def job_of(event, sizes):
    """`sizes`: nodeset name to (number of nodes, weight)."""
    names = [name for name, (_, weight) in sizes.items() for _ in range(weight)]
    nodeset = event.pick(0, names)
    how = event.pick(1, ["batch"] * 14 + ["array"] * 2 + ["srun"] * 4)
    most = 1 if how == "array" else min(8, sizes[nodeset][0])
    # Small jobs are more frequent than those that take a whole nodeset.
    nodes = 1 + int(event.dice[2] ** 2 * most)
    odd = int(event.dice[3] * 1000)
    return Job(nodeset=nodeset, how=how, nodes=nodes, tasks=2 + odd % 2 if how == "array" else 1,
               seconds=1 + int(event.dice[4] * 6), minutes=10 if event.dice[5] < 0.7 else 20,
               may_requeue=odd % 7 != 0, has_step=odd % 3 == 0)
