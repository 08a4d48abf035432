# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes that a health check has drained, beside a real slurmctld. The scenes are in lease_scenes.py."""
import pytest

from lease_scenes import HEALTH


@pytest.mark.parametrize("scene", list(HEALTH))
def test_scene(leases, scene):
    leases.outcome(scene)
