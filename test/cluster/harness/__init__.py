# SPDX-License-Identifier: GPL-2.0-or-later
"""A private Slurm, a local Compute Engine and VMs that are slurmd processes, on one machine."""
