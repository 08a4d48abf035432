# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs close together, on a real slurmctld. The scenes are in placement_scenes.py."""
import pytest

from placement_scenes import SCENES


@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(modes, scene):
    modes.outcome(scene)
