# SPDX-License-Identifier: GPL-2.0-or-later
"""What jobs see of the end of their VMs while they run: one scene each."""
import calendar
import re
import time

from plugin_site import BAD
from sweeper_site import pause, until

HOUR = 3600
# "within 60 s" is promised; here nothing lies between but whole seconds.
CLOSE = 2
# Seconds: the plugin waits 2 for an answer.
DELAY = 3


def assert_sees(stage, found, node, nodeset):
    """The end of this node's VM, as the emulator has it."""
    vm = stage.now.vms[node]
    assert found, "it sees nothing at all"
    for sight in found:
        assert abs(sight.end - vm["ends"]) <= CLOSE, (sight, vm)
        assert (sight.nodeset, sight.request) == (nodeset, stage.request_for(node)), sight


def is_over(stage, *names):
    return until(lambda now: all(now.state(stage.job[name]) == "COMPLETED" for name in names), 120,
                 f"{', '.join(names)} to run")


def running_job(stage):
    """Batch script, its steps, later steps, one from outside without the environment, one with an option."""
    cluster = stage.cluster
    go = cluster.dir / "out" / "go"
    job = stage.submit("run", "-p", "run", "-N1", "--time=30", "--flex-run-duration=2h", script=(
        f"{stage.sees} batch; srun {stage.sees} step; while ! test -f {go}; do sleep 0.2; done; "
        f"srun {stage.sees} later; "
        f"sbatch --parsable -p plain -N1 --output=inner.out --wrap '{stage.sees} inner'; sleep 900"))
    yield until(lambda now: stage.seen(job, "step"), 120, "the job to run")
    yield pause(5)
    cluster.sandbox.write("out/go", "")
    yield until(lambda now: stage.seen(job, "later"), 60, "a later step")
    assert_sees(stage, stage.seen(job), "run-0", "run")
    assert {sight.label for sight in stage.seen(job)} == {"batch", "step", "later"}
    assert 2 * HOUR - 10 < stage.seen(job)[0].end - stage.now.vms["run-0"]["created"] < 2 * HOUR + 10
    outside = cluster.slurm("srun", f"--jobid={job}", "--overlap", "--export=NONE", stage.sees, "outside")
    stage.outside = outside.stdout
    yield until(lambda now: "sees inner" in stage.output("inner.out"), 60, "the job that it submitted")
    stage.inner = int(re.search(r"^(\d+)$", cluster.output(job), re.MULTILINE)[1])
    stage.mark("running")


def option_for_a_step(stage):
    """It only counts for new jobs: a line says so, and the step runs."""
    yield until(lambda now: "running" in stage.marks, 180, "a running job")
    done = stage.cluster.slurm("srun", f"--jobid={stage.job['run']}", "--overlap", "--flex-run-duration=4h",
                               stage.sees, "option")
    stage.step_said, stage.step_saw = done.stderr, done.stdout
    yield until(lambda now: True, 5, "a look")
    assert stage.now.jobs[stage.job["run"]]["Comment"] == "flex(run=2h)"


def ordinary_node(stage):
    job = stage.submit("plain", "-p", "plain", "-N1", "--time=5", script=f"{stage.sees} batch; srun {stage.sees} step")
    yield is_over(stage, "plain")
    assert len(stage.seen(job)) == 2
    assert all(sight.is_nothing for sight in stage.seen(job)), stage.seen(job)


def two_ends(stage):
    """Two VMs that end at different times: the earlier one is what every task sees, also without a batch script."""
    stage.submit("two-0", "-p", "two", "-w", "two-0", "-N1", "--time=5", "--flex-run-duration=3h")
    stage.submit("two-1", "-p", "two", "-w", "two-1", "-N1", "--time=5", "--flex-run-duration=2h")
    yield is_over(stage, "two-0", "two-1")
    yield until(stage.wait_extra("two-0", "two-1"), 30, "both nodes to tell their VMs' ends")
    job = stage.submit("two", "-p", "two", "-N2", "--ntasks-per-node=2", "--time=5",
                       script=f"{stage.sees} batch; srun -n4 {stage.sees} step; srun -N1 -n1 -w two-0 {stage.sees} one")
    yield is_over(stage, "two")
    assert sorted(sight.node for sight in stage.seen(job, "step")) == ["two-0", "two-0", "two-1", "two-1"]
    assert len(stage.seen(job)) == 6
    assert_sees(stage, stage.seen(job), "two-1", "two")
    child = stage.spawn("srun", "-p", "two", "-N2", "--time=5", stage.sees, "direct", log="two-srun.out")
    yield until(lambda now: child.poll() is not None, 60, "srun to end")
    found = stage.sights_in("two-srun.out")
    assert sorted(sight.node for sight in found) == ["two-0", "two-1"], stage.cluster.log("two-srun.out")
    assert_sees(stage, found, "two-1", "two")
    stage.mark("two")


