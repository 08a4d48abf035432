# SPDX-License-Identifier: GPL-2.0-or-later
"""flex-sweeper under the restrictions of its unit: it does all of its work, and could do nothing else."""
import functools
import json
import re
import subprocess

import pytest

from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import HERE, Cluster

NODES = 2


@functools.cache
def calls_of(name):
    """The system calls of a set, with those of the sets in it."""
    if not name.startswith("@"):
        return frozenset([name])
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], check=True, capture_output=True,
                          text=True).stdout
    found = frozenset()
    for word in re.findall(r"^ +(@?\w[\w-]*)$", text, re.M):
        found |= calls_of(word)
    return found


def allowed(lines):
    """What the lines of SystemCallFilter= leave, in their order."""
    calls = set()
    for line in lines:
        named = frozenset().union(*(calls_of(word) for word in line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


def settings_of(unit, writable, read_only):
    def values(key):
        return re.findall(rf"^{key}=(.*)$", unit, re.M)
    for line in ("ProtectSystem=strict", "MemoryDenyWriteExecute=yes", "NoNewPrivileges=yes"):
        assert line in unit
    return {"syscalls": sorted(allowed(values("SystemCallFilter"))), "families": values("RestrictAddressFamilies")[0].split(),
            "writable": writable, "read_only": read_only}


class JailedCluster(Cluster):
    """Its sweeper runs as the unit would have it."""

    def jail(self):
        sandbox = self.sandbox
        unit = (self.build / "etc" / "flex-sweeper.service").read_text(encoding="utf-8")
        # Without user namespaces only root could make the file system read-only, and this runs as SlurmUser.
        tried = sandbox.run(["unshare", "--user", "--mount", "true"], check=False)
        self.is_read_only = tried.returncode == 0
        settings = settings_of(unit, [str(self.dir / "state"), str(self.dir / "log")], self.is_read_only)
        file = sandbox.write("etc/jail.json", json.dumps(settings))
        return ["/usr/bin/python3", "-IS", sandbox.install(HERE / "unit_jail.py"), file]

    def _sweeper_command(self, *options):
        return [*self.jail(), *super()._sweeper_command(*options)]


@pytest.fixture(scope="module")
def cluster(build):
    with JailedCluster([Nodeset("jail", NODES)], build=build, emulator=Emulator(build / "emulator" / "flex-gce-emulator"), sweeper=True) as running:
        yield running


def test_the_jail_is_one(cluster):
    """What the unit forbids fails, so that the next test means something."""
    forbidden = ("import os, socket, mmap\n"
                 "def fails(call):\n"
                 "    try:\n        call()\n    except OSError as error:\n        return True\n    return False\n"
                 "print([fails(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)), fails(lambda: os.chroot('/')),\n"
                 "  fails(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)),\n"
                 "  fails(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)),\n"
                 f"  fails(lambda: open('{cluster.dir}/out/x', 'w')), fails(lambda: open('{cluster.dir}/state/x', 'w'))])")
    done = cluster.sandbox.run([*cluster.jail(), "/usr/bin/python3", "-IS", "-c", forbidden])
    assert json.loads(done.stdout.lower()) == [True, True, True, True, cluster.is_read_only, False], done.stdout


def test_a_job_from_sbatch_to_clean_up(cluster):
    nodes = cluster.nodesets["jail"].nodes
    job = cluster.sbatch("-p", "jail", f"-N{NODES}", "--time=30", script="srun hostname")
    cluster.wait_for(lambda: cluster.job_state(job) in ("COMPLETED", "FAILED"), 240, "the job to end")
    assert cluster.job_state(job) == "COMPLETED", cluster.output(job)
    # Its groups are deleted by the sweeper, nobody else: it has seen Slurm and Google, and could write what it saw.
    cluster.wait_for(lambda: not cluster.emulator.groups(), 120, "the group to be deleted")
    cluster.wait_for(lambda: cluster.is_off(*nodes), 60, "the nodes to be powered down")
    assert cluster.sweeper.poll() is None
    assert cluster.sweeper_status(), "status.json is missing"
    log = cluster.log("flex-sweeper.log")
    assert not re.search(r"Operation not permitted|Read-only file system", log), log
