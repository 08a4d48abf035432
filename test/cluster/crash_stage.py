# SPDX-License-Identifier: GPL-2.0-or-later
"""The workers of the crash matrix, and what a case does on one of them."""
import json
import shutil
import signal
import subprocess
import time

from harness import conf
from harness.conf import Nodeset
from harness.emulator import Emulator

# What a round costs grows with slurmctld's nodes: only some workers have the large nodesets.
SMALL = (("up", 1), ("up", 4), ("pair", 4), ("off", 1), ("off", 4))
LARGE = (("up", 64), ("off", 64))
MARGIN = 15
PAUSE = 1.1         # graces are set to 1 s


def resume_file(jobs, hostlist):
    """In the shape of Slurm 22.05."""
    return {"jobs": [{"job_id": job, "nodes": ",".join(nodes)} for job, nodes in jobs.items()],
            "all_nodes": hostlist}


def code_of(child, timeout=100):
    """Its exit code; one that does not end is killed."""
    try:
        return child.wait(timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


class Worker:
    """An emulator and nodesets: "up" comes up for one job, "pair" for two, "off" is powered down."""

    def __init__(self, number, nodesets, build):
        settings = {"partition": {"ResumeTimeout": "36000", "SuspendTime": "36000"}, "boots": False}
        self.number = number
        # Its VMs end in a half hour of their own: the sweepers of all workers keep reservations in one slurmctld.
        self.minutes = 30 * (number + 1)
        self.seconds = (self.minutes + MARGIN) * 60
        self.nodesets = {(side, size): Nodeset(f"w{number}{side}{size}", size, **settings)
                         for side, size in nodesets}
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", f"emulator-{number}", hook=[],
                                 operation_ms=20, boot_delay_ms=20,
                                 templates=[{"name": "flex-template", "max_run_duration": self.seconds}])
        self.jobs = {}
        self.stages = {}

    def start(self, cluster):
        self.cluster = cluster
        self.emulator.start(cluster.sandbox)
        self.key = cluster.sandbox.write(f"etc/key-{self.number}.json",
                                         json.dumps(self.emulator.key_file()), 0o600)
        for (side, size), nodeset in self.nodesets.items():
            parts = {"up": 1, "pair": 2, "off": 0}[side]
            self.jobs[side, size] = [cluster.sbatch("-p", nodeset.name, f"-N{size // parts}", f"--time={self.minutes}")
                                     for _ in range(parts)]

    def stage(self, scene):
        if scene.name not in self.stages:
            self.stages[scene.name] = Stage(self, scene)
        return self.stages[scene.name]


class Stage:
    """A worker with a scene on it: what the scene's steps and checks work with."""

    def __init__(self, worker, scene):
        self.worker, self.scene = worker, scene
        self.emulator, self.cluster = worker.emulator, worker.cluster
        self.nodeset = worker.nodesets[scene.side, scene.size]
        self.nodes = self.nodeset.nodes
        self.jobs = {job: self.cluster.job_nodes(job) for job in worker.jobs[scene.side, scene.size]}
        self.seconds = worker.seconds
        name = f"{worker.number}-{scene.name}"
        self.state_dir = self.cluster.dir / "run" / f"sweeper-{name}"
        self.log = self.cluster.dir / "log" / f"crash-{name}.log"
        self.config = self._write_config(name)
        self.hasty = self._write_config(f"{name}-hasty", {"run_timeout": "3s"})
        self.resume_file = self.cluster.sandbox.write(
            f"run/resume-{name}.json", json.dumps(resume_file(self.jobs, self.nodeset.hostlist)))
        self.slurm = self.slurm_state()

    def _write_config(self, name, api=None):
        scene = self.scene
        # Only this scene's nodes: to the sweeper, the other nodes of the worker are not ours.
        nodeset = Nodeset(self.nodeset.name, self.nodeset.count, scene.nodeset)
        sweeper = {"orphan_grace": "1s", "state_dir": str(self.state_dir), **scene.sweeper}
        settings = conf.flex_start(endpoint=self.emulator.url, credentials=self.worker.key, nodesets=[nodeset],
                                   zones=["us-central1-a"], extra={"sweeper": sweeper})
        settings["api"].update(api or {})
        return self.cluster.sandbox.write(f"etc/flex-{name}.yaml", conf.to_yaml(settings), 0o600)

    # The course of a case

    def begin(self):
        emulator = self.emulator
        emulator.clear_faults()
        emulator.reset()
        emulator.set_capacity(a=-1)
        shutil.rmtree(self.state_dir, ignore_errors=True)
        self.state_dir.mkdir(mode=0o755)
        self.cluster.sandbox.own(self.state_dir)
        self.log.unlink(missing_ok=True)
        self.scene.prepare(self)
        emulator.wait(operations=0)
        emulator.clear_faults()
        emulator.clear_journal()

    def start_program(self, config=None):
        """The scene's program, as slurmctld runs it."""
        scene, cluster = self.scene, self.cluster
        env = {"SLURM_CONF": str(cluster.conf)}
        if scene.program == "flex-resume":
            env["SLURM_RESUME_FILE"] = str(self.resume_file)
        last = ["--once"] if scene.is_sweeper else [self.nodeset.hostlist]
        return self._spawn(scene.program, config or self.config, last, env)

    def _spawn(self, program, config, arguments, env):
        return self.cluster.sandbox.spawn(
            [self.cluster.dir / "bin" / program, "--config", config, "--log-level", "debug",
             "--log-file", self.log, *arguments], f"crash-{self.worker.number}.out", env=env)

    def sweep(self):
        """One round; its exit code."""
        return code_of(self._spawn("flex-sweeper", self.config, ["--once"], {"SLURM_CONF": str(self.cluster.conf)}))

    def pause(self):
        if self.scene.has_graces:
            time.sleep(PAUSE)

    def kill_at_the_held_call(self, child):
        deadline = time.monotonic() + 60
        while not self.emulator.reaches(timeout=1, held=1):
            if child.poll() is not None or time.monotonic() > deadline:
                break
        child.kill()
        code = child.wait()
        self.emulator.wait(held=0)
        return [] if code == -signal.SIGKILL else [f"the program ended with {code} before it was killed"]

    # What is seen

    def slurm_state(self):
        """What no case may change: the nodes' states and reasons, the job's state."""
        nodes = self.cluster.slurm("sinfo", "-h", "-p", self.nodeset.name, "-o", "%T %E %D").stdout
        if not self.jobs:
            return nodes
        return nodes + self.cluster.slurm("squeue", "-h", "-p", self.nodeset.name, "-o", "%i %T %S %N").stdout

    def check(self):
        """All that is wrong now."""
        if not self.emulator.reaches(operations=0):
            return ["operations do not end"]
        complaints = list(self.scene.check(self))
        if (seen := self.slurm_state()) != self.slurm:
            complaints.append(f"slurmctld's state changed from {self.slurm!r} to {seen!r}")
        for entry in self.emulator.journal():
            is_answer = entry["status"] < 400 or entry["status"] in (404, 409, 412) or entry["fault"]
            if not entry["method"] or not is_answer:
                complaints.append(f"a call was refused: {entry}")
        return complaints

    def story(self):
        lines = [f"    {entry['started'] % 1000:.3f} {entry['method']} {entry['status']} {entry['fault']} "
                 f"{json.dumps(entry['body'])[:160]}" for entry in self.emulator.journal()]
        log = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        state = self.emulator.state()
        lines += ["    " + line[:400] for line in log.splitlines()]
        lines += [f"    {kind}: {json.dumps(state[kind])[:600]}" for kind in ("groups", "requests", "vms")]
        return "\n".join(lines)
