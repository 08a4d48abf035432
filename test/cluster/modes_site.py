# SPDX-License-Identifier: GPL-2.0-or-later
"""One cluster for all the ways to get VMs: one by one, without a group, close together, in several zones.

Zone a has room for everything, c never has any. Every other zone belongs to one scene, which gives it room.
The scenes are in modes_scenes.py, placement_scenes.py and zones_scenes.py and are played side by side.
"""
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_site import Moment, Stage

NAME = "modes"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEASE = 60  # seconds that the VMs of "short-template" live
EMPTY_GRACE = 4
# Runs until its VM goes; the second time it is done at once.
ONCE_MORE = 'test -n "$SLURM_RESTART_COUNT" && exit 0; sleep 900'
HELLO = "srun -l sh -c 'echo hello from $SLURMD_NODENAME'"
INDIVIDUAL = {"mode": "individual"}
BULK = {"mode": "bulk_insert", "retry": {"base": "1s", "max": "2s", "limit": 0}}
STAYS = {"SuspendTime": "INFINITE"}
FLEX = {"defaults": {"zones": [f"{REGION}-a"], "boot_timeout": "1h"},
        "sweeper": {"interval": "1s", "orphan_grace": "2s", "listen": "127.0.0.1:0",
                    "empty_mig_grace": f"{EMPTY_GRACE}s", "finished_request_grace": "1h"}}
TEMPLATES = [{"name": "flex-template"}, {"name": "short-template", "max_run_duration": LEASE}]


def zone(letter):
    return f"{REGION}-{letter}"


def zones(letters):
    return {"zones": [zone(letter) for letter in letters]}


class Look(Moment):
    """Also VMs without a group, several of one name, several requests for a node, and policies."""

    def __init__(self, cluster):
        super().__init__(cluster)
        state, self.raw = self.raw, None
        self.every_vm = [vm for vm in state["vms"]
                         if vm["group"] in self.groups or (not vm["group"] and vm["name"] in self.nodes)]
        self.vms = {vm["name"]: vm for vm in self.every_vm}
        self.policies = {key.rpartition("/")[2] for key in state["policies"]}

    def copies(self, node):
        return [vm for vm in self.every_vm if vm["name"] == node]

    def zones_of(self, *nodes):
        """The zones' letters of the nodes' VMs."""
        return {vm["zone"][-1] for node in nodes for vm in self.copies(node)}

    def has_vms(self, *nodes):
        return all(len(self.copies(node)) == 1 for node in nodes)

    def has_no_vm(self, *nodes):
        return not any(self.copies(node) for node in nodes)

    def waits_alone(self, node):
        """An entry without a VM and without a request: Google makes the VM when it can."""
        return any(member["name"] == node and not member["zone"] and not member["request"]
                   for group in self.groups.values() for member in group["members"])

    def entries(self, *nodes):
        return [(name, member["name"]) for name, group in self.groups.items() for member in group["members"]
                if member["name"] in nodes]

    def waiting(self, node):
        """The active requests that name the node."""
        return [request for request in self.requests_for(node) if request.is_active]

    def groups_of(self, nodeset):
        mark = f"slurm-flex-start cluster={NAME} nodeset={nodeset}"
        return [name for name, group in self.groups.items() if f"{group['description']} ".startswith(f"{mark} ")]

    def is_clean(self, nodeset, *nodes):
        """Nothing of it is left."""
        return (self.is_off(*nodes) and self.has_no_vm(*nodes) and not self.groups_of(nodeset)
                and not [name for name in self.policies if name.startswith(f"{NAME}-{nodeset}-")])


class Modes(Stage):
    """Plays the scenes of all ways, and knows their calls."""

    def calls(self, method, node=""):
        """Calls that were taken, whose body names the node."""
        return [call for call in self.emulator.calls(method, self.journal_start)
                if call["status"] == 200 and (not node or f'"{node}"' in str(call["body"]).replace("'", '"'))]

    def creates(self, node):
        return self.calls("createInstances", node)

    def bulks(self, node):
        return self.calls("regionInstances.bulkInsert", node)

    def nodes(self, nodeset):
        return self.cluster.nodesets[nodeset].nodes

    def give(self, **room):
        self.emulator.set_capacity(**room)

    def log(self, *words):
        """Lines of the sweeper's log with all of the words."""
        return [line for line in self.cluster.log("flex-sweeper.log").splitlines()
                if all(word in line for word in words)]


def make_modes(build, nodesets, capacity):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", templates=TEMPLATES,
                        regions={REGION: [zone(letter) for letter in LETTERS]},
                        capacity={zone(letter): size for letter, size in capacity.items()})
    return Modes(Cluster(nodesets, build=build, emulator=emulator, flex_extra=FLEX, name=NAME,
                         # Short jobs that begin at once may be over between two looks.
                         quick_tick=False), Look)


def last_call(emulator):
    return max((call["seq"] for call in emulator.journal()), default=0)
