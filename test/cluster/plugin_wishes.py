# SPDX-License-Identifier: GPL-2.0-or-later
"""What jobs ask for with the plugin's options, or with the token by hand, and what comes of it."""
import time
from dataclasses import dataclass, field

from harness.slurm import slurm_version
from plugin_site import MARGIN
from sweeper_site import pause, until

MINUTE, HOUR, DAY = 60, 3600, 86400
DURATION = "--flex-run-duration"
WAITS = "flex: waiting for 1 VM in us-central1 since "


@dataclass
class Wish:
    """A job of 10 minutes for which no VM is to be had."""
    seconds: int                                # requestedRunDuration at the emulator
    options: list = field(default_factory=list)
    lines: list = field(default_factory=list)   # of #SBATCH
    comment: str = ""                           # the job's, as slurmctld has it
    partition: str = "ask"
    told: str = ""                              # what the AdminComment says beside its wait
    since: tuple = (22, 5)                      # Slurm's version


WISHES = {
    "no wish": Wish(10 * MINUTE + MARGIN),
    "hours": Wish(4 * HOUR, [f"{DURATION}=4h"], comment="flex(run=4h)"),
    "two words": Wish(4 * HOUR, [DURATION, "4h"], comment="flex(run=4h)"),
    "minutes": Wish(90 * MINUTE, [f"{DURATION}=90"], comment="flex(run=90m)"),
    "clock": Wish(90 * MINUTE + 1, [f"{DURATION}=1:30:01"], comment="flex(run=5401s)"),
    "day and hours": Wish(26 * HOUR, [f"{DURATION}=1-2"], comment="flex(run=26h)"),
    "shortest": Wish(10 * MINUTE, [f"{DURATION}=10m"], comment="flex(run=10m)"),
    "longest": Wish(7 * DAY, [f"{DURATION}=7d"], comment="flex(run=7d)"),
    "sbatch line": Wish(2 * HOUR, lines=[f"{DURATION}=2h"], comment="flex(run=2h)"),
    "sbatch line, two words": Wish(2 * HOUR, lines=[f"{DURATION} 2h"], comment="flex(run=2h)"),
    "command line first": Wish(3 * HOUR, [f"{DURATION}=3h"], [f"{DURATION}=2h"], "flex(run=3h)"),
    "one of each": Wish(3 * HOUR, [f"{DURATION}=3h"], ["--flex-max-wait=2d", "--flex-on-timeout=hold"],
                        "flex(run=3h,wait=2d,ontimeout=hold)"),
    "beside a comment": Wish(4 * HOUR, ["--comment=paper 7: run=3, (a)", f"{DURATION}=4h"],
                             comment="paper 7: run=3, (a) flex(run=4h)"),
    "comment in a line": Wish(4 * HOUR, [f"{DURATION}=4h"], ["--comment='for A, B'"],
                              "for A, B flex(run=4h)"),
    "by hand": Wish(5 * HOUR, ["--comment=flex(run=5h)"], comment="flex(run=5h)"),
    "by hand in a line": Wish(5 * HOUR, lines=["--comment='see flex(run=5h) there'"],
                              comment="see flex(run=5h) there"),
    "option over hand": Wish(6 * HOUR, ["--comment=a flex(run=5h,wait=2d) b", f"{DURATION}=6h"],
                             comment="a flex(run=6h,wait=2d) b"),
    "by hand in extra": Wish(5 * HOUR, ["--extra=x flex(run=5h)"], since=(23, 2)),
    "comment over extra": Wish(4 * HOUR, ["--extra=flex(run=5h)", f"{DURATION}=4h"], comment="flex(run=4h)",
                               since=(23, 2)),
    "bad by hand": Wish(10 * MINUTE + MARGIN, ["--comment=flex(run=8d,wait=2d)"], comment="flex(run=8d,wait=2d)",
                        told="ignored: run=8d: too long, VMs live from 10m to 7d"),
    "capped": Wish(HOUR, [f"{DURATION}=2h"], comment="flex(run=2h)", partition="cap",
                   told="asked for VMs that live 02:00:00, but here they live 01:00:00 from their start"),
    "not capped": Wish(30 * MINUTE, [f"{DURATION}=30m", "--time=50"], comment="flex(run=30m)", partition="cap"),
    "not here": Wish(2 * HOUR, [f"{DURATION}=1h"], comment="flex(run=1h)", partition="fixed",
                     told="asked for VMs that live 01:00:00, but here they live 02:00:00 from their start"),
}
WISHES = {name: wish for name, wish in WISHES.items() if slurm_version() >= wish.since}


def request_of(now, job):
    """The one request that a job has ever had, or None."""
    found = [request for request in now.requests if request.name.startswith(f"j{job}-")]
    assert len(found) < 2, found
    return found[0] if found else None


