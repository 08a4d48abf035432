# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever dies half-way, or meets trouble at any of its calls, is brought right by two rounds of the sweeper."""
import pytest

from crash_scenes import SCENES


@pytest.mark.parametrize("scene", [scene.name for scene in SCENES])
def test_all_is_right_again_after_trouble_at_any_call(crash_results, scene):
    crash_results.check(scene)
