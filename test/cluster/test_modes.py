# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs one by one and VMs without a group, on a real slurmctld. The scenes are in modes_scenes.py; those of
test_placement.py and test_zones.py are played on the same cluster at the same time."""
import pytest

from modes_scenes import SCENES


@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(modes, scene):
    modes.outcome(scene)
