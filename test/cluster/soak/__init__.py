# SPDX-License-Identifier: GPL-2.0-or-later
"""Random trouble for a whole cluster, and what must be true when it is over."""
