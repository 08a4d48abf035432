# SPDX-License-Identifier: GPL-2.0-or-later
"""A private munged and slurmctld, the programs under test, and the commands of a user."""
import calendar
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import conf, invariants
from .accounting import Accounting
from .known_violations import known
from .recorder import Recorder
from .sandbox import PATH, Sandbox

HERE = Path(__file__).resolve().parent
ZONES = ("us-central1-a",)
PLUGIN = "spank_flex_start.so"
# Short enough for a test; merged with what the test itself sets.
SWEEPER = {"interval": "1s", "orphan_grace": "2s", "empty_mig_grace": "3s", "finished_request_grace": "20s",
           "note_interval": "1s", "listen": "127.0.0.1:0"}
# Values of these keys run to the end of their line in scontrol's output.
TO_LINE_END = {"AdminComment", "Comment", "SystemComment", "Command", "WorkDir", "StdErr", "StdIn",
               "StdOut", "OS", "Extra", "SubmitLine"}


class Timeout(AssertionError):
    """Something did not happen in time."""


class InvariantBroken(AssertionError):
    """Something was so that must never be so."""


def find_program(name):
    path = shutil.which(name, path=PATH)
    if path is None:
        raise FileNotFoundError(f"{name} is not installed (try: make setup)")
    return path


def slurm_version():
    text = subprocess.run([find_program("slurmctld"), "-V"], capture_output=True, text=True,
                          check=True).stdout
    return tuple(int(number) for number in re.search(r"(\d+)\.(\d+)", text).groups())


def parse_record(text):
    """scontrol's `Key=Value` text to a dict."""
    record = {}
    for line in text.splitlines():
        line = line.strip()
        key = line.partition("=")[0]
        if key in TO_LINE_END:
            record[key] = line.partition("=")[2]
            continue
        for word in re.finditer(r"(\S+?)=(.*?)(?=\s+[A-Za-z:/]+=|$)", line):
            record.setdefault(word[1], word[2])
    return record


