# SPDX-License-Identifier: GPL-2.0-or-later
"""One cluster with the plugin in every sbatch, salloc, srun and slurmd, and what its jobs see.

Zone a has room for everything, c never has any. The scenes are in plugin_wishes.py (what a job asks for) and
plugin_scenes.py (what it sees while it runs), and are played side by side.
"""
import re
from dataclasses import dataclass

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster, find_program
from sweeper_site import Moment, Stage

NAME = "plug"
A, C = ({"zones": [f"{REGION}-{letter}"]} for letter in "ac")
# Nodes that stay when they are idle: the next job starts at once.
STAYS = {"SuspendTime": "INFINITE", "OverSubscribe": "NO"}
MARGIN = 15 * 60
BAD = ("hang", "fail", "exit")  # what libslurm's calls do on bad-0, bad-1, …; see test/support/bad_libslurm.c

NODESETS = [
    Nodeset("ask", 32, C),
    Nodeset("cap", 2, {**C, "dws_flex": {"max_run_duration": "1h"}}),
    Nodeset("fixed", 1, {**C, "dws_flex": {"max_run_duration": "2h", "use_job_duration": False}}),
    Nodeset("late", 16, C),
    Nodeset("share", 1, C, {"OverSubscribe": "NO"}),
    Nodeset("cut", 2, {**C, "provision_timeout": "6s", "on_timeout": "hold"}),
    Nodeset("run", 1, A, STAYS),
    Nodeset("two", 2, A, STAYS),
    Nodeset("het", 1, A),
    Nodeset("het2", 1, A),
    Nodeset("lost", 1, A),
    Nodeset("again", 1, A, STAYS),
    Nodeset("bad", len(BAD), A, STAYS),
    Nodeset("plain", 1, partition=STAYS, configured=False, state="UNKNOWN"),
]
# Notes to jobs are in test_job_words.py; here they may come as they like.
FLEX = {"sweeper": {"interval": "1s", "orphan_grace": "2s", "listen": "127.0.0.1:0", "note_interval": "1s",
                    "empty_mig_grace": "4s", "finished_request_grace": "1h"},
        "defaults": {"zones": [f"{REGION}-a"], "boot_timeout": "1h"}}
SEES = """#!/bin/sh
# What the job sees of its VMs, from where it is called: sees LABEL
echo "sees $1 $SLURMD_NODENAME end=${SLURM_FLEX_END_TIME-none} nodeset=${SLURM_FLEX_NODESET-none}" \\
     "request=${SLURM_FLEX_REQUEST-none} at=$(date +%s)"
"""


@dataclass(frozen=True)
class Sight:
    """A line of bin/sees; what is not set is ''."""
    label: str
    node: str
    end: int
    nodeset: str
    request: str
    at: int  # when it was written

    @property
    def is_nothing(self):
        return not (self.end or self.nodeset or self.request)


def sights(text):
    found = re.findall(r"sees (\S+) (\S*) end=(\S*) nodeset=(\S*) request=(\S*) at=(\d+)", text)
    return [Sight(label, node, 0 if end == "none" else int(end), "" if nodeset == "none" else nodeset,
                  "" if request == "none" else request, int(at)) for label, node, end, nodeset, request, at in found]


class PluginStage(Stage):
    """Plays the scenes, and knows how jobs are submitted and what they see."""

    def script(self, name, text):
        """A batch script, for its #SBATCH lines; its path."""
        return self.cluster.sandbox.write(f"run/{name}.sh", "#!/bin/sh\n" + text, 0o755)

    def submit_script(self, name, text, *options):
        done = self.cluster.slurm("sbatch", "--parsable", "--output=%j.out", *options,
                                  self.script(name.replace(" ", "-"), text))
        self.job[name] = int(done.stdout)
        return self.job[name]

    def spawn(self, command, *arguments, log):
        """srun or salloc in the background; the process."""
        return self.cluster.sandbox.spawn([find_program(command), *arguments], log, env=self.cluster.env())

    def output(self, name):
        """A file that a job wrote."""
        path = self.cluster.dir / "out" / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def sights_in(self, log):
        return sights(self.cluster.log(log))

    @property
    def sees(self):
        return f"{self.cluster.dir}/bin/sees"

    def seen(self, job, label=None):
        """What the job wrote with bin/sees."""
        return [sight for sight in sights(self.cluster.output(job)) if label in (None, sight.label)]

    def wait_extra(self, *nodes):
        """A condition: their extra tells the end of the VMs that they have now."""
        def is_there(now):
            return all(node in now.vms and f"flex(end={int(now.vms[node]['ends'])}," in now.nodes[node].get("Extra", "")
                       for node in nodes)
        return is_there

    def request_for(self, node):
        """The name of the newest request for the node."""
        return [request.name for request in self.now.requests_for(node)][-1]


def make_stage(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", capacity={f"{REGION}-c": 0})
    cluster = Cluster(NODESETS, build=build, emulator=emulator, flex_extra=FLEX, name=NAME, plugin=["required"])
    return PluginStage(cluster, Moment)


# Values that no option takes, and how they are tried

TEN_KB = "x" * 10240
TIMES = ["0", "-1", "8d", "abc", "2147483648", TEN_KB]
REFUSED = [(name, value) for name in ("--flex-run-duration", "--flex-max-wait") for value in TIMES]
REFUSED += [("--flex-on-timeout", value) for value in ("never", "Hold", TEN_KB)]
TRIED_BY = ("sbatch", "sbatch line", "salloc", "srun")


def try_bad_values(stage):
    """Between two jobs, whose numbers tell whether there was another."""
    cluster = stage.cluster
    held = ("-H", "-p", "ask", "-N1", "--time=10")
    first = cluster.sbatch(*held)
    stage.refusals = {(how, name, value): try_value(stage, how, name, value)
                      for how in TRIED_BY for name, value in REFUSED}
    last = cluster.sbatch(*held)
    jobs = sorted(int(job) for job in cluster.slurm("squeue", "-h", "-o", "%i").stdout.split())
    stage.around_refusals = first, jobs, last
    cluster.scancel(first, last)


def try_value(stage, how, name, value):
    options = ["-p", "ask", "-N1", "--time=10"]
    if how == "sbatch line":
        path = stage.script("bad", f"#SBATCH {name}={value}\nexit 0\n")
        return stage.cluster.slurm("sbatch", *options, path, check=False)
    command = ["--wrap", "exit 0"] if how == "sbatch" else ["hostname"]
    return stage.cluster.slurm(how, *options, f"{name}={value}", *command, check=False)


def raise_curtain(stage, chosen):
    """What libslurm does on the bad nodes and who boots without a cloud, then all jobs, then the sweeper."""
    cluster = stage.cluster
    shim = cluster.sandbox.install(cluster.build / "test" / "cluster" / "bad_libslurm.so")
    for number, kind in enumerate(BAD):
        cluster.set_vm_env(f"bad-{number}", LD_PRELOAD=str(shim), FLEX_BAD_LIBSLURM=kind,
                           FLEX_BAD_LIBSLURM_LOG=f"{cluster.dir}/out/bad-{number}.calls")
    cluster.sandbox.write("bin/sees", SEES, 0o755)
    cluster.boot("plain-0")
    try_bad_values(stage)
    stage.start(chosen)
    cluster.start_sweeper()
