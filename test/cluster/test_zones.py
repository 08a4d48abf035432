# SPDX-License-Identifier: GPL-2.0-or-later
"""What is tried when there is no capacity, races and renewals, on a real slurmctld. The scenes are in zones_scenes.py.

What concerns all scenes of the three files comes last."""
import pytest

from modes_plays import check_calls, wait_clean
from zones_scenes import SCENES


@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(modes, scene):
    modes.outcome(scene)


def test_in_the_end_nothing_is_left(modes):
    wait_clean(modes)


def test_every_call_was_right(modes):
    modes.wait_all()
    check_calls(modes)
