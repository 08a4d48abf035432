# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the planned events happen, then lets things settle."""
import collections
import signal
import time
from dataclasses import dataclass, field

from . import plan, site
from harness.slurm import find_program, parse_record

FINAL = {"COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT", "BOOT_FAIL", "OUT_OF_MEMORY",
         "DEADLINE", "PREEMPTED"}
MOST_WAITING = 24   # jobs; more would only queue


@dataclass
class Submitted:
    name: str
    job: plan.Job
    is_cancelled: bool = False
    client: object = None        # the srun process
    records: list = field(default_factory=list)


class Run:
    """One soak on a cluster that is up."""

    def __init__(self, cluster, seed, seconds, most_waiting=MOST_WAITING):
        self.cluster, self.emulator = cluster, cluster.emulator
        self.seed, self.seconds = seed, seconds
        self.most_waiting = most_waiting
        self.jobs = {}
        self.done = collections.Counter()      # events by kind
        self.faults_hit = collections.Counter()
        self.lost = collections.defaultdict(list)   # node to the times at which its VM went by itself
        self.exit_codes = []                   # of sweepers that were asked to end
        self.first_call = 0                    # of the journal: those before it are the set-up's
        self._vms = {}
        self._later = []                       # (when, what undoes an event)
        self._flexctl = cluster.sandbox.install(cluster.build / "ctl" / "flexctl")
        self._preload = cluster.sandbox.install(cluster.build / "test" / "cluster" / "little_memory.so")
        self._started = self._sweeper_started = time.monotonic()
        self._log = open(cluster.dir / "log" / "soak.log", "a", encoding="utf-8", buffering=1)

    # What happens

    def note(self, text):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._log.write(f"{stamp} +{time.monotonic() - self._started:.1f} {text}\n")

    def go(self):
        self._started = time.monotonic()
        site.add_faults(self.emulator, self.seed)
        for event in plan.make(self.seed, self.seconds, 0.6 if self.seconds < 120 else 0.85):
            self._wait_until(event.at)
            # A machine that is too slow for all of them still sees each kind once.
            is_late = time.monotonic() - self._started > self.seconds
            if is_late and (event.kind not in plan.ALWAYS or self.done[event.kind]):
                continue
            what = getattr(self, f"_{event.kind}")(event)
            if what:
                self.done[event.kind] += 1
                self.note(f"{event.kind}: {what}")
        self._wait_until(self.seconds)

    def _wait_until(self, at):
        while True:
            self._watch()
            self._undo_what_is_due()
            left = self._started + at - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.5))

    def _watch(self):
        """Sees leases end: a VM that is gone at its end was not deleted by a program."""
        state = self.emulator.state()
        now = {vm["name"]: vm.get("ends", 0) for vm in state["vms"] if not site.is_foreign(vm["name"])}
        for name, ends in self._vms.items():
            if name not in now and ends and ends <= state["time"] + 1:
                self.lost[name].append(time.time())
                self.done["lease ended"] += 1
                self.note(f"lease ended: {name}")
        self._vms = now

    def _submit(self, event):
        self._look_at_jobs()
        if len(self._open_jobs()) >= self.most_waiting:
            return ""
        return self._submit_job(plan.job_of(event, site.SIZES))

    def _submit_job(self, job):
        one = Submitted(f"soak-{len(self.jobs) + 1}", job)
        options = [f"--job-name={one.name}", f"--partition={job.nodeset}", f"--nodes={job.nodes}",
                   f"--ntasks={job.nodes}", f"--time={job.minutes}"]
        self.jobs[one.name] = one
        if job.how == "srun":
            one.client = self.cluster.sandbox.spawn(
                [find_program("srun"), *options, "sleep", job.seconds], f"{one.name}.out",
                env=self.cluster.env())
        else:
            options.append("--requeue" if job.may_requeue else "--no-requeue")
            options += [f"--array=0-{job.tasks - 1}"] if job.how == "array" else []
            step = f"srun sleep {job.seconds}" if job.has_step else f"sleep {job.seconds}"
            self.cluster.sbatch(*options, script=f"{step}; exit 0")
        return f"{one.name} {job}"

    def _open_jobs(self):
        return [one for one in self.jobs.values()
                if not one.records or any(record["JobState"] not in FINAL for record in one.records)]

    def _cancel(self, event):
        self._look_at_jobs()
        waiting = [one for one in self._open_jobs() if one.records and not one.is_cancelled]
        if not waiting:
            return ""
        one = event.pick(0, waiting)
        one.is_cancelled = True
        self.cluster.slurm("scancel", f"--name={one.name}")
        return f"{one.name} {[record['JobState'] for record in one.records]}"

    def _resubmit(self, event):
        """As people do: away with it, and the same again, which finds the nodes of the first one coming up."""
        self._look_at_jobs()
        waiting = [one for one in self._open_jobs() if one.records and not one.is_cancelled and one.job.how == "batch"]
        if not waiting:
            return ""
        one = event.pick(0, waiting)
        one.is_cancelled = True
        self.cluster.slurm("scancel", f"--name={one.name}")
        return f"{one.name} again: {self._submit_job(one.job)}"

    def _time_limit(self, event):
        self._look_at_jobs()
        waiting = [one for one in self._open_jobs() if one.records and not one.is_cancelled and one.job.how == "batch"]
        if not waiting:
            return ""
        one, minutes = event.pick(0, waiting), event.pick(1, [5, 15, 30, 60, 600])
        self.cluster.scontrol("update", f"jobid={one.records[0]['JobId']}", f"timelimit={minutes}", check=False)
        return f"{one.name} {one.records[0]['JobState']}: {minutes} min"

    # An admin at work; what is done is undone after a while

    def _after(self, event, undo):
        self._later.append((time.monotonic() + event.between(5, 5, 20), undo))

    def _undo_what_is_due(self, is_all=False):
        now = time.monotonic()
        due = [undo for at, undo in self._later if is_all or at <= now]
        self._later = [item for item in self._later if not is_all and item[0] > now]
        for undo in due:
            self.note(undo())

    def _a_node(self, event):
        nodeset = next(nodeset for nodeset in site.NODESETS if nodeset.name == event.pick(0, list(site.SIZES)))
        return event.pick(1, nodeset.nodes)

    def _drain(self, event):
        node = self._a_node(event)
        if any("DRAIN" in record["State"] for record in self.node_records() if record["NodeName"] == node):
            return ""
        # A job whose nodes come up goes back to the queue, or ends if it may not.
        self.lost[node].append(time.time())
        self.cluster.scontrol("update", f"nodename={node}", "state=drain", "reason=soak_drain")

        def undo():
            self.cluster.scontrol("update", f"nodename={node}", "state=undrain", check=False)
            return f"undrained: {node}"
        self._after(event, undo)
        return node

    def _flexctl_run(self, *words):
        done = self.cluster.sandbox.run([self._flexctl, *words], env=self.cluster.env(), check=False, timeout=120)
        return f"flexctl {' '.join(words)}: exit {done.returncode} {done.stderr.strip()[:200]}"

    def _pause(self, event):
        nodeset = event.pick(0, list(site.SIZES))
        for number in range(site.SIZES[nodeset][0]):
            self.lost[f"{nodeset}-{number}"].append(time.time())
        self._after(event, lambda: self._flexctl_run("resume", nodeset))
        return self._flexctl_run("pause", nodeset, "--reason", "soak")

    def _wrong_registration(self, event):
        """The node's next VM is too small for what slurm.conf says."""
        node = self._a_node(event)
        self.lost[node].append(time.time())
        self.cluster.set_vm_env(node, LD_PRELOAD=str(self._preload))

        def undo():
            self.cluster.set_vm_env(node)
            return f"{node} has its memory back"
        self._after(event, undo)
        return node

    def _requeue(self, event):
        self._look_at_jobs()
        running = [one for one in self._open_jobs() if one.records and one.job.how == "batch" and
                   one.job.may_requeue and one.records[0]["JobState"] in ("RUNNING", "CONFIGURING")]
        if not running:
            return ""
        one = event.pick(0, running)
        self.cluster.slurm("scontrol", "requeue", one.records[0]["JobId"], check=False)
        return one.name

    def _capacity(self, event):
        zone = event.pick(0, site.ZONES)
        size = event.pick(1, [0, 0, 2, 4, 8, 12])
        self.emulator.set_capacity(**{zone: size})
        return f"{zone}: {size}"

    def _kill_vm(self, event):
        running = sorted(name for name, status in self.emulator.vms().items()
                         if status == "RUNNING" and not site.is_foreign(name))
        if not running:
            return ""
        name = event.pick(0, running)
        try:
            self.emulator.kill_instance(name)
        except RuntimeError:  # it was deleted this very moment
            return ""
        self._vms.pop(name, None)
        self.lost[name].append(time.time())
        return name

    def _advance(self, event):
        seconds = int(event.between(0, 100, 500))
        self._watch()
        soon = self.emulator.state()["time"] + seconds / site.TIME_FACTOR
        self._vms = {name: min(ends, 1) if ends <= soon else ends for name, ends in self._vms.items()}
        self.emulator.advance(seconds)
        self._watch()
        return f"{seconds} s"

    # Restarts

    def _restart_slurmctld(self, event):
        self.cluster.stop_slurmctld()
        self._wait_a_little(event)
        self.cluster.start_slurmctld()
        return "up again"

    def _kill_sweeper(self, event):
        self.cluster.kill_sweeper()
        self._wait_a_little(event)
        self._start_sweeper()
        return "killed and started"

    def _stop_sweeper(self, event):
        code = self._end_sweeper()
        self._wait_a_little(event)
        self._start_sweeper()
        return f"ended with {code} and started"

    def _end_sweeper(self):
        # One that has just been started does not listen to signals yet: it may simply die.
        is_new = time.monotonic() - self._sweeper_started < 1
        code = self.cluster.stop_sweeper()
        self.exit_codes.append(0 if is_new and code == -signal.SIGTERM else code)
        return code

    def _start_sweeper(self):
        self.cluster.start_sweeper()
        self._sweeper_started = time.monotonic()

    def _reload_sweeper(self, _):
        self._reload()
        return "SIGHUP"

    def _reload(self):
        """Not before it listens: SIGHUP ends a program that has just been started, as it ends any other."""
        time.sleep(max(0.0, self._sweeper_started + 2 - time.monotonic()))
        self.cluster.reload_sweeper()

    def _restart_emulator(self, event):
        self._count_faults()
        self.emulator.stop()
        self._wait_a_little(event)
        self.emulator.start_again()
        site.add_faults(self.emulator, int(event.dice[1] * 2**31))
        return "up again"

    def _wait_a_little(self, event):
        time.sleep(event.between(0, 0.2, 3))

    def _count_faults(self):
        for fault in self.emulator.faults():
            if fault["hits"]:
                self.faults_hit[fault["kind"]] += fault["hits"]

    # Jobs

    def _look_at_jobs(self):
        """What slurmctld says of all jobs, under the names that we gave."""
        text = self.cluster.slurm("scontrol", "show", "job", "-a", check=False).stdout
        by_name = collections.defaultdict(list)
        for part in text.split("\n\n"):
            if "JobId=" in part:
                record = parse_record(part)
                by_name[record.get("JobName", "")].append(record)
        for name, one in self.jobs.items():
            if by_name[name]:
                one.records = by_name[name]

    # Settling

    def settle(self, limit, unmet):
        """Ends the trouble and waits until `unmet(self)` has nothing to say; what it said last."""
        began = told = time.monotonic()
        self.note("settling")
        self._undo_what_is_due(is_all=True)
        self._count_faults()
        self.emulator.clear_faults()
        self.emulator.config(boot_failure=0, time_factor=1)
        self.emulator.set_capacity(**{zone: -1 for zone in site.ZONES})
        self._drop_static_nodes()
        while True:
            self._watch()
            self._look_at_jobs()
            self._power_down_static_nodes()
            self._start_stopped_nodesets()
            self._end_forgotten_jobs()
            left = unmet(self)
            now = time.monotonic()
            if not left or now - began > limit:
                self.note(f"settled after {now - began:.0f} s, {len(left)} conditions unmet")
                return left
            if now - told > 20:
                told = now
                self.note("not yet: " + "; ".join(left))
            time.sleep(1)

    def _drop_static_nodes(self):
        config = self.cluster.flex_config
        nodesets = {name: {key: value for key, value in settings.items() if key != "static_nodes"}
                    for name, settings in config["nodesets"].items()}
        self.cluster.write_flex_config({**config, "nodesets": nodesets})
        if self.seed % 2:
            self._reload()
        else:
            self._end_sweeper()
            self._start_sweeper()

    def _power_down_static_nodes(self):
        """SuspendExcNodes keeps slurmctld from doing it."""
        for node in site.STATIC:
            state = self.cluster.node_state(node)
            # POWER_UP alone is what a restart of slurmctld may leave on a node that is up.
            if "IDLE" in state and not state & {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"}:
                self.cluster.scontrol("update", f"nodename={node}", "state=power_down", check=False)
                self.note(f"power down: {node}")

    def _end_forgotten_jobs(self):
        """An srun that ends while slurmctld restarts may not get its word through: the job stays until its limit."""
        for one in self.jobs.values():
            if one.client is None or one.client.poll() is None or one.is_cancelled:
                continue
            for record in one.records:
                if record.get("JobState") == "RUNNING" and self.done["restart_slurmctld"]:
                    one.is_cancelled = True
                    self.cluster.slurm("scancel", str(record["JobId"]), check=False)
                    self.note(f"scancel, its srun has ended: {one.name}")

    def _start_stopped_nodesets(self):
        """As an admin who has mended the image, or the machine type."""
        for record in self.node_records():
            if "DRAIN" in record["State"] and record.get("Reason", "").startswith(("flex: nodeset", "Low RealMemory")):
                self.cluster.scontrol("update", f"nodename={record['NodeName']}", "state=undrain",
                                      check=False)
                self.note(f"undrain: {record['NodeName']}")
                self.done["nodeset stopped"] += 1

    def node_records(self):
        text = self.cluster.scontrol("show", "node")
        return [parse_record(part) for part in text.split("\n\n") if "NodeName=" in part]
