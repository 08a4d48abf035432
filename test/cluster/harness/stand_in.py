#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0-or-later
"""A Resume- or SuspendProgram without a cloud, to try the harness alone: it runs vm_hook itself."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import procs  # noqa: E402

procs.fill_standard_descriptors()
what = "up" if "resume" in os.path.basename(sys.argv[0]) else "down"
names = subprocess.run(["/usr/bin/scontrol", "show", "hostnames", sys.argv[1]], check=True, text=True,
                       stdout=subprocess.PIPE).stdout.split()
if what == "up":
    time.sleep(2)  # a registration in the second of the resume call would be ignored
for name in names:
    subprocess.run([os.path.join(HERE, "vm_hook"), what, name, "zone", "group"], check=False)
