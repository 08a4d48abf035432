# SPDX-License-Identifier: GPL-2.0-or-later
"""What the sweeper tells slurmctld and jobs of a lease's end, call by call: reservations, signals, lines."""
import time
from pathlib import Path

import pytest

from harness.conf import Nodeset
from harness.slurm import Cluster

HERE = Path(__file__).resolve().parent
STAY = {"SuspendTime": "3600"}
URG = "23"
# Says whom the signal reached; ends by itself.
LISTENER = """
import os, signal, time
who = os.environ.get("FLEX_WHO") or "task" + os.environ["SLURM_PROCID"]
signal.signal(signal.SIGURG, lambda *_: print("got", who, flush=True))
print("ready", who, flush=True)
end = time.monotonic() + 60
while time.monotonic() < end and not os.path.exists("over"):
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def cluster(build):
    stand_in = HERE / "harness" / "stand_in.py"
    programs = {"ResumeProgram": (stand_in, "resume"), "SuspendProgram": (stand_in, "suspend")}
    nodesets = [Nodeset("n", 6, partition=STAY), Nodeset("s", 2, partition={**STAY, "OverSubscribe": "NO"}),
                Nodeset("off", 2, partition=STAY)]
    with Cluster(nodesets, build=build, programs=programs) as started:
        started.tool = started.sandbox.install(build / "test" / "cluster" / "scheduler-tool")
        started.sandbox.write("out/listener.py", LISTENER)
        started.scontrol("update", "nodename=n-[0-5],s-[0-1]", "state=power_up")
        nodes = started.nodesets["n"].nodes + started.nodesets["s"].nodes
        started.wait_for(lambda: all(started.node_state(node) == {"IDLE", "CLOUD"} for node in nodes), 60,
                         "the nodes to be up")
        yield started


def call(cluster, *words):
    """The lines that scheduler-tool prints; for a failure "failed" and its kind."""
    done = cluster.sandbox.run([cluster.tool, *[str(word) for word in words]], env=cluster.env(), check=False)
    return (["failed", done.stdout.split(" ")[0]] if done.returncode else done.stdout.splitlines())


def reservations(cluster):
    lines = [line.split() for line in call(cluster, "reservations")]
    return {line[0]: (line[1], int(line[2]), int(line[3]), line[4]) for line in lines if len(line) == 5}


def reason(cluster, job):
    return cluster.job(job).get("Reason", "")


def test_exclusive_partitions_are_told_from_others(cluster):
    assert {"n exclusive=true", "s exclusive=false"} <= set(call(cluster, "partitions"))


def test_a_reservation_keeps_longer_jobs_off_and_lets_shorter_ones_on(cluster):
    now = int(time.time())
    assert call(cluster, "create", "eol", "n-0", now + 300, now + 900) == []
    assert reservations(cluster)["eol"] == ("n-0", now + 300, now + 900, "MI")
    longer = cluster.sbatch("-p", "n", "-w", "n-0", "-t", "10")
    shorter = cluster.sbatch("-p", "n", "-w", "n-0", "-t", "2")
    cluster.wait_job(shorter, "COMPLETED")
    assert cluster.job_state(longer) == "PENDING" and "ReqNodeNotAvail" in reason(cluster, longer)
    assert call(cluster, "create", "eol", "n-1", now + 300, now + 900) == ["failed", "already_exists"]
    assert call(cluster, "update", "eol", "n-0", now + 3000, now + 3900) == []
    cluster.wait_job(longer, "COMPLETED")
    assert call(cluster, "delete", "eol") == []
    assert call(cluster, "delete", "eol") == ["failed", "not_found"]
    assert call(cluster, "update", "eol", "n-0", now + 3000, now + 3900) == ["failed", "not_found"]
    assert call(cluster, "create", "eol", "none-0", now + 3000, now + 3900) == ["failed", "not_found"]


def test_one_that_has_started_can_change_its_nodes_and_its_end(cluster):
    job = cluster.sbatch("-p", "n", "-w", "n-1", "-t", "60", script="sleep 100")
    cluster.wait_job(job, "RUNNING")
    now = int(time.time())
    # Over a job that runs longer, over nodes that are off, and with a start that has passed.
    assert call(cluster, "create", "begun", "n-1,off-0", now - 60, now + 600) == []
    cluster.wait_for(lambda: "MAINTENANCE" in cluster.node_state("off-0"), 20, "the reservation to be active")
    assert cluster.job_state(job) == "RUNNING"
    assert call(cluster, "update", "begun", "n-[1-2]", now + 60, now + 700) == []
    assert reservations(cluster)["begun"] == ("n-[1-2]", now - 60, now + 700, "MI")
    cluster.wait_for(lambda: "MAINTENANCE" not in cluster.node_state("off-0"), 20, "off-0 to be free")
    # Power saving is not in its way.
    cluster.scontrol("update", "nodename=n-2", "state=power_down")
    cluster.wait_off("n-2")
    assert call(cluster, "delete", "begun") == []
    cluster.wait_for(lambda: "MAINTENANCE" not in cluster.node_state("n-2"), 20, "n-2 to be free")
    cluster.scancel(job)


def test_one_that_nobody_deletes_goes_at_its_end(cluster):
    now = int(time.time())
    assert call(cluster, "create", "brief", "off-1", now - 5, now + 8) == []
    cluster.wait_for(lambda: "MAINTENANCE" in cluster.node_state("off-1"), 20, "the reservation to be active")
    cluster.wait_for(lambda: "brief" not in reservations(cluster), 40, "the reservation to be gone")
    cluster.wait_for(lambda: cluster.is_off("off-1") and "MAINTENANCE" not in cluster.node_state("off-1"), 20,
                     "off-1 to be free")


def test_a_signal_reaches_script_children_and_steps_of_that_job_alone(cluster):
    listener = "/usr/bin/python3 listener.py"
    script = (f"trap 'echo got script' URG; FLEX_WHO=child {listener} & srun -N2 -n2 {listener} & "
              "wait; wait; wait; wait")
    wide = cluster.sbatch("-p", "n", "-w", "n-[3-4]", "-N", "2", "-t", "5", script=script)
    array = cluster.sbatch("-p", "s", "-n1", "-t", "5", "-a", "0-1", "--output=%A_%a.out",
                           script=f"FLEX_WHO=array {listener}")
    unaware = cluster.sbatch("-p", "n", "-w", "n-5", "-t", "5", script="srun sleep 5; echo through")
    late = cluster.sbatch("-p", "n", "-w", "n-3", "-t", "5")

    def output(name):
        path = cluster.dir / "out" / f"{name}.out"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    cluster.wait_for(lambda: output(wide).count("ready") == 3, 40, "the listeners of the wide job")
    tasks = [f"{array}_0", f"{array}_1"]
    cluster.wait_for(lambda: all("ready" in output(task) for task in tasks), 40, "the array's listeners")
    cluster.wait_job(unaware, "RUNNING")
    for job in (wide, array, unaware):
        assert call(cluster, "signal", job, URG) == []
    cluster.wait_for(lambda: output(wide).count("got") == 4, 20, "the signal")
    assert {line for line in output(wide).splitlines() if line.startswith("got")} == {
        "got script", "got child", "got task0", "got task1"}
    # One of the array's tasks has the array's own number.
    cluster.wait_for(lambda: any("got" in output(task) for task in tasks), 20, "the signal")
    assert sum(output(task).count("got") for task in tasks) == 1
    for job in (wide, array):
        assert call(cluster, "notify", job, "the lease ends soon") == []
    cluster.wait_for(lambda: "the lease ends soon" in output(wide), 20, "the line")
    cluster.wait_for(lambda: any("the lease ends soon" in output(task) for task in tasks), 20, "the array's line")
    assert sum(output(task).count("the lease ends soon") for task in tasks) == 1
    assert call(cluster, "signal", late, URG) == ["failed", "precondition"]
    assert call(cluster, "notify", late, "x") == ["failed", "precondition"]
    cluster.wait_job(unaware, "COMPLETED")
    assert "through" in output(unaware)
    assert call(cluster, "signal", unaware, URG) == ["failed", "precondition"]
    assert call(cluster, "signal", 99999, URG) == ["failed", "not_found"]
    assert call(cluster, "notify", 0, "everybody") == ["failed", "not_found"]
    cluster.sandbox.write("out/over", "")
    cluster.wait_job(wide, "COMPLETED")
