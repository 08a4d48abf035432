# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs close together: a job's own group with a workload policy of its own."""
from harness.conf import Nodeset
from harness.emulator import REGION
from modes_site import EMPTY_GRACE, HELLO, NAME
from modes_scenes import hellos
from sweeper_site import pause, until

POLICIES = f"regions/{REGION}/resourcePolicies"
NODESETS = [
    Nodeset("near", 2, {"placement": {"max_distance": 2}}),
    Nodeset("shape", 2, {"placement": {"accelerator_topology": "4x4"}}),
]
CAPACITY = {}
MARK = f"slurm-flex-start cluster={NAME} nodeset=near"
FOREIGN = {  # names like ours; whose they are, their descriptions say
    f"{NAME}-near-by-hand": "made by hand",
    f"{NAME}-near": "",
    f"{NAME}-x-near": f"slurm-flex-start cluster={NAME}-x nodeset=near",
    f"{NAME}x-near": f"slurm-flex-start cluster={NAME}x nodeset=near",
    "other": MARK,
}
LEFT_OVER = f"{NAME}-near-j4711"


def make_policy(emulator, name, description):
    emulator.api("POST", POLICIES, {"name": name, "description": description,
                                    "workloadPolicy": {"type": "HIGH_THROUGHPUT"}})


def prepare(stage):
    """Others' policies, and one of ours that a flex-resume made before it died."""
    for name, description in FOREIGN.items():
        make_policy(stage.emulator, name, description)
    make_policy(stage.emulator, LEFT_OVER, f"{MARK} job=4711")
    stage.emulator.wait(operations=0)


def placed(nodeset, policy):
    """A scene: a policy, a group for the job that uses it, all VMs, and in the end none of it."""
    def scene(stage):
        nodes = stage.nodes(nodeset)
        job = stage.submit(nodeset, "-p", nodeset, "-N2", "--time=10", script=HELLO)
        name = f"{NAME}-{nodeset}-j{job}"
        yield until(lambda now: now.has_vms(*nodes), 40, "its VMs")
        made = [call["body"] for call in stage.calls("resourcePolicies.insert") if call["body"]["name"] == name]
        assert len(made) == 1
        assert made[0]["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", **policy}
        assert made[0]["description"] == f"slurm-flex-start cluster={NAME} nodeset={nodeset} job={job}"
        groups = [call["body"] for call in stage.calls("regionInstanceGroupManagers.insert")
                  if call["body"]["name"] == name]
        assert len(groups) == 1
        assert groups[0]["resourcePolicies"]["workloadPolicy"].endswith(f"{POLICIES}/{name}")
        assert groups[0]["description"] == made[0]["description"]
        assert {vm["group"] for node in nodes for vm in stage.now.copies(node)} == {name}
        yield until(lambda now: now.state(job) == "COMPLETED", 100, "the job to run")
        assert hellos(stage, job) == nodes
        yield until(lambda now: name not in now.groups, 60, "the group to be deleted")
        yield until(lambda now: name not in now.policies, 30, "the policy to be deleted")
        group_gone, policy_gone = (
            [call["ended"] for call in stage.calls(method) if call["path"].endswith(f"/{name}")]
            for method in ("regionInstanceGroupManagers.delete", "resourcePolicies.delete"))
        assert len(group_gone) == len(policy_gone) == 1
        assert policy_gone[0] - group_gone[0] >= EMPTY_GRACE - 1.5
        assert stage.log("event=action", "rule=unused_policy", f"target={name}")
        yield until(lambda now: now.is_off(*nodes), 30, "its nodes to be powered down")
    return scene


def others_policies(stage):
    """One of ours that no group uses goes; those of others stay."""
    yield until(lambda now: LEFT_OVER not in now.policies, 40, "a policy that nobody uses to be deleted")
    yield pause(3 * EMPTY_GRACE)
    assert set(FOREIGN) <= stage.now.policies
    assert all(set(FOREIGN) <= now.policies for now in stage.history)


SCENES = {
    "max_distance": placed("near", {"maxTopologyDistance": "BLOCK"}),
    "accelerator_topology": placed("shape", {"acceleratorTopology": "4x4"}),
    "foreign policies": others_policies,
}
