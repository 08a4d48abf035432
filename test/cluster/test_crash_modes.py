# SPDX-License-Identifier: GPL-2.0-or-later
"""The crash matrix of VMs one by one, without a group, close together, and of several requests for the same nodes."""
import pytest

from crash_modes import SCENES

ALL_LOOKS = False  # the other matrix has them


@pytest.mark.parametrize("scene", [scene.name for scene in SCENES])
def test_all_is_right_again_after_trouble_at_any_call(crash_results, scene):
    crash_results.check(scene)
