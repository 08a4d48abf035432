# SPDX-License-Identifier: GPL-2.0-or-later
"""A minute of trouble for a whole cluster; tools/soak.py does it for longer."""
import os
import time

from soak import logs, plan, site
from soak.outcome import outcome
from soak.report import soak

# Another one each time; a failure names it.
SEED = int(os.environ.get("FLEX_SOAK_SEED") or time.time())


def test_a_minute_of_trouble_leaves_nothing_behind(build):
    problems = soak(build, SEED, 60, 300, logs=build / "test-logs" / f"soak-{SEED}", most_waiting=12)
    assert not problems, f"FLEX_SOAK_SEED={SEED} does it again"


def test_the_same_seed_makes_the_same_plan():
    assert plan.make(3, 60) == plan.make(3, 60) != plan.make(4, 60)
    kinds = {event.kind for event in plan.make(3, 60)}
    assert kinds >= set(plan.ALWAYS) | {"submit"}
    jobs = [plan.job_of(event, site.SIZES) for event in plan.make(3, 600) if event.kind == "submit"]
    assert {job.nodeset for job in jobs} == set(site.SIZES)
    assert all(1 <= job.nodes <= min(8, site.SIZES[job.nodeset][0]) for job in jobs)


def test_hostlists_of_log_lines_are_expanded():
    assert logs.expand("a-[0-2,5],b-1") == ["a-0", "a-1", "a-2", "a-5", "b-1"]
    assert logs.expand("n[08-10]x") == ["n08x", "n09x", "n10x"]
    assert logs.expand("") == []


INSERT = {"method": "compute.regionInstanceGroupManagerResizeRequests.insert", "verb": "POST",
          "path": "/compute/v1/projects/p/regions/r/instanceGroupManagers/g/resizeRequests",
          "body": {"name": "j1-abc", "instances": [{"name": "n-0"}, {"name": "n-1"}]},
          "status": 200, "started": 1000000000.4, "ended": 1000000000.5, "fault": ""}
STAMP = "2001-09-09T01:46:41Z level=info prog=flex-resume pid=1 "


def test_a_write_is_explained_by_a_line_with_its_names_at_its_time():
    def explains(text, **entry):
        return not logs.unexplained([{**INSERT, **entry}], logs.parse_lines(text))
    assert explains(STAMP + "event=requested nodes=x-3 group=g request=j1-abc")
    assert explains(STAMP + "event=request_failed job=1 nodes=n-[0-1] group=g")
    assert not explains(STAMP + "event=requested nodes=n-0 group=g request=j2-abc")
    assert not explains(STAMP + "event=left_alone nodes=n-[0-1]")
    assert not explains(STAMP.replace("01:46:41", "02:46:41") + "event=requested request=j1-abc")
    assert not explains("")
    assert explains("", status=503, fault="503"), "it did nothing"
    assert not explains("", status=0, fault="lost_reply"), "it acted"


def test_an_action_of_every_round_is_a_circle():
    text = "".join(f"2001-09-09T01:46:{second:02}Z event=action rule=r what=w nodes=n-{node} why=y\n"
                   for second in range(10) for node in ([0, 1] if second % 4 == 0 else [0]))
    (times, line), = logs.circles(logs.parse_lines(text))
    assert times == 10 and "nodes=n-0" in line


def test_a_job_that_did_not_complete_has_to_say_why():
    def problem(state, is_cancelled=False, lost_nodes=(), **record):
        return outcome({"JobState": state, "Requeue": "1", "BatchFlag": "1", **record},
                       is_cancelled=is_cancelled, lost_nodes=lost_nodes)[1]
    assert not problem("COMPLETED")
    assert not problem("CANCELLED", is_cancelled=True)
    assert problem("CANCELLED")
    assert problem("PENDING", Reason="Resources", AdminComment="flex: waiting")
    assert not problem("PENDING", Reason="JobHeldAdmin", AdminComment="flex: no template")
    assert problem("PENDING", Reason="JobHeldAdmin")
    assert problem("NODE_FAIL", lost_nodes=["n-0"]), "it could have been requeued"
    assert not problem("NODE_FAIL", lost_nodes=["n-0"], Requeue="0")
    assert problem("NODE_FAIL", Requeue="0")
    assert problem("NODE_FAIL", Requeue="0", AdminComment="flex: VMs end 12:00")
    assert not problem("NODE_FAIL", Requeue="0", AdminComment="flex: lost n-0: its VM is gone")
    assert problem("TIMEOUT", AdminComment="flex: VMs end 12:00")