def tasks_of(now, job):
    """The records of an array's tasks, by their numbers."""
    # Those that wait may be "1%1", with how many may run at once.
    return {record["ArrayTaskId"].partition("%")[0]: record for record in now.jobs.values()
            if record.get("ArrayJobId") == str(job)}


def comment_of(now, job):
    comment = now.jobs[job].get("Comment", "")
    return "" if comment == "(null)" else comment


def submit(stage, name, lines, partition, *options):
    text = "".join(f"#SBATCH {line}\n" for line in lines) + "exit 0\n"
    return stage.submit_script(name, text, "-p", partition, "-N1", "--time=10", *options)


def wish_scene(name, wish):
    def scene(stage):
        job = submit(stage, name, wish.lines, wish.partition, *wish.options)
        yield until(lambda now: request_of(now, job), 60, "its request")
        assert request_of(stage.now, job).seconds == wish.seconds
        assert comment_of(stage.now, job) == wish.comment
        if wish.told:
            yield until(lambda now: now.comment(job).startswith(WAITS) and now.comment(job).endswith(f"; {wish.told}"),
                        30, f"to be told: {wish.told}")
        # Cancelled, it would leave its node and its request to another one.
    return scene


def array_job(stage):
    """Every task of an array has the wish."""
    job = stage.submit("array", "-p", "ask", "-N1", "--time=10", "--array=0-1", f"{DURATION}=4h")

    def requests(now):
        tasks = [int(record["JobId"]) for record in tasks_of(now, job).values()]
        return [request for task in tasks if (request := request_of(now, task))]
    yield until(lambda now: len(requests(now)) == 2, 60, "two requests")
    assert [request.seconds for request in requests(stage.now)] == [4 * HOUR] * 2


def het_job(stage):
    """Each component has a wish of its own, else, as with --time and --comment, that of the one before it."""
    job = stage.submit("het wish", "-p", "ask", "-N1", "--time=10", "--comment=first", f"{DURATION}=2h", ":",
                       "-p", "ask", "-N1", "--time=10", f"{DURATION}=3h", ":", "-p", "ask", "-N1", "--time=10")
    yield until(lambda now: all(request_of(now, job + part) for part in range(3)), 60, "three requests")
    now = stage.now
    assert [comment_of(now, job + part) for part in range(3)] == ["first flex(run=2h)"] + ["first flex(run=3h)"] * 2
    assert [request_of(now, job + part).seconds for part in range(3)] == [2 * HOUR, 3 * HOUR, 3 * HOUR]


def without_batch(command, *words):
    """srun and salloc wait for their VMs; the job is known by its name."""
    def scene(stage):
        name = f"{command}-wish"
        child = stage.spawn(command, "-p", "ask", "-N1", "--time=10", f"--job-name={name}", "--comment=mine",
                            f"{DURATION}=4h", "--flex-max-wait=3h", *words, log=f"{name}.out")

        def job_in(now):
            return [number for number, record in now.jobs.items() if record["JobName"] == name]
        job = (yield until(job_in, 60, "the job"))[0]
        yield until(lambda now: request_of(now, job), 60, "its request")
        assert request_of(stage.now, job).seconds == 4 * HOUR
        assert comment_of(stage.now, job) == "mine flex(run=4h,wait=3h)"
        assert child.poll() is None, stage.cluster.log(f"{name}.out")
        stage.cluster.scancel(job)
        yield until(lambda now: child.poll() is not None, 60, f"{command} to end")
    return scene


# Waits

def given_up(stage, name, nodeset, options, *, lines=(), held=False, cancelled=False, words, least):
    """A scene of a job that is given back after its wait."""
    job = submit(stage, name, lines, nodeset, *options)
    node = (yield until(lambda now: request_of(now, job) and request_of(now, job).nodes, 60, "its request"))[0]
    created = request_of(stage.now, job).body["created"]
    if cancelled:
        yield until(lambda now: now.state(job) == "CANCELLED", 60, "the job to be cancelled")
    else:
        yield until(lambda now: now.restarts(job) > 0, 60, "the job to be back")
    assert time.time() - created >= least - 1  # Google tells whole seconds
    # It may wait again already, with other words.
    told = [text for _, text in stage.cluster.admin_comments(job) if text.startswith("flex: no VMs")]
    assert set(told) == {f"flex: {words}"}, told
    if held:
        yield until(lambda now: now.is_held(job), 30, "the job to be held")
    elif not cancelled:
        stage.cluster.scancel(job)
    yield until(lambda now: not [request for request in now.requests if request.name.startswith(f"j{job}-")
                                 and request.is_active] and node not in now.vms and now.is_off(node), 60,
                "nothing to be left")
    if held:
        stage.cluster.scancel(job)


def wait_scene(name, nodeset, options, **more):
    def scene(stage):
        yield from given_up(stage, name, nodeset, options, **more)
    return scene


