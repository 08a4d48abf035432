# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm's lists of names (pure)."""
import re


def expand(hostlist):
    """'a-[0-2,5],b-1' to names; numbers keep their leading zeros."""
    names = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?[^,\[]*", hostlist):
        found = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", part)
        if not found:
            names.append(part)
            continue
        for span in found[2].split(","):
            first, _, last = span.partition("-")
            for number in range(int(first), int(last or first) + 1):
                names.append(f"{found[1]}{number:0{len(first)}}{found[3]}")
    return names
