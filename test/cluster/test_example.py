# SPDX-License-Identifier: GPL-2.0-or-later
"""The example of README.md, as it stands there: what a new test begins as."""
from harness.conf import Nodeset
from harness.emulator import Emulator
from harness.slurm import Cluster


def test_a_job_runs_on_a_vm_that_goes_again(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator")
    with Cluster([Nodeset("a", 2)], build=build, emulator=emulator, sweeper=True) as cluster:
        job = cluster.sbatch("-p", "a", "-N2", "--time=10", script="srun hostname")
        cluster.wait_job(job, "COMPLETED")
        assert [request.seconds for request in emulator.requests_of(job)] == [25 * 60]
        cluster.wait_off("a-0", "a-1")