def task_alone(then, is_gone):
    """One task of an array at a time: what becomes of the first does not become of the second."""
    def scene(stage):
        job = stage.submit(f"array {then}", "-p", "late", "-N1", "--time=10", "--array=0-1%1", WAIT,
                           f"--flex-on-timeout={then}")
        yield until(lambda now: "0" in tasks_of(now, job) and is_gone(tasks_of(now, job)["0"]), 60, "the first task to go")
        second = tasks_of(stage.now, job)["1"]
        assert second["JobState"] in ("PENDING", "CONFIGURING") and not is_gone(second), second
        yield until(lambda now: tasks_of(now, job)["1"]["JobState"] == "CONFIGURING", 60, "the second task to wait")
        stage.cluster.scancel(job)
    return scene


def second_component(stage):
    """Only the second component of a heterogeneous job has a limit: all of the job goes."""
    job = stage.submit("late het", "-p", "late", "-N1", "--time=10", ":", "-p", "late", "-N1", "--time=10", WAIT,
                       "--flex-on-timeout=cancel")
    yield until(lambda now: all(request_of(now, job + part) for part in (0, 1)), 60, "two requests")
    nodes = [node for part in (0, 1) for node in request_of(stage.now, job + part).nodes]
    yield until(lambda now: now.state(job) == now.state(job + 1) == "CANCELLED", 60, "both components to be cancelled")
    yield until(lambda now: now.is_off(*nodes) and not [node for node in nodes if now.active(node)], 60,
                "nothing to be left")
    assert stage.now.comment(job + 1) == f"flex: {OWN}; {CANCELLED}"


def shared_node(stage):
    """Of two jobs on one node one has a limit: it goes, the other one keeps its request."""
    short = stage.submit("share short", "-p", "share", "-n1", "--time=10", WAIT, "--flex-on-timeout=cancel")
    long = stage.submit("share long", "-p", "share", "-n1", "--time=10")
    name = yield until(lambda now: now.queued("share-0"), 60, "their request")
    yield until(lambda now: now.state(short) == "CANCELLED", 60, "the one with a limit to be cancelled")
    assert stage.now.comment(short) == f"flex: {OWN}; {CANCELLED}"
    assert stage.now.state(long) == "CONFIGURING" and stage.now.queued("share-0") == name
    yield pause(4)
    assert stage.now.state(long) == "CONFIGURING" and stage.now.queued("share-0")
    stage.cluster.scancel(long)


OWN = "no VMs within the job's max-wait 00:00:06"
QUEUE, HELD = "back in the queue", "held, 'scontrol release' it to try again"
CANCELLED = "cancelled, submit it again to try again"
WAIT = "--flex-max-wait=0:06"

SCENES = {
    **{f"wish: {name}": wish_scene(name, wish) for name, wish in WISHES.items()},
    "wish: array": array_job,
    "wish: het job": het_job,
    "wish: srun": without_batch("srun", "hostname"),
    "wish: salloc": without_batch("salloc", "hostname"),
    "wait: requeue by default": wait_scene("w0", "late", [WAIT], words=f"{OWN}; {QUEUE}", least=6),
    "wait: requeue": wait_scene("w1", "cut", ["--flex-max-wait=0:03", "--flex-on-timeout=requeue"],
                                words=f"no VMs within the job's max-wait 00:00:03; {QUEUE}", least=3),
    "wait: hold": wait_scene("w2", "late", [WAIT, "--flex-on-timeout=hold"], held=True, words=f"{OWN}; {HELD}", least=6),
    "wait: cancel": wait_scene("w3", "late", [WAIT, "--flex-on-timeout=cancel"], cancelled=True,
                               words=f"{OWN}; {CANCELLED}", least=6),
    "wait: by hand": wait_scene("w4", "late", ["--comment=flex(wait=0:06,ontimeout=cancel)"], cancelled=True,
                                words=f"{OWN}; {CANCELLED}", least=6),
    "wait: lines": wait_scene("w6", "late", [], lines=[WAIT, "--flex-on-timeout=hold"], held=True, words=f"{OWN}; {HELD}",
                              least=6),
    "wait: cut": wait_scene("w5", "cut", ["--flex-max-wait=10m"], held=True,
                            words=f"no VMs within provision_timeout 00:00:06; {HELD}", least=6),
    "wait: a task is cancelled": task_alone("cancel", lambda record: record["JobState"] == "CANCELLED"),
    "wait: a task is held": task_alone("hold", lambda record: record["JobState"] == "PENDING" and record["Priority"] == "0"),
    "wait: second component": second_component,
    "wait: shared node": shared_node,
}
if slurm_version() >= (23, 2):
    SCENES["wait: extra"] = wait_scene("w7", "late", ["--extra=flex(wait=0:06,ontimeout=cancel)"], cancelled=True,
                                       words=f"{OWN}; {CANCELLED}", least=6)
