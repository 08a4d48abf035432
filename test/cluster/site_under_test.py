# SPDX-License-Identifier: GPL-2.0-or-later
"""One cluster for all tests, with the jobs that wait while other tests run.

Batch jobs on freshly booted nodes start only at slurmctld's compiled-in 30 s tick. So all jobs are
submitted at the start, each in a nodeset of its own, and every test then looks at its own.
Zone a has room for everything, c never has any; b and f are given room by their tests.
"""
import json

from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster

A, B, C, F = ({"zones": [f"us-central1-{letter}"]} for letter in "abcf")
HELLO = "srun -l sh -c 'echo hello from $SLURMD_NODENAME'"

NODESETS = [
    Nodeset("one", 2, A),
    Nodeset("all", 4, B),
    Nodeset("wait", 4, C),
    Nodeset("free", 2, C, {"MaxTime": "UNLIMITED", "DefaultTime": None}),
    Nodeset("bare", 1, {**C, "run_duration_margin": 0}),
    Nodeset("array", 3, A),
    Nodeset("het", 2, A),
    Nodeset("het2", 1, A),
    Nodeset("pair", 4, C, {"ResumeTimeout": "1200"}),  # no sweeper is there to keep them waiting
    Nodeset("slow", 2, C, {"Nodes": "slow-0", "ResumeTimeout": "12"}),
    Nodeset("late", 2, F),
    Nodeset("own", 2, {**A, "mig_scope": "job"}),
    Nodeset("share", 1, A, {"OverSubscribe": "NO"}),
    Nodeset("hand", 3, C),
    Nodeset("spare", 1, C),
    Nodeset("fault", 2, C),
    Nodeset("fresh", 1, C),
    Nodeset("alien", 1, configured=False),
    Nodeset("bad", 2, {**A, "instance_template": "missing-template"}),
]
STEADY = ("PartitionName=steady Nodes=slow-1 State=UP MaxTime=30-00:00:00 DefaultTime=00:10:00 "
          "OverSubscribe=EXCLUSIVE SuspendTime=4 SuspendTimeout=3 ResumeTimeout=300")


class Site:
    """The cluster, the emulator and the jobs."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator",
                                 capacity={"us-central1-b": 3, "us-central1-c": 0, "us-central1-f": 0})
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, slurm_extra=[STEADY])
        self.job = {}
        self.journal_seen = 0

    def submit(self):
        """All jobs at once; those that must meet in one resume call are held and released."""
        sbatch, job = self.cluster.sbatch, self.job
        job["share_short"] = sbatch("-H", "-p", "share", "-n1", "--time=10", script=HELLO)
        job["share_long"] = sbatch("-H", "-p", "share", "-n1", "--time=30", script=HELLO)
        job["bad"] = sbatch("-H", "-p", "bad", "-N2", "--time=10")
        job["beside_bad"] = sbatch("-H", "-p", "one", "-N1", "--time=5", script=HELLO)
        job["all"] = sbatch("-p", "all", "-N4", "--time=20", script=HELLO)
        job["own"] = sbatch("-p", "own", "-N2", "--time=20", script=HELLO)
        job["one"] = sbatch("-p", "one", "-N1", "--time=4:00:00", script=HELLO)
        job["array"] = sbatch("-p", "array", "-N1", "--array=0-2", "--time=7", "--output=%A-%a.out",
                              script=HELLO)
        job["het"] = sbatch("-p", "het", "-N2", "--time=20", ":", "-p", "het2", "-N1", "--time=20",
                            script="srun --het-group=0,1 sh -c 'echo hello from $SLURMD_NODENAME'")
        job["slow"] = sbatch("-p", "slow", "-N1", "--time=10")
        job["steady"] = sbatch("-p", "steady", "-N1", "--time=10")
        job["4h"] = sbatch("-p", "wait", "-N1", "--time=4:00:00")
        job["5min"] = sbatch("-p", "wait", "-N1", "--time=5")
        job["8d"] = sbatch("-p", "wait", "-N1", "--time=8-00:00:00")
        job["default"] = sbatch("-p", "wait", "-N1")
        job["none"] = sbatch("-p", "free", "-N1")
        job["unlimited"] = sbatch("-p", "free", "-N1", "--time=UNLIMITED")
        job["bare"] = sbatch("-p", "bare", "-N1", "--time=5")
        job["left"] = sbatch("-p", "pair", "-N2", "--time=10")
        job["right"] = sbatch("-p", "pair", "-N2", "--time=10")
        job["late"] = sbatch("-p", "late", "-N2", "--time=10", script=HELLO)
        job["alien"] = sbatch("-p", "alien", "-N1", "--time=10")
        held = [str(job[name]) for name in ("share_short", "share_long", "bad", "beside_bad")]
        self.cluster.scontrol("release", ",".join(held))

    def request(self, name):
        """The one request of a job, once it is there."""
        job = self.job[name]
        found = self.cluster.wait_for(lambda: self.emulator.requests_of(job), 30,
                                      f"the request of job {job} ({name})")
        assert len(found) == 1, found
        return found[0]

    def wait_accepted(self, name):
        self.cluster.wait_for(lambda: self.request(name).state == "ACCEPTED", 15,
                              f"the request of job '{name}' to be queued")
        return self.request(name)

    def finish(self, *names):
        """Cancels jobs that wait and gives their nodes back, as the sweeper will."""
        nodes = [node for name in names for node in self.cluster.job_nodes(self.job[name])]
        self.cluster.scancel(*[self.job[name] for name in names])
        self.cluster.give_back(*nodes)
        return nodes

    def run(self, program, hostlist, resume_file=None, bare=False):
        """A program by hand, as slurmctld runs it. `bare`: also without fds 0-2."""
        cluster = self.cluster
        env = {"SLURM_CONF": str(cluster.conf)}
        if program == "flex-resume" and resume_file is None:
            cluster.recorder.powers_up(hostlist)
        if resume_file is not None:
            path = cluster.sandbox.write("run/resume.json", json.dumps(resume_file))
            env["SLURM_RESUME_FILE"] = str(path)
        log = cluster.dir / "log" / "by-hand.log"
        argv = [cluster.program(program), "--log-level", "debug", "--log-file", log, hostlist]
        if not bare:
            return cluster.sandbox.run(argv, env=env, check=False, cwd="/")
        code = cluster.sandbox.run(
            ["/bin/sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", *argv], env=env, check=False, cwd="/")
        return code

    def save_logs(self, target):
        self.cluster.save_logs(target)

    def check_journal(self):
        """No call outside the contract, and none that was refused for its shape."""
        entries = self.emulator.journal(self.journal_seen)
        for entry in entries:
            self.journal_seen = max(self.journal_seen, entry["seq"])
            assert entry["method"], f"a call that is no method of the API: {entry}"
            # Not there, already there, and cancelled while it was still being created.
            is_answer = entry["status"] < 400 or entry["status"] in (404, 409, 412)
            is_answer = is_answer or bool(entry.get("fault"))  # which a test has set
            assert is_answer or "missing-template" in json.dumps(entry["body"]), entry


def file_of(job, *nodes):
    """A resume file in the shape of Slurm 22.05, which later ones' programs must read as well."""
    hostlist = ",".join(nodes)
    return {"jobs": [{"job_id": job, "nodes": hostlist}], "all_nodes": hostlist}
