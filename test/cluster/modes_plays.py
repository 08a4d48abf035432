# SPDX-License-Identifier: GPL-2.0-or-later
"""All scenes of the ways to get VMs, on one stage."""
import modes_scenes
import placement_scenes
import zones_scenes
from modes_site import Look, last_call, make_modes

BOOKS = [modes_scenes, placement_scenes, zones_scenes]
SCENES = {name: scene for book in BOOKS for name, scene in book.SCENES.items()}
STATIC = ("istatic", "bstatic")


def make_stage(build):
    capacity = {"c": 0}
    for book in BOOKS:
        capacity.update(book.CAPACITY)
    return make_modes(build, [nodeset for book in BOOKS for nodeset in book.NODESETS], capacity)


def raise_curtain(stage, chosen):
    """Others' things first, then all jobs, then the sweeper."""
    placement_scenes.prepare(stage)
    stage.journal_start = last_call(stage.emulator)
    stage.start({name: scene for name, scene in SCENES.items() if name in chosen})
    stage.cluster.start_sweeper()


def wait_clean(stage):
    """Without jobs only the static nodes, their VMs and what others have stay."""
    stage.wait_all()
    cluster = stage.cluster
    cluster.slurm("scancel", "--user", cluster.sandbox.account.pw_name)
    off = [node for nodeset in cluster.nodesets.values() for node in nodeset.nodes if nodeset.name not in STATIC]
    static = {node for name in STATIC for node in cluster.nodesets[name].nodes}
    # SuspendTime is INFINITE where a scene wants an idle node to stay.
    cluster.scontrol("update", "nodename=blone-0", "state=power_down_force", "reason=test")

    def is_clean():
        now = Look(cluster)
        return (now.is_off(*off) and {vm["name"] for vm in now.every_vm} == static
                and len(now.every_vm) == len(static) and now.policies == set(placement_scenes.FOREIGN)
                and set(now.groups) == set(now.groups_of("istatic"))
                and not [request for request in now.requests if request.is_active])
    cluster.wait_for(is_clean, 90, "nothing to be left", interval=1)


REFUSED = ("missing-template", "us-central1-ai1a")  # by two scenes


def check_calls(stage):
    """None outside the API, none that was refused for its shape."""
    calls = stage.emulator.journal(stage.journal_start)
    # flex-resume and the sweeper may ask at the same time: one is told that it exists.
    taken = [str(call["body"]) for call in calls if call["status"] == 200]
    for call in calls:
        assert call["method"], call
        if call["method"].endswith("createInstances") and call["status"] == 400 and str(call["body"]) in taken:
            continue
        if any(word in str(call["body"]) for word in REFUSED):
            continue
        assert call["status"] < 400 or call["status"] in (404, 409, 412) or call.get("fault"), call
