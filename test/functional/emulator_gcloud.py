# SPDX-License-Identifier: GPL-2.0-or-later
"""Real gcloud against the emulator, where gcloud is installed."""


def tests(program):
    return []
