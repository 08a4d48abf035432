# SPDX-License-Identifier: GPL-2.0-or-later
"""Lease ends beside a real slurmctld. The scenes are in lease_scenes.py; those about health are played beside
them, on the same cluster, and test_health.py asks how they ended."""
import pytest

from lease_scenes import LEASES, MINE, OTHERS, TRAINING, actions_in, ours, reservations
from sweeper_site import Moment, is_write


@pytest.mark.parametrize("scene", list(LEASES))
def test_scene(leases, scene):
    leases.outcome(scene)


def test_a_reservation_has_only_nodes_with_a_vm(leases):
    """While static nodes come and go all the time: sooner or later, and without writing in between."""
    leases.wait_all()
    cluster = leases.cluster

    def fits():
        reserved = [node for nodes in ours(cluster).values() for node in nodes]
        return len(reserved) == len(set(reserved)) and set(reserved) <= set(Moment(cluster).vms)
    cluster.wait_for(fits, 30, "reservations that fit")


def test_a_dry_run_says_exactly_what_the_round_does(leases):
    """The two look at different moments, so not in every round; but each kind of action was foretold in some."""
    leases.wait_all()
    assert not leases.rounds.trouble, leases.rounds.trouble
    kinds, foretold = set(), set()
    for swept in leases.rounds.done:
        kinds |= {kind(line) for line in swept.did}
        foretold |= {kind(line) for line in swept.did if line in swept.would}
    lease_kinds = {found for found in kinds if found[0] in ("lease_end", "unhealthy_node")}
    assert lease_kinds >= {("lease_end", what) for what in (
        "create_reservation", "delete_reservation", "warn_job", "DRAIN", "POWER_DOWN")} | {
            ("unhealthy_node", "POWER_DOWN"), ("unhealthy_node", "DRAIN")}
    # There was only one warning; the next test looks at another.
    assert lease_kinds - {("lease_end", "warn_job")} <= foretold, lease_kinds - foretold


def kind(line):
    """('lease_end', 'warn_job')"""
    fields = dict(word.partition("=")[::2] for word in line.split()[:2])
    return fields["rule"], fields["what"]


def job_to_warn(leases):
    """It fitted, then its limit was raised; and its VM's end, hours away, is near by a new setting."""
    cluster = leases.cluster
    job = cluster.sbatch("-p", "sick", "-w", "sick-0", "--time=5", script=TRAINING)
    cluster.wait_for(lambda: "began" in cluster.output(job), 60, "a job on a static node")
    cluster.scontrol("update", f"jobid={job}", "timelimit=1-0")
    settings = cluster.flex_config
    settings["nodesets"]["sick"]["lease_warning"] = "6h"
    cluster.write_flex_config(settings)
    return job


def test_a_dry_run_changes_nothing(leases):
    """With a reservation missing, one too many and a job to be warned: said, and not done."""
    leases.wait_all()
    leases.rounds.stop()
    cluster, emulator = leases.cluster, leases.emulator
    cluster.wait_for(lambda: cluster.sweep().returncode == 0 and Moment(cluster).is_up("sick-0"), 30, "a quiet moment")
    job = job_to_warn(leases)
    stray = "flex-eol-20310101T0000"
    missing = [name for name, nodes in ours(cluster).items() if "sick-0" in nodes]
    assert len(missing) == 1
    cluster.scontrol("delete", f"reservation={missing[0]}")
    cluster.scontrol("create", "reservation", f"reservationname={stray}", "starttime=2031-01-01T00:00:00", "duration=60", "users=root",
                     "nodes=sick-0", "flags=maint,ignore_jobs")
    before, calls = reservations(cluster), len(emulator.journal())
    memory = (cluster.sweeper_dir / "memory.json").read_bytes()
    said = actions_in(cluster.sweep("--dry-run").stdout)
    assert [line for line in said if "what=delete_reservation" in line and stray in line]
    assert [line for line in said if "what=create_reservation" in line and missing[0] in line]
    assert [line for line in said if "what=warn_job" in line and f"job={job} " in line]
    assert reservations(cluster) == before
    assert "warned" not in Moment(cluster).comment(job) and "saved" not in cluster.output(job)
    assert (cluster.sweeper_dir / "memory.json").read_bytes() == memory
    assert not [call for call in emulator.journal()[calls:] if is_write(call)]
    cluster.sweep()
    assert stray not in reservations(cluster)
    assert "sick-0" in ours(cluster)[missing[0]]
    assert "flex: warned" in Moment(cluster).comment(job)
    cluster.wait_for(lambda: "saved" in cluster.output(job), 10, "the signal to arrive")
    cluster.scancel(job)


def test_reservations_of_others_are_as_they_were(leases):
    leases.wait_all()
    now = reservations(leases.cluster)
    assert {name: now[name] for name in OTHERS} == leases.others


def test_nothing_is_left_over(leases):
    """No static nodes any more: when their leases have ended no VM, request or reservation is there."""
    leases.wait_all()
    leases.rounds.stop()
    cluster = leases.cluster
    settings = cluster.flex_config
    for nodeset in settings["nodesets"].values():
        nodeset.pop("static_nodes", None)
    cluster.write_flex_config(settings)
    for node in Moment(cluster).nodes:
        if "DRAIN" in Moment(cluster).words(node):
            cluster.scontrol("update", f"nodename={node}", "state=undrain")
    leases.emulator.advance(8 * 86400)

    def is_clean():
        cluster.sweep()
        now = Moment(cluster)
        return (not now.vms and not now.requests and not now.groups and now.is_off(*now.nodes)
                and not ours(cluster))
    cluster.wait_for(is_clean, 60, "nothing to be left", interval=0.7)
    assert not [name for name in reservations(cluster) if MINE.fullmatch(name) and name not in OTHERS]
    assert actions_in(cluster.sweep("--dry-run").stdout) == []
