# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs by hand, beside a running slurmctld: what Slurm does rarely or by accident."""
import json
import re
from pathlib import Path

import pytest

from site_under_test import file_of


def inserts(site):
    return len(site.emulator.calls("resizeRequests.insert"))


def test_resume_called_twice_makes_one_request(site):
    right = site.wait_accepted("right")
    before = inserts(site)
    again = site.run("flex-resume", ",".join(right.nodes), file_of(site.job["right"], *right.nodes))
    assert again.returncode == 0, again.stderr
    assert inserts(site) == before
    assert site.request("right").state == "ACCEPTED"


def test_resume_without_a_file_and_without_a_job_asks_for_the_longest_life(site):
    done = site.run("flex-resume", "hand-0")
    assert done.returncode == 0, done.stderr
    found = [request for request in site.emulator.requests() if request.nodes == ["hand-0"]]
    assert [request.seconds for request in found] == [7 * 86400]
    assert site.run("flex-suspend", "hand-0").returncode == 0
    site.cluster.wait_for(
        lambda: [request.state for request in site.emulator.requests() if request.nodes == ["hand-0"]]
        == ["CANCELLED"], 15, "the request to be cancelled")


def test_a_job_that_vanished_gets_no_vm(site):
    job = site.cluster.sbatch("-H", "-p", "hand", "-N1")
    site.cluster.scancel(job)
    before = inserts(site)
    done = site.run("flex-resume", "hand-1", file_of(job, "hand-1"))
    assert done.returncode == 0, done.stderr
    assert inserts(site) == before
    site.cluster.wait_off("hand-1")


def test_a_job_that_slurmctld_never_knew_gets_no_vm(site):
    before = inserts(site)
    assert site.run("flex-resume", "hand-1", file_of(99999999, "hand-1")).returncode == 0
    assert inserts(site) == before
    site.cluster.wait_off("hand-1")


@pytest.mark.parametrize("nodes", ["nosuch-7", "hand-2", "nosuch-[1-3],hand-2"])
def test_suspend_of_a_node_without_a_vm_succeeds(site, nodes):
    done = site.run("flex-suspend", nodes)
    assert done.returncode == 0, done.stderr


def test_programs_run_with_closed_descriptors_and_no_environment(site):
    done = site.run("flex-resume", "hand-2", bare=True)
    assert done.returncode == 0, site.cluster.log("by-hand.log")
    found = [request for request in site.emulator.requests()
             if request.nodes == ["hand-2"] and request.is_active]
    assert len(found) == 1
    done = site.run("flex-suspend", "hand-2", bare=True)
    assert done.returncode == 0, site.cluster.log("by-hand.log")
    site.cluster.wait_for(lambda: site.emulator.requests(found[0].group)[-1].state == "CANCELLED"
                          or not [request for request in site.emulator.requests()
                                  if request.nodes == ["hand-2"] and request.is_active], 15,
                          "the request to be cancelled")


def test_no_token_is_in_any_log(site):
    for path in (site.cluster.dir / "log").glob("flex-*.log"):
        assert not re.search(r"Bearer|access_token|ya29", path.read_text(encoding="utf-8")), path


def test_every_call_so_far_is_in_the_contract(site):
    contract = Path(__file__).resolve().parents[1] / "data" / "gce" / "contract.json"
    known = json.loads(contract.read_text(encoding="utf-8"))
    calls = site.emulator.journal()
    assert len(calls) > 50
    for call in calls:
        method = known["methods"][call["method"]]
        assert call["verb"] == method["verb"]
        assert set(call["query"]) <= set(method["queryParams"]) | set(known["standardQueryParams"]), call


def test_at_the_end_nothing_is_left_in_the_cloud(site):
    """Cancels what still waits, as users would, and gives every node back, as the sweeper will."""
    cluster = site.cluster
    cluster.slurm("scancel", "--user", cluster.sandbox.account.pw_name)
    cluster.wait_for(lambda: not cluster.slurm("squeue", "-h").stdout.strip(), 60, "an empty queue")
    nodes = [node for nodeset in cluster.nodesets.values() for node in nodeset.nodes]
    busy = [node for node in nodes
            if "POWERING_UP" in cluster.node_state(node)]
    if busy:
        cluster.give_back(*busy)
    cluster.wait_off(*nodes, timeout=90)
    cluster.wait_for(lambda: not site.emulator.vms(), 20, "all VMs to be deleted")
    cluster.wait_for(lambda: not [request for request in site.emulator.requests() if request.is_active],
                     20, "all requests to be ended")
    assert {group["target_size"] for group in site.emulator.groups().values()} == {0}
