# SPDX-License-Identifier: GPL-2.0-or-later
"""flexctl explain on a real slurmctld: each story is compared with the emulator's journal.

Leases run FACTOR times as fast. Zone a has room for everything, c never has any.
"""
import json

import pytest

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_desk import INSERT, LATE
from sweeper_site import Moment

FACTOR = 40
A, C = ({"zones": [f"{REGION}-{letter}"]} for letter in "ac")
LONG = {"run_duration_margin": "3d"}
ONCE_MORE = 'test -n "$SLURM_RESTART_COUNT" && exit 0; sleep 900'
NODESETS = [
    Nodeset("twice", 1, {**C, "retry": {"base": "1s", "max": "1s", "limit": 0}}),
    Nodeset("wait", 2, {**C, "provision_timeout": "2h"}),
    # A lease of 105 s.
    Nodeset("lease", 1, {**A, "run_duration_margin": "60m"}, {"SuspendTime": "INFINITE"}),
    Nodeset("orphan", 1, {**A, **LONG}),
    Nodeset("bulk", 3, {**A, **LONG, "mode": "bulk_insert"}),
]
FLEX = {"sweeper": {"interval": "1s", "orphan_grace": "30s", "finished_request_grace": "1h", "empty_mig_grace": "1h",
                    "listen": "127.0.0.1:0"}}


