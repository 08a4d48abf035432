# SPDX-License-Identifier: GPL-2.0-or-later
"""All scenes of the ways to get VMs, on one stage."""
import modes_scenes
from modes_site import last_call, make_modes

BOOKS = [modes_scenes]
SCENES = {name: scene for book in BOOKS for name, scene in book.SCENES.items()}


def make_stage(build):
    capacity = {"c": 0}
    for book in BOOKS:
        capacity.update(book.CAPACITY)
    return make_modes(build, [nodeset for book in BOOKS for nodeset in book.NODESETS], capacity)


def raise_curtain(stage, chosen):
    """Others' things first, then all jobs, then the sweeper."""
    for book in BOOKS:
        getattr(book, "prepare", lambda stage: None)(stage)
    stage.journal_start = last_call(stage.emulator)
    stage.start({name: scene for name, scene in SCENES.items() if name in chosen})
    stage.cluster.start_sweeper()
