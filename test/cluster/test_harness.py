# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness alone: a private Slurm comes up, runs jobs on many nodes and leaves nothing behind."""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import procs
from harness.conf import Nodeset
from harness.slurm import Cluster

HERE = Path(__file__).resolve().parent
PROGRAM = """
import signal, sys, time
# Whoever started the tests in the background may have SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from harness.sandbox import Sandbox
with Sandbox() as box:
    box.spawn(["/bin/sh", "-c", "setsid sleep 1000 & exec sleep 1000"], "x.log")
    print(box.dir, flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_sandbox_ends_its_processes_and_removes_its_files_on(number):
    child = subprocess.Popen([sys.executable, "-B", "-c", PROGRAM, str(HERE)], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    directory = child.stdout.readline().strip()
    deadline = time.monotonic() + 20
    while len(procs.find(directory)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(procs.find(directory)) == 2
    os.kill(child.pid, number)
    child.wait(30)
    deadline = time.monotonic() + 20
    while (procs.find(directory) or os.path.exists(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not procs.find(directory)
    assert not os.path.exists(directory)


def test_every_file_of_tests_is_run():
    listed = set(re.findall(r"'(test_\w+)'", (HERE / "meson.build").read_text(encoding="utf-8")))
    there = {path.stem for path in HERE.glob("test_*.py")}
    assert there == listed, f"to be listed in meson.build: {sorted(there - listed)}; not there: {sorted(listed - there)}"


def test_the_example_of_the_readme_is_a_test():
    code = (HERE / "test_example.py").read_text(encoding="utf-8").partition('"""\n')[2].strip()
    block = "\n".join(f"    {line}" if line else "" for line in code.splitlines())
    assert block in (HERE / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def cluster():
    stand_in = HERE / "harness" / "stand_in.py"
    programs = {"ResumeProgram": (stand_in, "resume"), "SuspendProgram": (stand_in, "suspend")}
    with Cluster([Nodeset("n", 16)], build="", programs=programs, quick_tick=False) as started:
        yield started
    assert not procs.find(str(started.dir))
    assert not os.path.exists(started.dir)


def test_sixteen_nodes_boot_run_one_job_and_go_away(cluster):
    job = cluster.sbatch("-N", "16", script="srun hostname -s | sort | uniq -c; echo $SLURM_JOB_NODELIST")
    cluster.wait_job(job, "COMPLETED")
    assert "n-[0-15]" in cluster.output(job)
    cluster.wait_off(*cluster.nodesets["n"].nodes)
    cluster.wait_for(lambda: not [pid for pid in cluster.sandbox.processes()
                                  if "slurmd" in procs.describe(pid)], 20, "the VMs to be gone")


def test_a_restart_of_slurmctld_loses_nothing(build):
    """It saves its state when it is asked to end; a crash would lose the last seconds."""
    stand_in = HERE / "harness" / "stand_in.py"
    with Cluster([Nodeset("n", 1)], build=build, programs={"ResumeProgram": (stand_in, "resume")}) as cluster:
        job = cluster.sbatch("--hold")
        cluster.restart_slurmctld()
        assert cluster.job_state(job) == "PENDING", cluster.log_tails()
