#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A training loop that can be stopped at any step and goes on from there as if nothing had happened.

The model is a line through noisy points, so that this runs anywhere; the comments say where torch comes in. What
matters is the rest: when to save, what to save, and how to tell the job script that there is more to do.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

# sysexits.h calls it "temporary failure": saved, but not done. train.sh puts the job back into the queue.
TO_BE_CONTINUED = 75
# SIGURG: the VMs end in ten minutes. SIGUSR1: the time limit is near (sbatch --signal).
WARNINGS = (signal.SIGURG, signal.SIGUSR1)


class Notice:
    """Says when it is time to save. To be made first of all: a signal that nobody waits for is lost, or worse."""

    def __init__(self, stop_before, look_every):
        self._why = ""
        self._stop_before, self._look_every = stop_before, look_every
        self._next_look = time.monotonic()
        for number in WARNINGS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number, _frame):
        # Only a note: saving is for the loop, between two steps.
        self._why = f"got {signal.Signals(number).name}"

    def _look(self):
        """The signal could have been missed, so the clock is asked now and then as well."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + self._look_every
        try:
            code = subprocess.run(["flex-timeleft", f"--min={self._stop_before}"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, check=False).returncode
        except FileNotFoundError:
            return
        # 3: not known, as on VMs that have no end. Only 1 means that little is left.
        if code == 1:
            self._why = f"the VMs end in less than {self._stop_before}"

    def take(self):
        """Why to save now, once; empty if there is no reason."""
        self._look()
        why, self._why = self._why, ""
        # torch: each rank sees its signal at another step, but all must stop at the same one. So add them up, with
        # dist.all_reduce(torch.tensor(bool(why))), every few steps.
        return why


def save(path, state):
    """Never half: the old checkpoint stays until the new one is on the disk. torch: torch.save(state, new)."""
    new = path.with_name(path.name + ".new")
    with open(new, "w", encoding="utf-8") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def load(path):
    """All that the next step depends on: model, optimizer, random numbers, position."""
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    return {"step": 0, "weight": 0.0, "bias": 0.0, "random": random.Random(1).getstate()}


def as_tuple(value):
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value


def train_step(state, seconds):
    """One step down the gradient. torch: forward, backward, optimizer.step()."""
    dice = random.Random()
    dice.setstate(as_tuple(state["random"]))
    x = dice.uniform(-1, 1)
    error = state["weight"] * x + state["bias"] - (3 * x + 1 + dice.gauss(0, 0.1))
    state["weight"] -= 0.05 * error * x
    state["bias"] -= 0.05 * error
    state["random"] = dice.getstate()
    state["step"] += 1
    time.sleep(seconds)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="file to save to and to go on from")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--step-seconds", type=float, default=1.0, help="how long a step takes")
    parser.add_argument("--save-every", type=int, default=500, help="steps; also without a warning")
    parser.add_argument("--stop-before", default="10m", help="save when the VMs end in less (flex-timeleft --min)")
    parser.add_argument("--look-every", type=float, default=30, help="seconds between two looks at flex-timeleft")
    parser.add_argument("--go-on", action="store_true",
                        help="after a warning save and go on, until the VMs end and the job is requeued")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    notice = Notice(arguments.stop_before, arguments.look_every)
    # One writes for all, and speaks for all.
    is_first = os.environ.get("SLURM_PROCID", "0") == "0"

    def tell(text):
        if is_first:
            print(text, flush=True)

    state = load(arguments.checkpoint)
    tell(f"goes on from step {state['step']}" if state["step"] else "begins")
    while state["step"] < arguments.steps:
        train_step(state, arguments.step_seconds)
        why = notice.take()
        is_last = state["step"] == arguments.steps
        if is_first and (why or is_last or state["step"] % arguments.save_every == 0):
            save(arguments.checkpoint, state)
            tell(f"saved step {state['step']}" + (f": {why}" if why else ""))
        if why and not is_last and not arguments.go_on:
            return TO_BE_CONTINUED
    tell(f"done after {state['step']} steps: weight {state['weight']:.6f}, bias {state['bias']:.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
