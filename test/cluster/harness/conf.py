# SPDX-License-Identifier: GPL-2.0-or-later
"""The texts of slurm.conf, cgroup.conf, plugstack.conf and flex-start.yaml (pure)."""
import json
from dataclasses import dataclass, field



@dataclass
class Nodeset:
    """A nodeset of flex-start.yaml, and the partition of the same name over its nodes."""
    name: str
    count: int
    settings: dict = field(default_factory=dict)   # its keys in flex-start.yaml
    partition: dict = field(default_factory=dict)  # its PartitionName= options
    configured: bool = True                        # False: nodes that no nodeset has
    boots: bool = True                             # False: no slurmd ever runs; one line in slurm.conf
    state: str = "CLOUD"                           # UNKNOWN: an ordinary node, which Cluster.boot() starts
    memory: int = 100                              # RealMemory in MiB; more than this host has: slurmctld refuses it

    @property
    def nodes(self):
        return [f"{self.name}-{number}" for number in range(self.count)]

    @property
    def hostlist(self):
        return f"{self.name}-0" if self.count == 1 else f"{self.name}-[0-{self.count - 1}]"


PARTITION = {"MaxTime": "30-00:00:00", "DefaultTime": "00:10:00", "OverSubscribe": "EXCLUSIVE",
             "SuspendTime": "4", "SuspendTimeout": "3", "ResumeTimeout": "300", "State": "UP"}


def slurm_conf(*, directory, cluster, host, user, version, ctld_port, slurmd_port, nodesets, ports, programs,
               cpus=2, cred_expire=12, extra=()):
    d = directory
    lines = [
        f"ClusterName={cluster}",
        # An address beside the name: in a chroot the name need not resolve.
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        f"SlurmctldPort={ctld_port}",
        f"SlurmdPort={slurmd_port}",
        "AuthType=auth/munge",
        # Requeued jobs start again after the credential's life. Not after less than 10 s (MessageTimeout): so long
        # slurmctld tries to end the first run on a VM that is gone. A new VM that comes up meanwhile would take that
        # order, and slurmctld would free the node under the second run.
        f"AuthInfo=socket={d}/munge/munge.sock,cred_expire={cred_expire}",
        "CredType=cred/munge",
        f"StateSaveLocation={d}/state",
        f"SlurmdSpoolDir={d}/spool/%n",
        f"SlurmctldPidFile={d}/run/slurmctld.pid",
        f"SlurmdPidFile={d}/run/slurmd-%n.pid",
        f"SlurmctldLogFile={d}/log/slurmctld.log",
        f"SlurmdLogFile={d}/log/slurmd-%n.log",
        "SlurmctldDebug=verbose",
        "DebugFlags=Power",
        "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
        "ProctrackType=proctrack/pgid",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "AccountingStorageType=accounting_storage/none",
        "JobCompType=jobcomp/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=sched_interval=2,bf_interval=2",
        "KillWait=2",
        "ReturnToService=2",
        "PrologFlags=Alloc",
        "PrivateData=cloud",
        "SlurmctldParameters=idle_on_node_suspend,power_save_interval=1",
        "SuspendTime=-1",
        "ResumeTimeout=300",
        "SuspendTimeout=30",
        "ResumeRate=0",
        "SuspendRate=0",
        "BatchStartTimeout=10",
        "SlurmdTimeout=60",
        "TreeWidth=64",
    ]
    if version >= (23, 2):
        lines.append("ReconfigFlags=KeepPowerSaveSettings")
    lines += [f"{key}={path}" for key, path in programs.items()]
    # What a test says itself counts instead of what is said above.
    own = {line.partition("=")[0] for line in extra}
    lines = [line for line in lines if line.partition("=")[0] not in own] + list(extra)
    for nodeset in nodesets:
        if not nodeset.boots:
            lines.append(f"NodeName={nodeset.hostlist} CPUs={cpus} RealMemory={nodeset.memory} State=CLOUD")
            continue
        lines += [f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname={node} Port={ports[node]} "
                  f"CPUs={cpus} RealMemory={nodeset.memory} State={nodeset.state}" for node in nodeset.nodes]
    for number, nodeset in enumerate(nodesets):
        options = {"PartitionName": nodeset.name, "Nodes": nodeset.hostlist, **PARTITION,
                   "Default": "YES" if number == 0 else "NO", **nodeset.partition}
        lines.append(" ".join(f"{key}={value}" for key, value in options.items() if value is not None))
    return "\n".join(lines) + "\n"


def cgroup_conf(version):
    # 22.05 ends on "disabled"; the newer ones need it where no cgroup may be made.
    return "CgroupPlugin=disabled\n" if version >= (23, 11) else "CgroupPlugin=cgroup/v1\n"


def plugstack_conf(plugin, kind="required", arguments=()):
    return " ".join([kind, str(plugin), *arguments]) + "\n"


def flex_start(*, endpoint, credentials, nodesets, zones, template="flex-template", extra=None):
    """The settings as a dict; to_yaml() makes the text."""
    sets = {}
    for nodeset in nodesets:
        if nodeset.configured:
            sets[nodeset.name] = {"nodes": nodeset.hostlist, "instance_template": template,
                                  **nodeset.settings}
    return {"project": "flex-test", "region": "us-central1", "api": {"endpoint": endpoint},
            "credentials": str(credentials), "defaults": {"zones": list(zones)},
            **(extra or {}), "nodesets": sets}


def to_yaml(value, indent=0):
    """Block mappings, flow lists; every text is quoted as JSON does, which YAML reads the same."""
    pad = "  " * indent
    lines = []
    for key, item in value.items():
        if isinstance(item, dict) and item:
            lines.append(f"{pad}{key}:\n{to_yaml(item, indent + 1)}")
        else:
            lines.append(f"{pad}{key}: {json.dumps(item)}")
    return "\n".join(lines) + ("\n" if indent == 0 else "")
