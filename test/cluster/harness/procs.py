# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds and ends the processes of one run by marks that only they carry.

slurmstepd and job processes leave the session of the slurmd that started them, so neither process
groups nor sessions are enough. What stays is the environment: every process of a run has
FLEX_TEST_RUN=<its scratch directory>. The programs that slurmctld starts get no environment at all;
those are known by lying in the scratch directory's bin/, and a slurmstepd by the log that it writes.
"""
import os
import signal
import time

MARK = "FLEX_TEST_RUN"
VM_MARK = "FLEX_TEST_VM"


def fill_standard_descriptors():
    """Slurm 22.05 starts programs with 0-2 closed: the next files opened would become them."""
    while (descriptor := os.open("/dev/null", os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _words(pid, name):
    return [os.fsdecode(word) for word in _read(pid, name).split(b"\0") if word]


def _is_program_of(directory, pid):
    """True for a program, or an interpreter running a script, from the run's bin/."""
    prefix = os.path.join(directory, "bin", "")
    try:
        if os.readlink(f"/proc/{pid}/exe").startswith(prefix):
            return True
    except OSError:
        pass
    return any(word.startswith(prefix) for word in _words(pid, "cmdline")[:3])


def _is_step_of(directory, pid, vm):
    """True for a slurmstepd by the log that it writes to: from Slurm 24.11 on its title is written over all of its
    environment."""
    log = os.path.join(directory, "log", f"slurmd-{vm}.log" if vm else "slurmd-")
    try:
        if not os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("slurmstepd"):
            return False
        files = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(file == log if vm else file.startswith(log) for file in files)


def _state_and_parent(pid):
    """('Z', 1) for a zombie that init owns; ('', 0) when the process is gone."""
    stat = os.fsdecode(_read(pid, "stat"))
    fields = stat[stat.rfind(")") + 2:].split()
    return (fields[0], int(fields[1])) if len(fields) > 1 else ("", 0)


def _with_descendants(found, parents):
    grown = True
    while grown:
        grown = False
        for pid, parent in parents.items():
            if parent in found and pid not in found:
                found.add(pid)
                grown = True
    return found


def find(directory, vm=None):
    """Living processes of the run in `directory`; with `vm`, only those on that VM."""
    mark = f"{MARK}={directory}"
    on_vm = {f"{VM_MARK}={vm}", f"SLURMD_NODENAME={vm}"}
    found, parents = set(), {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        pid = int(entry)
        state, parents[pid] = _state_and_parent(pid)
        if state in ("", "Z", "X"):
            del parents[pid]
            continue
        environment = set(_words(pid, "environ"))
        if vm is not None:
            is_ours = mark in environment and environment & on_vm
        else:
            is_ours = mark in environment or _is_program_of(directory, pid)
        if is_ours or _is_step_of(directory, pid, vm):
            found.add(pid)
    found = _with_descendants(found, parents)
    found.discard(os.getpid())
    return found


def describe(pid):
    return f"{pid} ({' '.join(_words(pid, 'cmdline'))[:100]})"


def end(directory, vm=None, timeout=10.0):
    """Ends them all with SIGKILL, looking again until none is found. Returns what is left."""
    deadline = time.monotonic() + timeout
    while left := find(directory, vm):
        # All stop before the first one ends: a slurmstepd must not live to tell how its job was killed.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return left
