# SPDX-License-Identifier: GPL-2.0-or-later
"""Replies that are lost, errors that pass and refusals, seen by the programs over real HTTP."""
import pytest

INSERT = "regionInstanceGroupManagerResizeRequests.insert"
CANCEL = "regionInstanceGroupManagerResizeRequests.cancel"
GROUP = "regionInstanceGroupManagers.insert"
LISTS = ("regionInstanceGroupManagers.get", "regionInstanceGroupManagers.listManagedInstances",
         "regionInstanceGroupManagerResizeRequests.list")
PASSING = ("lost_reply", "reset", "503", "429")


@pytest.fixture
def faulty(site):
    yield site
    site.emulator.clear_faults()


def active(site, *nodes):
    return [request for request in site.emulator.requests()
            if request.is_active and set(request.nodes) & set(nodes)]


def take_away(site, *nodes):
    """All requests for the nodes, as flex-suspend does it."""
    done = site.run("flex-suspend", ",".join(nodes))
    site.cluster.wait_for(lambda: not active(site, *nodes), 20, f"the requests for {nodes} to be cancelled")
    return done


@pytest.mark.parametrize("kind", PASSING)
def test_a_request_whose_insert_meets_passing_trouble_is_made_once(faulty, kind):
    faulty.emulator.fault(INSERT, kind)
    done = faulty.run("flex-resume", "fault-0")
    assert done.returncode == 0, faulty.cluster.log("by-hand.log")
    assert len(active(faulty, "fault-0")) == 1
    take_away(faulty, "fault-0")


@pytest.mark.parametrize("kind", PASSING)
def test_a_cancel_that_meets_passing_trouble_is_done(faulty, kind):
    assert faulty.run("flex-resume", "fault-1").returncode == 0
    faulty.cluster.wait_for(lambda: active(faulty, "fault-1")[0].state == "ACCEPTED", 15, "a queued request")
    faulty.emulator.fault(CANCEL, kind)
    assert take_away(faulty, "fault-1").returncode == 0, faulty.cluster.log("by-hand.log")


@pytest.mark.parametrize("kind", PASSING)
def test_a_list_that_meets_passing_trouble_is_read_again(faulty, kind):
    for method in LISTS:
        faulty.emulator.fault(method, kind)
    assert faulty.run("flex-resume", "fault-0").returncode == 0, faulty.cluster.log("by-hand.log")
    assert len(active(faulty, "fault-0")) == 1
    take_away(faulty, "fault-0")


def test_a_list_that_stays_away_decides_nothing(faulty):
    faulty.emulator.fault(LISTS[1], "503", count=1000)
    done = faulty.run("flex-resume", "fault-0")
    assert done.returncode == 1
    assert not active(faulty, "fault-0")
    assert "event=not_requested" in faulty.cluster.log("by-hand.log")


def test_a_group_whose_insert_loses_its_reply_is_made_once_and_used(faulty):
    faulty.emulator.fault(GROUP, "lost_reply")
    assert faulty.run("flex-resume", "fresh-0").returncode == 0, faulty.cluster.log("by-hand.log")
    assert len(active(faulty, "fresh-0")) == 1
    take_away(faulty, "fresh-0")


def test_a_node_is_asked_for_again_after_its_request_failed(faulty):
    faulty.emulator.fault(INSERT, "request_failed", code="LIMIT_EXCEEDED", message="not in the allocated time")
    assert faulty.run("flex-resume", "fault-0").returncode == 0
    faulty.cluster.wait_for(lambda: not active(faulty, "fault-0"), 15, "the request to fail")
    assert faulty.run("flex-resume", "fault-0").returncode == 0
    assert len(active(faulty, "fault-0")) == 1
    take_away(faulty, "fault-0")


def test_the_same_node_again_and_again_always_gets_a_request(faulty):
    for _ in range(3):
        assert faulty.run("flex-resume", "fault-1").returncode == 0
        assert len(active(faulty, "fault-1")) == 1
        take_away(faulty, "fault-1")