class Stories:
    """A cluster with a sweeper, and flexctl."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", time_factor=FACTOR,
                                 capacity={f"{REGION}-c": 0})
        self.cluster = Cluster(NODESETS, build=build, emulator=self.emulator, flex_extra=FLEX, name="story",
                               sweeper=True)
        self.source = build / "ctl" / "flexctl"
        self.job = {}

    def flexctl(self, *arguments):
        program = self.cluster.sandbox.install(self.source)
        return self.cluster.sandbox.run([program, *map(str, arguments)], env=self.cluster.env(), check=False)

    def explain(self, subject):
        """The story; what cannot be told is a failure."""
        done = self.flexctl("explain", subject, "--json", "--all")
        assert done.returncode == 0, done.stdout + done.stderr
        print(self.flexctl("explain", subject).stdout)  # for whoever reads a failed test's output
        return json.loads(done.stdout)

    def wait(self, condition, seconds, what):
        return self.cluster.wait_for(lambda: condition(Moment(self.cluster)), seconds, what, interval=0.5)

    def wait_told(self, subject, *whats, seconds=60):
        """The story, once all of this is in it: the sweeper writes a round later."""
        def told():
            story = self.explain(subject)
            return story if set(whats) <= {event["what"] for event in story["events"]} else None
        return self.cluster.wait_for(told, seconds, f"{whats} in the story of {subject}", interval=1)

    def inserts(self, node):
        """The requests that Google took for the node, as the journal has them, oldest first."""
        return [call["body"] for call in self.emulator.calls("resizeRequests.insert")
                if call["status"] == 200 and node in [entry["name"] for entry in call["body"]["instances"]]]

    def check_requests(self, story, node):
        """Names, nodes, run durations and order are those of the journal."""
        made = self.inserts(node)
        told = events(story, "requested")
        assert [event["request"] for event in told] == [body["name"] for body in made]
        for event, body in zip(told, made):
            assert self.cluster.expand(event["nodes"]) == [entry["name"] for entry in body["instances"]]
            assert event["more"]["run_s"] == str(body["requestedRunDuration"]["seconds"])
            assert body["name"] in event["text"]
        return [body["name"] for body in made]

    def save_logs(self, target):
        self.cluster.save_logs(target)
        for path in self.cluster.sweeper_dir.glob("history.jsonl*"):
            (target / path.name).write_bytes(path.read_bytes())


def events(story, what, **members):
    return [event for event in story["events"] if event["what"] == what
            and all(event.get(key) == value for key, value in members.items())]


def order(story, *whats):
    """What happened, of these kinds: [('requested', 'j1-x'), …]."""
    return [(event["what"], event.get("request", "")) for event in story["events"] if event["what"] in whats]


@pytest.fixture(scope="module")
def stories(build):
    stories = Stories(build)
    with stories.cluster as cluster:
        # The first two requests fail: they must be this job's.
        stories.emulator.fault(INSERT, "request_failed", count=2, **LATE)
        stories.job["twice"] = cluster.sbatch("-p", "twice", "-N1", "--time=10")
        stories.wait(lambda now: len(stories.inserts("twice-0")) >= 3, 90, "a third request")
        stories.job["wait"] = cluster.sbatch("-p", "wait", "-N2", "--time=4:00:00")
        stories.job["lease"] = cluster.sbatch("-p", "lease", "-N1", "--time=10", script=ONCE_MORE)
        for count in (1, 2):
            stories.job[f"bulk {count}"] = cluster.sbatch("-p", "bulk", f"-N{count}", "--time=10")
        yield stories


def test_a_job_that_waits(stories):
    job = stories.job["wait"]
    stories.wait(lambda now: now.queued("wait-0"), 60, "a queued request")
    story = stories.wait_told(job, "requested", "queued", "attempt")
    name, = stories.check_requests(story, "wait-0")
    assert order(story, "asked", "requested", "queued", "attempt")[:4] == [
        ("asked", ""), ("requested", name), ("queued", name), ("attempt", name)]
    requested, = events(story, "requested")
    assert requested["who"] == "flex-resume" and requested["job"] == job
    assert requested["more"]["how"] == "TimeLimit 04:00:00 + run_duration_margin 00:15:00"
    assert requested["more"]["run_s"] == str(4 * 3600 + 900)
    request = Moment(stories.cluster).active("wait-0")
    error = request.body["last_attempt"]["errors"][0]
    attempt = events(story, "attempt")[0]
    assert attempt["more"]["code"] == error["code"] and attempt["more"]["message"] in error["message"]
    assert f"Request {name} waits in Google's queue since" in story["now"]
    assert "gives up at" in story["now"] and "Google estimates" in story["now"]
    assert not story["notes"], story["notes"]
    seen = [event["text"] for event in story["events"] if event["what"] == "seen"]
    assert any("is submitted" in text and "TimeLimit 04:00:00" in text for text in seen), seen
    assert any("gives job" in text and "wait-[0-1]" in text for text in seen), seen
    # The same from the other two sides.
    assert name in stories.explain("wait-1")["now"]
    assert order(stories.explain(name), "requested", "queued")[:2] == [("requested", name), ("queued", name)]


def test_a_job_whose_request_failed_twice(stories):
    job = stories.job["twice"]
    stories.wait(lambda now: now.queued("twice-0"), 60, "the third request to be queued")
    def is_whole():
        story = stories.explain(job)
        return story if len(events(story, "failed")) == 2 and events(story, "queued") else None
    story = stories.cluster.wait_for(is_whole, 60, "the whole story", interval=1)
    names = stories.check_requests(story, "twice-0")
    assert len(names) == 3
    first, second, third = names
    told = [entry for entry in order(story, "requested", "failed", "queued")
            if entry[0] != "queued" or entry[1] == third]
    assert told == [("requested", first), ("failed", first), ("requested", second), ("failed", second),
                    ("requested", third), ("queued", third)]
    for event in events(story, "failed"):
        assert event["more"]["code"] == LATE["code"] and event["more"]["message"] == LATE["message"]
    assert [event["who"] for event in events(story, "requested")] == ["flex-resume", "flex-sweeper", "flex-sweeper"]
    again = events(story, "requested")[1:]
    assert all(event["rule"] == "failed_request" and LATE["message"] in event["why"] for event in again), again
    assert [event["more"]["attempt"] for event in again] == ["2", "3"]
    assert f"Request {third} waits in Google's queue" in story["now"]
    failed = stories.explain(first)
    assert order(failed, "requested", "failed") == [("requested", first), ("failed", first)]
    assert "Google has given up on it" in failed["now"] or "it had failed at" in failed["now"], failed["now"]


def test_an_orphan(stories):
    """flex-suspend dies: the VM of the job that is over stays, until the sweeper finds it."""
    cluster = stories.cluster
    wrapper = (cluster.dir / "bin" / "flex-suspend").read_text(encoding="utf-8")
    cluster.sandbox.write("bin/flex-suspend", "#!/bin/sh\nkill -KILL $$\n", 0o755)
    job = cluster.sbatch("-p", "orphan", "-N1", "--time=10")
    stories.wait(lambda now: now.state(job) == "COMPLETED", 120, "the job to run")
    stories.wait(lambda now: "POWERED_DOWN" in now.words("orphan-0") and "POWERING_DOWN" not in now.words("orphan-0"),
                 60, "its node to be powered down")
    vm = Moment(cluster).vms["orphan-0"]
    def is_seen():
        now = stories.explain("orphan-0")["now"]
        return now if "Nobody wants it since" in now else None
    now = cluster.wait_for(is_seen, 25, "the sweeper to see it", interval=0.5)
    cluster.sandbox.write("bin/flex-suspend", wrapper, 0o755)
    name, = [body["name"] for body in stories.inserts("orphan-0")]
    assert f"It came from request {name}, for job {job}." in now
    assert vm["zone"] in now and "the sweeper deletes it at" in now and "runs, but nobody wants it" in now
    stories.wait(lambda now: "orphan-0" not in now.vms, 90, "it to be deleted")
    story = stories.wait_told("orphan-0", "delete_instances", "vm_gone")
    stories.check_requests(story, "orphan-0")
    deletion, = events(story, "delete_instances")
    assert deletion["who"] == "flex-sweeper" and deletion["rule"] == "orphan_instance"
    assert deletion["why"] == "its node is powered down" and deletion["more"]["result"] == "ok"
    calls = [call for call in stories.emulator.calls("instanceGroupManagers.deleteInstances")
             if "orphan-0" in json.dumps(call["body"])]
    assert len(calls) == 1 and calls[0]["status"] == 200
    gone, = events(story, "vm_gone")
    assert gone["more"]["ended"] == "deleted" and gone["request"] == name
    assert [what for what, _ in order(story, "requested", "vm_up", "registered", "job_started", "job_ended",
                                      "delete_instances", "vm_gone")] == [
        "requested", "vm_up", "registered", "job_started", "job_ended", "delete_instances", "vm_gone"]


def test_a_node_lost_at_its_lease_end(stories):
    cluster, job = stories.cluster, stories.job["lease"]
    stories.wait(lambda now: job in now.jobs and now.restarts(job) == 1, 240, "the job to be requeued")
    story = stories.wait_told("lease-0", "vm_up", "vm_gone", "job_ended")
    names = stories.check_requests(story, "lease-0")
    gone = events(story, "vm_gone")[0]
    assert gone["more"]["ended"] == "lease_end" and gone["request"] == names[0] and gone["nodes"] == "lease-0"
    assert gone["more"]["ends"] == events(story, "vm_up")[0]["more"]["ends"] <= gone["time"]
    # Nobody deleted it: Google ended it.
    until = story["events"].index(gone)
    assert not [event for event in story["events"][:until] if event["what"] == "delete_instances"]
    down = events(story, "DOWN")[0]
    assert down["rule"] == "unbacked_node" and down["why"] == "its VM's run duration is over"
    ended = events(story, "job_ended")[0]
    assert ended["more"]["state"] == "REQUEUED" and ended["job"] == job
    first_life = [what for what, _ in order(story, "requested", "vm_up", "registered", "job_started", "vm_gone", "DOWN",
                                            "job_ended")][:7]
    assert first_life == ["requested", "vm_up", "registered", "job_started", "vm_gone", "DOWN", "job_ended"]
    its = stories.explain(job)
    assert [event["more"]["ended"] for event in events(its, "vm_gone")][:1] == ["lease_end"]
    stories.wait(lambda now: now.state(job) == "COMPLETED", 120, "the job to run again")
    again = stories.wait_told(job, "job_started", "job_ended")
    assert stories.check_requests(again, "lease-0") == [body["name"] for body in stories.inserts("lease-0")]


def test_vms_without_a_group_are_their_jobs(stories):
    """In the history, and so in the story of each job. They come together, and are told apart."""
    for count in (1, 2):
        job = stories.job[f"bulk {count}"]
        stories.wait(lambda now: now.state(job) == "COMPLETED", 90, "the job to end")  # pylint: disable=cell-var-from-loop
        story = stories.wait_told(job, "vm_up", "registered", "vm_gone", seconds=90)
        for what in ("vm_up", "registered", "vm_gone"):
            told = events(story, what)
            assert {event.get("job") for event in told} == {job}, told
            assert sum(len(stories.cluster.expand(event["nodes"])) for event in told) == count, told


def test_a_restart_of_the_sweeper_repeats_nothing(stories):
    def told():
        story = stories.explain(stories.job["twice"])
        return order(story, "queued", "failed", "requested", "vm_up", "job_started")
    before = told()
    stories.cluster.restart_sweeper()
    stories.wait(lambda now: stories.cluster.sweeper_status().get("round", 0) >= 3, 60, "three rounds")
    assert told() == before


def test_what_nobody_knows_is_said(stories):
    for subject in ("999999", "no-such-node", "j1-0123456789", "12_7"):
        done = stories.flexctl("explain", subject)
        assert done.returncode == 1 and done.stderr.startswith("flexctl: ") and not done.stdout, done
    assert stories.flexctl("explain").returncode == 2


def test_without_slurmctld_or_google_the_history_tells(stories):
    cluster, job = stories.cluster, stories.job["wait"]
    stories.emulator.fault("*", "503", count=10**9)
    try:
        story = stories.explain(job)
        assert events(story, "queued") and any("Compute Engine" in note for note in story["notes"]), story["notes"]
    finally:
        stories.emulator.clear_faults()
    cluster.stop_slurmctld()
    try:
        done = stories.flexctl("explain", job, "--json")
        assert done.returncode == 0, done.stderr
        story = json.loads(done.stdout)
        assert events(story, "queued") and any("slurmctld" in note or "Slurm" in note for note in story["notes"])
    finally:
        cluster.start_slurmctld()
