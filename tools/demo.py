#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole story on one machine: sbatch --time, the Flex Start queue, VMs, the run, and nothing left.

Starts a private Slurm, a local Compute Engine and the real programs in a scratch directory, tells
what happens, and removes it all. Exit code 0 only if everything was as it should be.
"""
import argparse
import contextlib
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "test" / "cluster")]

from demo_display import Display  # noqa: E402
from harness import procs  # noqa: E402
from harness.conf import Nodeset, to_yaml  # noqa: E402
from harness.emulator import Emulator  # noqa: E402
from harness.sandbox import LeftBehind  # noqa: E402
from harness.slurm import Cluster  # noqa: E402

NODES, MINUTES, MARGIN = 4, 20, 15
SECONDS = (MINUTES + MARGIN) * 60
ZONE = "us-central1-a"
QUEUE_SECONDS = 10
PROGRAMS = ("resume/flex-resume", "suspend/flex-suspend", "sweeper/flex-sweeper",
            "emulator/flex-gce-emulator", "plugin/spank_flex_start.so", "timeleft/flex-timeleft")
# Short enough to watch; the defaults are 15 s, 3 min, 10 min and an hour.
SWEEPER = {"interval": "1s", "orphan_grace": "3s", "empty_mig_grace": "6s", "finished_request_grace": "1h",
           "listen": "127.0.0.1:0"}
READS = ("list", "aggregatedList", "get", "listManagedInstances", "wait")


def bar(count):
    return "#" * count + "." * (NODES - count)


def short(method):
    """'requests.insert' for compute.regionInstanceGroupManagerResizeRequests.insert."""
    collection, _, verb = method.rpartition(".")
    for ending, name in (("ResizeRequests", "requests"), ("InstanceGroupManagers", "groups"),
                         ("Operations", "operations")):
        if collection.endswith(ending):
            return f"{name}.{verb}"
    return method


class Deviation(Exception):
    """The story did not go as it should."""


class Demo:
    """One run. Each step waits for what it tells, and checks it."""

    def __init__(self, build, show):
        self.show = show
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={ZONE: 0},
                                 eta_seconds=QUEUE_SECONDS)
        self.nodeset = Nodeset("gpu", NODES, {"zones": [ZONE]}, {"ResumeTimeout": "300"})
        self.cluster = Cluster([self.nodeset], build=build, emulator=self.emulator, name="demo", quick_tick=False,
                               log_level="info", sweeper=True, flex_extra={"sweeper": SWEEPER},
                               plugin=["optional"], invariants=False)
        self.job = 0
        self.journal = []
        self.times = {}

    def check(self, is_true, what):
        if not is_true:
            raise Deviation(what)

    def wait(self, condition, timeout, what):
        """Waits with the live line going."""
        deadline = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise Deviation(f"{what}: not within {timeout} s\n{self.cluster.situation()}")
            self.show.live(self.status())
            time.sleep(0.15)
        return value

    def status(self):
        """The live line: the most telling parts first, the rest where there is room."""
        if not self.job:
            return "starting"
        vms = sum(status == "RUNNING" for status in self.emulator.vms().values())
        return (f"job {self.cluster.job_state(self.job)} · VMs {bar(vms)} · {self.request_status()} · "
                f"nodes up {bar(self.nodes_up())}")

    def request_status(self):
        requests = self.emulator.requests_of(self.job)
        if not requests:
            return "request deleted" if "queued" in self.times else "no request yet"
        if requests[0].state == "ACCEPTED" and "queued" in self.times:
            return f"request queued {time.monotonic() - self.times['queued']:.0f} s"
        return f"request {requests[0].state}"

    def nodes_up(self):
        off = {"POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "NOT_RESPONDING"}
        return sum(not off & self.cluster.node_state(node) for node in self.nodeset.nodes)

    def log_has(self, name, pattern):
        return re.search(pattern, self.cluster.log(name))

    # The story

    def run(self):
        self.start()
        self.submit()
        self.queue()
        self.grant()
        self.run_job()
        self.suspend()
        self.sweep()

    def start(self):
        show, cluster = self.show, self.cluster
        show.title("A private Slurm and a local Compute Engine")
        cluster.start()
        cluster.sandbox.install(cluster.build / "timeleft" / "flex-timeleft")
        version = ".".join(map(str, (cluster.version[0], f"{cluster.version[1]:02d}")))
        show.say(f"Slurm {version} runs as user {cluster.sandbox.account.pw_name} in {cluster.dir}; "
                 f"the emulator stands in for Google at {self.emulator.url}; flex-sweeper watches both.")
        show.say(f"slurm.conf has {NODES} nodes, {self.nodeset.hostlist}, that do not exist: State=CLOUD. "
                 "flex-start.yaml beside it says where their VMs come from:")
        for line in to_yaml({"nodesets": cluster.flex_config["nodesets"]}).splitlines():
            show.say(f"    {line}")

    def submit(self):
        show, cluster = self.show, self.cluster
        show.title("A user submits a job")
        script = "srun sh -c 'echo hello from $SLURMD_NODENAME'; flex-timeleft --human; sleep 3"
        show.command(f'sbatch --time=0:{MINUTES}:00 -N {NODES} --wrap "{script}"')
        self.job = cluster.sbatch(f"--time=0:{MINUTES}:00", "-N", str(NODES),
                                  script=f"PATH={cluster.dir}/bin:$PATH; {script}")
        self.times["submitted"] = time.monotonic()
        show.say(f"Submitted batch job {self.job}")
        self.wait(lambda: cluster.job_state(self.job) == "CONFIGURING", 20, "the job to get its nodes")
        show.say(f"slurmctld gives it {self.nodeset.hostlist} and, as they are powered down, calls "
                 f"flex-resume {self.nodeset.hostlist}. The job is CONFIGURING: it has its nodes and "
                 "waits for them to boot.")

    def queue(self):
        show = self.show
        show.title("Google's Flex Start queue")
        request = self.wait(lambda: self.emulator.requests_of(self.job), 20, "the request")[0]
        show.say(f"flex-resume has created the group {request.group} (size 0, one per nodeset) and in it "
                 f"the request {request.name}, which asks for {len(request.nodes)} VMs, all at once, for "
                 f"{request.seconds} s = {MINUTES} min time limit + {MARGIN} min margin for boot and end. "
                 "It does not wait for them; it has exited.")
        self.check(request.seconds == SECONDS, f"run duration {request.seconds}, not {SECONDS}")
        self.check(sorted(request.nodes) == self.nodeset.nodes, f"the request is for {request.nodes}")
        waiting = self.wait(lambda: [found for found in self.emulator.requests_of(self.job)
                                     if found.state == "ACCEPTED" and found.estimate], 20,
                            "the request to be queued")[0]
        show.say(f"There is no room for {NODES} VMs now: the request is queued (ACCEPTED). Google's "
                 f"estimate: {waiting.estimate}. No VM runs, nothing is paid, the job keeps its place.")
        queued = self.times["queued"] = time.monotonic()
        self.tell_comment("waiting for", "flex-sweeper tells the job's author, in squeue and scontrol:")

        def is_time():
            self.check(not self.emulator.vms(), "a VM runs before all of them can be had")
            return time.monotonic() - queued >= QUEUE_SECONDS

        self.wait(is_time, QUEUE_SECONDS + 10, "the queue")
        self.check(self.cluster.job_state(self.job) == "CONFIGURING", "the job did not stay CONFIGURING")

    def tell_comment(self, words, introduction):
        """The job's AdminComment, once it has these words."""
        comment = self.wait(lambda: words in (text := self.cluster.job(self.job).get("AdminComment", "")) and text,
                            20, f"the job's comment ({words})")
        self.show.say(introduction)
        self.show.say(f"    AdminComment={comment}")

    def grant(self):
        show = self.show
        show.title("Capacity")
        show.say(f"The demo gives zone {ZONE} room for {NODES} VMs.")
        self.emulator.config(capacity={ZONE: NODES})
        self.wait(lambda: self.emulator.requests_of(self.job)[0].state == "SUCCEEDED", 20, "the VMs")
        self.times["granted"] = time.monotonic()
        vms = sorted(self.emulator.vms())
        self.check(vms == self.nodeset.nodes, f"the VMs are {vms}")
        show.say(f"The request has SUCCEEDED: {NODES} VMs at once, {vms[0]} to {vms[-1]}. Each boots and "
                 "starts slurmd (here: a slurmd process per VM).")
        self.wait(lambda: self.nodes_up() == NODES, 60, "the nodes to register with slurmctld")
        show.say(f"All {NODES} nodes have registered. slurmctld looks every 30 s for jobs whose nodes "
                 "have all booted; the job's clock starts then, not before.")

    def run_job(self):
        show, cluster = self.show, self.cluster
        show.title("The job runs")
        self.wait(lambda: cluster.job_state(self.job) in ("RUNNING", "COMPLETED"), 60, "the job to start")
        self.times["running"] = time.monotonic()
        self.wait(lambda: cluster.job_state(self.job) in ("COMPLETED", "FAILED"), 60, "the job to end")
        self.times["ended"] = time.monotonic()
        lines = list(filter(None, cluster.output(self.job).split("\n")))
        hello = sorted(line for line in lines if line.startswith("hello"))
        for line in hello:
            show.say(f"    {line}")
        self.check(cluster.job_state(self.job) == "COMPLETED", f"the job is {cluster.job_state(self.job)}")
        wanted = [f"hello from {node}" for node in self.nodeset.nodes]
        self.check(hello == wanted, f"the job's output is {lines}")
        left = [line for line in lines if line not in hello]
        self.check(len(left) == 1 and re.fullmatch(r"0:3\d:\d\d", left[0]), f"the job's output is {lines}")
        show.say("The plugin has told the job when its VMs end: flex-timeleft --human says what a script could "
                 f"still do before that, {left[0]}.")
        show.say(f"Job {self.job} is COMPLETED.")

    def suspend(self):
        show, cluster = self.show, self.cluster
        show.title("The nodes are idle")
        self.wait(lambda: self.log_has("flex-suspend.log", "deleted"), 40, "flex-suspend")
        early = self.log_has("flex-sweeper.log", r"rule=lease_end what=POWER_DOWN ")
        why = ("The partition is exclusive: flex-sweeper does not wait for SuspendTime." if early
               else "SuspendTime (here 4 s) is over.")
        show.say(f"{why} slurmctld calls flex-suspend {self.nodeset.hostlist}, which deletes the {NODES} VMs from "
                 "their group, whatever is left of their lease, and exits.")
        self.wait(lambda: not self.emulator.vms(), 30, "the VMs to be deleted")
        show.say("Google has deleted them. They would have ended by themselves after their run duration; "
                 "nobody pays for the rest.")
        self.wait(lambda: cluster.is_off(*self.nodeset.nodes), 40, "the nodes to be powered down")
        sizes = {group["target_size"] for group in self.emulator.groups().values()}
        self.check(sizes <= {0}, f"group sizes {sizes}")
        show.say("Slurm has the nodes as powered down again, ready for the next job.")

    def sweep(self):
        show, emulator = self.show, self.emulator
        show.title("Sweeping up")
        show.say("The empty group would serve the next job. None comes, so flex-sweeper deletes it with its finished "
                 f"request after empty_mig_grace (here {SWEEPER['empty_mig_grace']}):")
        for request in emulator.requests():
            self.check(request.state == "SUCCEEDED", f"request {request.name} is {request.state}")
        self.wait(lambda: not emulator.groups(), 40, "the group to be deleted")
        self.wait(lambda: not emulator.requests(), 20, "the request to be deleted")
        line = self.log_has("flex-sweeper.log", r"event=action (rule=empty_mig .*)")
        self.check(line, "the sweeper's log does not explain the deletion")
        show.say(f"    {line[1]}")
        self.journal = emulator.journal()

    def summary(self):
        show, times = self.show, self.times
        state = self.emulator.state()
        left = {"VMs": len(state["vms"]), "requests": len(state["requests"]),
                "groups": len(state["groups"])}
        bad = [entry for entry in self.journal
               if not entry["method"] or (entry["status"] >= 400 and entry["status"] != 404)]
        self.check(not bad, f"Google refused a call: {bad}")
        calls = {}
        for entry in self.journal:
            name = short(entry["method"])
            calls[name] = calls.get(name, 0) + 1
        directory = str(self.cluster.dir)
        self.cluster.close()
        left["processes"] = len(procs.find(directory))
        left["files"] = int(Path(directory).exists())
        show.title("Summary")
        show.say(f"waited      {times['granted'] - times['submitted']:.0f} s for Google, "
                 f"{times['running'] - times['granted']:.0f} s for boot and slurmctld's tick")
        show.say(f"ran         {times['ended'] - times['running']:.0f} s on {NODES} nodes")
        writes = {name: count for name, count in calls.items() if name.rpartition(".")[2] not in READS}
        show.say(f"asked       {sum(writes.values())} changes of Google: "
                 + ", ".join(f"{count} {name}" for name, count in sorted(writes.items()))
                 + f"; and looked {sum(calls.values()) - sum(writes.values())} times")
        show.say("left behind " + ", ".join(f"{count} {name}" for name, count in left.items()))
        self.check(not any(left.values()), "something was left behind")
        show.good(f"All as it should be, in {show.elapsed():.0f} s.")