def het_job(stage):
    """The earliest of all components."""
    job = stage.submit("het", "-p", "het", "-N1", "--time=5", "--flex-run-duration=3h", ":",
                       "-p", "het2", "-N1", "--time=5", "--flex-run-duration=2h",
                       script=f"{stage.sees} batch; srun --het-group=0,1 {stage.sees} step; "
                              f"srun --het-group=1 {stage.sees} second; sleep 5")
    yield until(lambda now: stage.seen(job, "second"), 120, "the job to run")
    assert {sight.node for sight in stage.seen(job, "step")} == {"het-0", "het2-0"}
    assert_sees(stage, stage.seen(job), "het2-0", "het2")


def new_vm(stage):
    """Its VM is lost: on the new one it sees the new end. What others say of the node stays, in JSON too."""
    cluster = stage.cluster
    cluster.scontrol("update", "nodename=lost-0", 'extra={"rack":7}')
    job = stage.submit("lost", "-p", "lost", "-N1", "--time=20", "--open-mode=append", script=(
        f"{stage.sees} batch; srun {stage.sees} step; test -n \"$SLURM_RESTART_COUNT\" && sleep 8 && exit 0; sleep 900"))
    yield until(lambda now: len(stage.seen(job)) == 2, 120, "the job to run")
    assert_sees(stage, stage.seen(job), "lost-0", "lost")
    assert stage.now.nodes["lost-0"]["Extra"].startswith('{"rack":7,"flex":"flex(end='), stage.now.nodes["lost-0"]
    old = stage.seen(job)
    stage.emulator.kill_instance("lost-0")
    yield until(lambda now: now.restarts(job) == 1, 60, "the job to be requeued")
    yield until(lambda now: len(stage.seen(job)) == 4, 120, "the job to run again")
    assert_sees(stage, stage.seen(job)[2:], "lost-0", "lost")
    assert min(sight.end for sight in stage.seen(job)[2:]) > old[0].end + 10
    yield until(lambda now: now.is_off("lost-0"), 60, "the node to be powered down")
    yield until(lambda now: now.nodes["lost-0"].get("Extra", "") == '{"rack":7}', 30, "only the words of others to be left")


def same_vm(stage):
    """Requeued by its user, it is on the same VM again."""
    cluster = stage.cluster
    cluster.scontrol("update", "nodename=again-0", "extra=rack 7")
    job = stage.submit("again", "-p", "again", "-N1", "--time=20", "--open-mode=append", script=(
        f"{stage.sees} batch; srun {stage.sees} step; test -n \"$SLURM_RESTART_COUNT\" && exit 0; sleep 900"))
    yield until(lambda now: len(stage.seen(job)) == 2, 120, "the job to run")
    assert stage.now.nodes["again-0"]["Extra"].startswith("rack 7 flex(end="), stage.now.nodes["again-0"]
    vm = stage.now.vms["again-0"]["created"]
    cluster.scontrol("requeue", str(job))
    yield until(lambda now: len(stage.seen(job)) == 4, 120, "the job to run again")
    assert stage.now.vms["again-0"]["created"] == vm
    assert_sees(stage, stage.seen(job), "again-0", "again")
    stage.emulator.kill_instance("again-0")
    yield until(lambda now: now.nodes["again-0"].get("Extra", "") == "rack 7", 60, "only the words of others to be left")


def bad_libslurm(number):
    """A call that hangs, fails or ends its process: the job starts, without a word of its VMs, and hardly later."""
    def scene(stage):
        node = f"bad-{number}"
        job = stage.submit(f"{node} first", "-p", "bad", "-w", node, "-N1", "--time=5",
                           script=f"{stage.sees} batch; srun {stage.sees} step")
        yield is_over(stage, f"{node} first")
        assert len(stage.seen(job)) == 2 and all(sight.is_nothing for sight in stage.seen(job)), stage.seen(job)
        yield until(stage.wait_extra(node), 30, "the node to tell its VM's end")
        stage.cluster.sandbox.write(f"out/{node}.calls", "", 0o666)
        began = time.monotonic()
        job = stage.submit(node, "-p", "bad", "-w", node, "-N1", "--time=5",
                           script=f"{stage.sees} batch; srun {stage.sees} step; srun {stage.sees} step")
        submitted = time.monotonic() - began
        yield is_over(stage, node)
        record = stage.now.jobs[job]
        start = calendar.timegm(time.strptime(record["StartTime"], "%Y-%m-%dT%H:%M:%S"))
        found = stage.seen(job)
        assert len(found) == 3 and all(sight.is_nothing for sight in found), found
        # What sbatch takes now tells how busy the machine is.
        assert found[0].at - start <= DELAY + 1 + 20 * submitted, (start, found)
        assert stage.output(f"{node}.calls").count("called") == 1, stage.output(f"{node}.calls")
    return scene


SCENES = {
    "running": running_job,
    "option for a step": option_for_a_step,
    "ordinary node": ordinary_node,
    "two ends": two_ends,
    "het job": het_job,
    "new VM": new_vm,
    "same VM": same_vm,
    **{f"libslurm: {kind}": bad_libslurm(number) for number, kind in enumerate(BAD)},
}
