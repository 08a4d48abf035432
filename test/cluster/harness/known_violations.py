# SPDX-License-Identifier: GPL-2.0-or-later
"""Invariants that the programs still break, whatever the cluster. A line goes when what it names is mended."""
import dataclasses

from .invariants import OWN_SUSPEND, Expected

KNOWN = [
    # slurmctld erases the drain of an idle node that it powers down by itself (idle_on_node_suspend), without our asking.
    Expected("drain_kept", "slurmctld powers a drained node down by itself, and nobody puts its drain back", words=OWN_SUSPEND,
             is_certain=False),
]


def known():
    return [dataclasses.replace(one) for one in KNOWN]