def fail(demo, show, build, error):
    target = build / "demo-logs"
    saved = f"its logs could not be saved in {target}"
    if not demo.cluster.sandbox.closed:
        with contextlib.suppress(Exception):
            demo.cluster.save_logs(target)
            saved = f"its logs are in {target}"
    show.bad(f"The demo failed: {error}")
    show.bad(saved)


def play(build, show):
    demo = Demo(build, show)
    code = 1
    try:
        demo.run()
        demo.summary()
        code = 0
    except KeyboardInterrupt:
        show.bad("Interrupted; cleaning up.")
        code = 130
    except Exception as error:  # told, then cleaned up: the exit code says it
        fail(demo, show, build, error)
    finally:
        try:
            demo.cluster.close()
        except LeftBehind as left:
            show.bad(str(left))
            code = code or 1
        show.close()
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="meson's build directory")
    build = parser.parse_args().build.resolve()
    missing = [name for name in PROGRAMS if not (build / name).exists()]
    if missing:
        sys.exit(f"demo: not built: {', '.join(missing)} in {build} (try: make build)")
    with contextlib.ExitStack() as stack:
        log = None
        with contextlib.suppress(OSError):
            log = stack.enter_context(open(build / "demo.log", "w", encoding="utf-8"))
        return play(build, Display(log))


if __name__ == "__main__":
    sys.exit(main())