class Cluster:
    """Start it with `with`; everything is gone after the block."""

    def __init__(self, nodesets, *, build, emulator=None, programs=None, zones=ZONES, slurm_extra=(),
                 flex_extra=None, cpus=2, cred_expire=12, log_level="debug", name="flextest",
                 sweeper=False, sweeper_options=(), plugin=None, invariants=True,
                 quick_tick=True, accounting=False):
        """`plugin`: our line of plugstack.conf without the path, such as ["required", "max_run=4d"].
        `invariants`: whether `invariants.py` is asked at the end; False is for measurements.
        `quick_tick`: slurmctld starts configured batch jobs every second, not every 30 s; FLEX_QUICK_TICK=0 is for all.
        `accounting`: a slurmdbd with a database of its own; associations, limits and QOS are enforced."""
        self.name = name
        self.nodesets = {nodeset.name: nodeset for nodeset in nodesets}
        self.build = Path(build)
        self.version = slurm_version()
        self.sandbox = Sandbox()
        self.dir = self.sandbox.dir
        self.conf = self.dir / "etc" / "slurm.conf"
        self.emulator = emulator
        self.ctld = self.munged = self.sweeper = None
        self.accounting = Accounting(self) if accounting else None
        self._plugin, self._no_boot, self._vm_env = plugin, [], {}
        self._programs, self._log_level = programs, log_level
        self._zones, self.slurm_extra, self._flex_extra = zones, slurm_extra, flex_extra
        # Other programs' calls are no business of ours.
        self.recorder = Recorder(self) if invariants and emulator is not None and programs is None else None
        self.expected = known()
        self._quick_tick = quick_tick and os.environ.get("FLEX_QUICK_TICK") != "0"
        self._cpus, self._cred_expire = cpus, cred_expire
        self._with_sweeper, self._sweeper_options = sweeper, list(sweeper_options)
        # slurmctld is the host's name to slurm.conf: the short one, as gethostname gives it.
        self.host = os.uname().nodename.partition(".")[0]

    # Life

    def start(self):
        try:
            self._install_hook()
            if self.emulator is not None:
                self.emulator.start(self.sandbox)
                self.emulator.watcher = self.recorder or self.emulator.watcher
            self._write_conf()
            self._start_munged()
            if self.accounting is not None:
                self.accounting.start()
            if self.recorder is not None:
                self.recorder.start(self._ctld_port)
            self.start_slurmctld()
            if self._with_sweeper:
                self.start_sweeper()
        except BaseException:
            self.sandbox.close()
            raise
        return self

    def close(self):
        self.sandbox.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.check_invariants()
        finally:
            self.close()

    # What must always be true

    def expect_violation(self, invariant, *, why, nodes=(), jobs=()):
        """The test breaks an invariant on purpose, for these nodes or jobs and for this reason."""
        assert invariant in invariants.NAMES and why and (nodes or jobs), "an expectation is narrow and has a reason"
        self.expected.append(invariants.Expected(invariant, why, frozenset(nodes), frozenset(jobs)))

    def violations(self):
        """(texts of what nobody declared, texts of what was declared and is not so)."""
        if self.recorder is None:
            return [], []
        data = self.recorder.data()
        (self.dir / "log" / "record.json").write_text(json.dumps(data), encoding="utf-8")
        if keep := os.environ.get("FLEX_RECORDS"):
            shutil.copyfile(self.dir / "log" / "record.json", Path(keep) / f"{self.name}-{os.getpid()}.json")
        record = self.recorder.record_of(data)
        left, untrue = invariants.judge(invariants.check(record), self.expected)
        told = ["\n".join([violation.text(record.began), *invariants.story(record, violation)]) for violation in left]
        return told, [f"{one.invariant} was declared for {','.join(sorted(one.nodes)) or sorted(one.jobs)} "
                      f"({one.why}) and is not broken" for one in untrue]

    def check_invariants(self):
        """Once, at the end."""
        if self.recorder is None or self.emulator is None or self.ctld is None:
            return
        told, untrue = self.violations()
        self.recorder = None
        if told or untrue:
            target = self.build / "test-logs" / f"invariants-{self.name}-{os.getpid()}"
            self.save_logs(target)
            raise InvariantBroken("\n".join([f"cluster {self.name}, logs in {target}", *told, *untrue]))

    def _install_hook(self):
        sandbox = self.sandbox
        sandbox.install(HERE / "procs.py")
        hook = (HERE / "vm_hook").read_text(encoding="utf-8").partition("\n")[2]
        # The distribution's interpreter: ours may be in a home that the cluster's user cannot enter.
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        self.hook = sandbox.write("bin/vm_hook", f"#!{python} -IS\n{hook}", 0o755)
        self._write_hook_settings()

    def _write_hook_settings(self):
        self.sandbox.write("etc/vm_hook.json", json.dumps({
            "dir": str(self.dir), "slurmd": find_program("slurmd"), "conf": str(self.conf),
            "env": {"PATH": PATH, "SLURM_CONF": str(self.conf)}, "no_boot": self._no_boot,
            "env_of": self._vm_env}))

    def set_no_boot(self, names):
        """VMs of these names come up in the cloud, but no slurmd starts on them."""
        self._no_boot = list(names)
        self._write_hook_settings()

    def set_vm_env(self, name, **env):
        """What slurmd's environment also has when the VM boots."""
        self._vm_env[name] = env
        self._write_hook_settings()

    def boot(self, name):
        """slurmd on a node that no cloud starts."""
        self.sandbox.run([self.hook, "up", name, "none", ""], env=self.env())

    def _wrapper(self, name, source):
        """slurmctld gives no arguments and no PATH: the log's place needs a wrapper."""
        real = self._real(name, source)
        log = self.dir / "log" / f"{name}.log"
        return self.sandbox.write(
            f"bin/{name}",
            f'#!/bin/sh\nexec {real} --log-level {self._log_level} --log-file {log} "$@"\n', 0o755)

    def _real(self, name, source):
        directory = self.dir / "bin" / "real"
        directory.mkdir(mode=0o755, exist_ok=True)
        self.sandbox.own(directory)
        return self.sandbox.install(source, f"real/{name}")

    def program(self, name):
        """The program itself, without the wrapper."""
        return self.dir / "bin" / "real" / name

    def _install_programs(self):
        if self._programs is not None:
            return {key: self.sandbox.install(*source) for key, source in self._programs.items()}
        suspend = self.build / "suspend" / "flex-suspend"
        sweeper = self.build / "sweeper" / "flex-sweeper"
        if sweeper.exists():
            self._real("flex-sweeper", sweeper)
        return {"ResumeProgram": self._wrapper("flex-resume", self.build / "resume" / "flex-resume"),
                "SuspendProgram": self._wrapper("flex-suspend", suspend),
                "ResumeFailProgram": self._wrapper("flex-resume-fail", suspend)}

    def _write_conf(self):
        sandbox = self.sandbox
        nodesets = list(self.nodesets.values())
        self._ctld_port = sandbox.port()
        text = conf.slurm_conf(
            directory=self.dir, cluster=self.name, host=self.host, user=sandbox.account.pw_name,
            version=self.version, ctld_port=self._ctld_port, slurmd_port=sandbox.port(), nodesets=nodesets,
            ports={node: sandbox.port() for nodeset in nodesets if nodeset.boots
                   for node in nodeset.nodes},
            programs=self._install_programs(), cpus=self._cpus,
            cred_expire=self._cred_expire,
            extra=[*self.slurm_extra, *(self.accounting.slurm_conf() if self.accounting is not None else ())])
        sandbox.write("etc/slurm.conf", text)
        sandbox.write("etc/cgroup.conf", conf.cgroup_conf(self.version))
        if self._plugin is not None:
            sandbox.install(self.build / "plugin" / PLUGIN)
            self.write_plugstack(*self._plugin)
        if self.emulator is not None:
            key = sandbox.write("etc/key.json", json.dumps(self.emulator.key_file()), 0o600)
            extra = dict(self._flex_extra or {})
            if self.program("flex-sweeper").exists():
                extra["sweeper"] = {**SWEEPER, **extra.get("sweeper", {})}
            self.write_flex_config(conf.flex_start(
                endpoint=self.emulator.url, credentials=key, nodesets=nodesets, zones=self._zones,
                extra=extra))

    def write_plugstack(self, kind, *arguments):
        """For programs that start from now on; a slurmstepd is told by its slurmd."""
        text = conf.plugstack_conf(self.dir / "bin" / PLUGIN, kind, arguments)
        self.sandbox.write("etc/plugstack.conf", text)

    def write_flex_config(self, settings):
        """flex-start.yaml, in one step: a program that starts now reads the old or the new one."""
        self.flex_config = settings
        if self.recorder is not None:
            self.recorder.config(settings)
        new = self.sandbox.write("etc/flex-start.yaml.new", conf.to_yaml(settings), 0o600)
        new.rename(self.dir / "etc" / "flex-start.yaml")

    def _start_munged(self):
        d = self.dir
        self.sandbox.write("etc/munge.key", secrets.token_bytes(128), 0o600)
        self.munged = self.sandbox.spawn(
            [find_program("munged"), "--foreground", f"--socket={d}/munge/munge.sock",
             f"--key-file={d}/etc/munge.key", f"--pid-file={d}/run/munged.pid",
             f"--log-file={d}/log/munged.log", f"--seed-file={d}/munge/seed", "--num-threads=4"],
            "munged.out")
        self.wait_for(lambda: (d / "munge" / "munge.sock").exists() or self.munged.poll(), 20,
                      "munged's socket")
        if self.munged.poll() is not None:
            raise RuntimeError(f"munged ended with {self.munged.returncode}\n{self.log_tails()}")

    def start_slurmctld(self):
        tick = {}
        if self._quick_tick:
            module = self.sandbox.install(self.build / "test" / "cluster" / "quick_tick.so")
            tick = {"LD_PRELOAD": str(module), "FLEX_TICK_FILE": str(self.dir / "run" / "tick")}
        self.ctld = self.sandbox.spawn([find_program("slurmctld"), "-D", "-i", "-f", self.conf],
                                       "slurmctld.out", env=self.env(**tick))
        self.wait_for(self._answers, 30, "slurmctld to answer")
        if self._quick_tick:
            self._tick_file.touch()
        self._tell(True, "slurmctld")

    @property
    def _tick_file(self):
        """While it is there, the running slurmctld ticks every second (test/support/quick_tick.cc)."""
        return self.dir / "run" / f"tick.{self.ctld.pid}"

    def _answers(self):
        if self.ctld.poll() is not None:
            raise RuntimeError(f"slurmctld ended with {self.ctld.returncode}\n{self.log_tails()}")
        return self.slurm("scontrol", "ping", check=False, timeout=30).stdout.count(" UP") > 0

    def stop_slurmctld(self):
        self._tell(False, "slurmctld")
        self._tick_file.unlink(missing_ok=True)
        self.sandbox.stop(self.ctld)

    def _tell(self, is_up, what):
        if self.recorder is not None:
            (self.recorder.is_up if is_up else self.recorder.is_down)(what)

    def restart_slurmctld(self):
        self.stop_slurmctld()
        self.start_slurmctld()

    # The sweeper

    def _sweeper_command(self, *options):
        return [self.program("flex-sweeper"), "--log-level", self._log_level, "--log-file",
                self.dir / "log" / "flex-sweeper.log", *options]

    def start_sweeper(self):
        self.sweeper = self.sandbox.spawn(self._sweeper_command(*self._sweeper_options),
                                          "flex-sweeper.out", env=self.env())
        self._tell(True, "sweeper")

    def stop_sweeper(self):
        """SIGTERM, and SIGKILL if that does not end it; its exit code."""
        self._tell(False, "sweeper")
        self.sandbox.stop(self.sweeper)
        return None if self.sweeper is None else self.sweeper.returncode

    def kill_sweeper(self):
        self._tell(False, "sweeper")
        if self.sweeper is not None:
            self.sweeper.kill()
            self.sweeper.wait()

    def restart_sweeper(self):
        self.stop_sweeper()
        self.start_sweeper()

    def reload_sweeper(self):
        """Reads flex-start.yaml again."""
        self.sweeper.send_signal(signal.SIGHUP)

    def sweep(self, *options, timeout=60):
        """One round by hand, while no sweeper runs; the finished process."""
        began = time.time()
        done = self.sandbox.run(self._sweeper_command("--once", *options), env=self.env(), check=False, timeout=timeout)
        if self.recorder is not None:
            self.recorder.round(began, done.returncode == 0 and "--dry-run" not in options)
        return done

    @property
    def sweeper_dir(self):
        """Where the sweeper keeps what it knows."""
        state_dir = self.flex_config.get("sweeper", {}).get("state_dir")
        return Path(state_dir) if state_dir else self.dir / "state" / "flex-start"

    def sweeper_status(self):
        """status.json; {} while there is none."""
        path = self.sweeper_dir / "status.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    # Commands

    def env(self, **more):
        return self.sandbox.env(SLURM_CONF=str(self.conf), **more)

    def slurm(self, command, *arguments, check=True, timeout=60):
        if command == "scontrol" and self.recorder is not None:
            self.recorder.command(arguments)
        return self.sandbox.run([find_program(command), *arguments], env=self.env(), check=check,
                                timeout=timeout)

    def scontrol(self, *arguments, check=True):
        return self.slurm("scontrol", *arguments, check=check).stdout

    def sbatch(self, *options, script="exit 0"):
        """Job id of a batch job that runs `script`."""
        text = self.slurm("sbatch", "--parsable", "--output=%j.out", *options, "--wrap", script).stdout
        return int(text.strip().partition(";")[0])

    def scancel(self, *jobs):
        self.slurm("scancel", *[str(job) for job in jobs])

    def job(self, job):
        """What slurmctld says of a job (of a het job or array: its first part); {} if unknown."""
        text = self.slurm("scontrol", "show", "job", str(job), check=False).stdout
        return parse_record(text.split("\n\n")[0])

    def jobs(self, job):
        """All parts of an array or het job."""
        text = self.slurm("scontrol", "show", "job", str(job), check=False).stdout
        return [parse_record(part) for part in text.split("\n\n") if "JobId=" in part]

    def job_state(self, job):
        return self.job(job).get("JobState", "")

    def job_nodes(self, job):
        listed = self.job(job).get("NodeList", "")
        return [] if listed in ("", "(null)") else self.expand(listed)

    def expand(self, hostlist):
        return self.scontrol("show", "hostnames", hostlist).split()

    def node(self, name):
        return parse_record(self.scontrol("show", "node", name))

    def node_state(self, name):
        """The words of the node's state, such as {'IDLE', 'CLOUD', 'POWERED_DOWN'}."""
        return set(self.node(name)["State"].rstrip("*").split("+"))

    def is_off(self, *nodes):
        """Given back: idle and powered down, ready for the next job."""
        return all({"IDLE", "POWERED_DOWN"} <= self.node_state(node) for node in nodes)

    def give_back(self, *nodes):
        self.scontrol("update", f"nodename={','.join(nodes)}", "state=power_down_force", "reason=test")

    def output(self, job):
        path = self.dir / "out" / f"{job}.out"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def admin_comments(self, job):
        """(seconds, text) of each AdminComment that slurmctld was given for the job, by its log."""
        line = re.compile(r"\[(\S+?)\.(\d+)\] _?update_job: setting admin_comment to (.*) for JobId=(\d+)\b")
        found = []
        for stamp, fraction, text, number in line.findall(self.log("slurmctld.log")):
            if int(number) == job:
                at = calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction}")
                found.append((at, text))
        return found

    # Waiting and telling

    def wait_for(self, condition, timeout, what, interval=0.15):
        """The first true value of `condition()`; Timeout, saying how things stand, if none comes."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise Timeout(f"waited {timeout} s for {what}\n{self.situation()}")
            time.sleep(interval)

    def wait_job(self, job, states, timeout=90):
        wanted = {states} if isinstance(states, str) else set(states)
        return self.wait_for(lambda: self.job_state(job) in wanted, timeout,
                             f"job {job} to be {' or '.join(sorted(wanted))}")

    def wait_off(self, *nodes, timeout=60):
        return self.wait_for(lambda: self.is_off(*nodes), timeout, f"{','.join(nodes)} to be powered down")

    def situation(self):
        if self.ctld is None:
            return self.log_tails()
        parts = []
        for command in (("squeue", "-a", "-o", "%i %P %T %r %N"), ("sinfo", "-N", "-o", "%N %T %E")):
            done = self.slurm(*command, check=False, timeout=20)
            parts.append(f"$ {command[0]}\n{done.stdout}{done.stderr}")
        if self.emulator is not None:
            parts.append(f"emulator: {self.emulator.counters()}\n")
        return "\n".join(parts) + self.log_tails()

    def log_tails(self, lines=15):
        text = ""
        for path in sorted((self.dir / "log").glob("*")):
            if path.stat().st_size and not path.name.startswith(("slurmd-", "vm-", "slurm-recorder", "record.")):
                tail = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
                text += f"--- {path.name}\n" + "\n".join(tail) + "\n"
        return text

    def log(self, name):
        path = self.dir / "log" / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def save_logs(self, target):
        """Copies what explains a failure; never a key."""
        target = Path(target)
        target.mkdir(parents=True, exist_ok=True)
        for path in [*(self.dir / "log").glob("*"), *(self.dir / "out").glob("*.out")]:
            shutil.copyfile(path, target / path.name)
        for name in ("slurm.conf", "plugstack.conf", "flex-start.yaml"):
            if (self.dir / "etc" / name).exists():
                shutil.copyfile(self.dir / "etc" / name, target / name)
        (target / "situation.txt").write_text(self.situation(), encoding="utf-8")
        for name in ("status.json", "memory.json"):
            if self.emulator is not None and (self.sweeper_dir / name).exists():
                shutil.copyfile(self.sweeper_dir / name, target / f"sweeper-{name}")
        if self.emulator is not None:
            self.emulator.save(target)
