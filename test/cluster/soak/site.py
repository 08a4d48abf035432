# SPDX-License-Identifier: GPL-2.0-or-later
"""The cluster that is soaked: a nodeset for each way to get VMs, a small cloud, somebody else's VMs."""
import random

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster

ZONES = ("a", "b", "f")
SHARED = {"OverSubscribe": "NO"}


def _zones(letters):
    return {"zones": [f"{REGION}-{letter}" for letter in letters]}


# Leases are at least 600 s; they run ten times as fast, so some end while their job runs.
TIME_FACTOR = 10
NODESETS = [
    Nodeset("big", 8, _zones("ab")),
    Nodeset("mix", 4, _zones("b"), SHARED),
    # Waits for capacity longer than slurmctld's patience.
    Nodeset("imp", 4, _zones("a"), {**SHARED, "ResumeTimeout": "40"}),
    Nodeset("own", 4, {**_zones("ab"), "mig_scope": "job"}),
    Nodeset("fix", 4, {**_zones("f"), "static_nodes": "fix-[0-1]",
                       "dws_flex": {"max_run_duration": "20m"}}),
    Nodeset("one", 3, {**_zones("ab"), "mode": "individual"}),
    Nodeset("now", 2, {**_zones("b"), "mode": "bulk_insert", "retry": {"limit": 0, "base": "2s", "max": "8s"}}),
    Nodeset("two", 3, {**_zones("ab"), "race": 2}),
    Nodeset("then", 2, {**_zones("f"), "on_stockout": [{"wait": "5s", **_zones("a")},
                                                       {"wait": "10s", "mode": "individual", **_zones("b")}]}),
]
STATIC = ["fix-0", "fix-1"]
# Nodeset to (nodes, how often it is chosen).
SIZES = {"big": (8, 4), "mix": (4, 2), "imp": (4, 2), "own": (4, 2), "fix": (4, 1), "one": (3, 2), "now": (2, 2), "two": (3, 2),
         "then": (2, 2)}
CAPACITY = {"a": 12, "b": 10, "f": 7}
DEFAULTS = {"run_duration_margin": "0s", "boot_timeout": "25s", "max_boot_failures": 5,
            "retry": {"limit": 4, "base": "2s", "max": "8s"}}
SLURM = ["MinJobAge=86400", "SuspendExcNodes=fix-[0-1]"]
# slurmctld tries for 11 s to end a lost node's job there. A job that is back on a VM of the same name
# before that is ended by it, and then hangs; with the usual 120 s that cannot happen.
CRED_EXPIRE = 15

FOREIGN_GROUP, FOREIGN_MEMBER, FOREIGN_VM = "flextest-big-foreign", "foreign-0", "foreign-vm"
# One call in twenty, and some requests that Google accepts and then gives up.
CALL_FAULTS = {"lost_reply": 0.0125, "reset": 0.0125, "503": 0.0125, "429": 0.0125}
INSERT = "regionInstanceGroupManagerResizeRequests.insert"
WRITES = [INSERT, "regionInstanceGroupManagers.insert", "regionInstanceGroupManagers.deleteInstances",
          "regionInstanceGroupManagers.delete", "regionInstanceGroupManagerResizeRequests.cancel",
          "regionInstanceGroupManagerResizeRequests.delete", "regionInstanceGroupManagers.createInstances",
          "regionInstances.bulkInsert"]
REQUEST_ERRORS = ["ZONE_RESOURCE_POOL_EXHAUSTED", "INTERNAL_ERROR", "QUOTA_EXCEEDED"]


def make_cluster(build, seed):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", time_factor=TIME_FACTOR,
                        seed=seed % 2**32, boot_failure=0.02,
                        capacity={f"{REGION}-{zone}": size for zone, size in CAPACITY.items()})
    return Cluster(NODESETS, build=build, emulator=emulator, sweeper=True, slurm_extra=SLURM,
                   cred_expire=CRED_EXPIRE, plugin=["required"],
                   flex_extra={"defaults": {**_zones("a"), **DEFAULTS},
                               "sweeper": {"finished_request_grace": "5s"}})


def add_foreigners(cluster):
    """A group with our prefix, a VM in it, and a VM of its own; none of them is ours."""
    emulator = cluster.emulator
    cluster.set_no_boot([FOREIGN_MEMBER, FOREIGN_VM])
    template = "projects/flex-test/global/instanceTemplates/flex-template"
    groups = f"regions/{REGION}/instanceGroupManagers"
    emulator.api("POST", groups, {
        "name": FOREIGN_GROUP, "baseInstanceName": "foreign", "targetSize": 0,
        "description": "slurm-flex-start cluster=other nodeset=big",
        "distributionPolicy": {"zones": [{"zone": f"projects/flex-test/zones/{REGION}-c"}]},
        "updatePolicy": {"instanceRedistributionType": "NONE"},
        "versions": [{"instanceTemplate": template}]})
    cluster.wait_for(lambda: emulator.groups()[FOREIGN_GROUP]["ready"], 10, "the foreign group")
    emulator.api("POST", f"{groups}/{FOREIGN_GROUP}/createInstances",
                 {"instances": [{"name": FOREIGN_MEMBER}]})
    emulator.api("POST", f"zones/{REGION}-c/instances?sourceInstanceTemplate={template}",
                 {"name": FOREIGN_VM})
    cluster.wait_for(lambda: [emulator.vms().get(name) for name in (FOREIGN_MEMBER, FOREIGN_VM)] ==
                     ["RUNNING"] * 2, 20, "the foreign VMs")
    return foreigners(emulator)


def is_foreign(name):
    return name in (FOREIGN_GROUP, FOREIGN_MEMBER, FOREIGN_VM)


def foreigners(emulator):
    """What must stay as it is; another one of the same name would have another id."""
    found = []
    for path in (f"regions/{REGION}/instanceGroupManagers/{FOREIGN_GROUP}",
                 f"zones/{REGION}-c/instances/{FOREIGN_MEMBER}", f"zones/{REGION}-c/instances/{FOREIGN_VM}"):
        thing = emulator.api("GET", path)
        found.append({key: thing.get(key) for key in ("name", "id", "status", "targetSize", "description")})
    return found


def add_faults(emulator, dice):
    """The usual trouble; `dice` gives their seeds."""
    rng = random.Random(dice)
    for kind, probability in CALL_FAULTS.items():
        more = {"retry_after": 1} if kind == "429" else {}
        emulator.fault("*", kind, count=100000, probability=probability, seed=rng.randrange(2**31), **more)
    for code in REQUEST_ERRORS:
        emulator.fault(INSERT, "request_failed", count=100000, probability=0.02, code=code,
                       message=f"{code} by order", seed=rng.randrange(2**31))
    for method in WRITES:
        emulator.fault(method, "operation_error", count=100000, probability=0.02,
                       seed=rng.randrange(2**31))
