# SPDX-License-Identifier: GPL-2.0-or-later
"""What a job's author reads in AdminComment, word by word, from the first wait to the end: one scene each.

Zone a has room for everything, c never has any; f is given room by its scene. No plugin: wishes are by hand.
"""
import calendar
import re
import time

from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_site import Stage, pause, until

NAME = "words"
NOTE_INTERVAL = 10  # seconds
RESTLESS = 25       # seconds in which the estimate does not stand still
INSERT = "regionInstanceGroupManagerResizeRequests.insert"
LATE = {"code": "LIMIT_EXCEEDED",
        "message": "Resize request could not provision queued instances in the allocated time."}
A, C, F = ({"zones": [f"{REGION}-{letter}"]} for letter in "acf")
NODESETS = [
    Nodeset("life", 2, {**F, "run_duration_margin": "1h"}),
    Nodeset("one", 1, C),
    Nodeset("other", 1, C),
    Nodeset("behind", 2, C),
    Nodeset("gpu", 2, {**A, "instance_template": "gpu-template"}),
    Nodeset("again", 1, {**C, "retry": {"base": "8s", "max": "8s"}}),
    Nodeset("late", 5, C),
    Nodeset("site", 3, {**C, "provision_timeout": "8s"}),
    Nodeset("bad", 1, {**A, "instance_template": "missing-template"}),
    Nodeset("cap", 2, {**C, "dws_flex": {"max_run_duration": "1h"}}),
]
FLEX = {"sweeper": {"interval": "1s", "orphan_grace": "2s", "listen": "127.0.0.1:0", "empty_mig_grace": "1h",
                    "finished_request_grace": "1h", "note_interval": f"{NOTE_INTERVAL}s"},
        "defaults": {"zones": [f"{REGION}-a"], "boot_timeout": "1h"}}
TEMPLATES = [{"name": "flex-template"},
             {"name": "gpu-template", "machine_type": "a3-highgpu-8g", "accelerator_type": "nvidia-h100-80gb",
              "accelerator_count": 8}]
QUOTA = "PREEMPTIBLE_NVIDIA_H100_GPUS"


def make_stage(build):
    emulator = Emulator(build / "emulator" / "flex-gce-emulator", templates=TEMPLATES, quota={QUOTA: 8},
                        capacity={f"{REGION}-c": 0, f"{REGION}-f": 0})
    return Stage(Cluster(NODESETS, build=build, emulator=emulator, flex_extra=FLEX, name=NAME))


def raise_curtain(stage):
    """The sweeper first: where it finds nodes on their way it winds up their clocks, which also asks for them. Then
    one request that fails, before there are others; then all jobs."""
    stage.cluster.start_sweeper()
    stage.cluster.wait_for(lambda: stage.cluster.sweeper_status().get("round", 0) > 1, 60, "the sweeper's rounds")
    stage.emulator.fault(INSERT, "request_failed", **LATE)
    stage.submit("again", "-p", "again", "-N1", "--time=10")
    stage.cluster.wait_for(lambda: stage.emulator.faults()[0]["hits"] == 1, 60, "the request that fails")
    stage.start(SCENES)


# How times are written; the cluster's zone is UTC

def day_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M", time.gmtime(seconds))


def clock(seconds):
    """Without the date on the same day."""
    text = day_time(seconds)
    return text[11:] if text[:10] == day_time(time.time())[:10] else text


def seconds_of(text):
    """Of "2026-11-16T18:35:12Z", or as scontrol writes it."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def request_of(now, job):
    """The job's newest request, or None."""
    found = [request for request in now.requests if request.name.startswith(f"j{job}-")]
    return found[-1] if found else None


def waiting(now, job, vms, *, attempt=1, wait=None, more=""):
    """All words of a job that waits."""
    request = request_of(now, job)
    since = request.body["created"]
    text = f"flex: waiting for {vms} VM{'s' if vms > 1 else ''} in {REGION} since {clock(since)} (attempt {attempt})"
    if request.estimate:
        text += f", Google estimates {clock(seconds_of(request.estimate))}"
    if wait:
        text += f", gives up at {clock(since + wait)}"
    return text + more


def is_told(stage, job, words, seconds=60):
    """Until its comment is exactly this; `words` may be made of the moment."""
    def is_so(now):
        if job not in now.jobs or request_of(now, job) is None:
            return False
        return now.comment(job) == (words(now) if callable(words) else words)

    wanted = words if isinstance(words, str) else "as it waits"
    return until(is_so, seconds, f"job {job} to be told: {wanted}")


# Scenes

def life(stage):
    """It waits, its estimate moves and moves, its VMs come, its limit goes beyond their end, a VM is lost."""
    cluster, emulator = stage.cluster, stage.emulator
    job = stage.submit("life", "-p", "life", "-N2", "--time=10", "--comment=flex(wait=3h)", script="sleep 900")
    yield until(lambda now: request_of(now, job), 60, "its request")
    yield is_told(stage, job, lambda now: waiting(now, job, 2, wait=3 * 3600))
    began, stage.restless_from = time.monotonic(), time.time()
    while time.monotonic() - began < RESTLESS:
        emulator.config(eta_seconds=emulator.settings["eta_seconds"] + 120)
        yield pause(1)
    stage.restless_to = time.time()
    emulator.config(eta_seconds=emulator.settings["eta_seconds"] + 3600)
    yield is_told(stage, job, lambda now: waiting(now, job, 2, wait=3 * 3600))
    emulator.set_capacity(f=2)
    yield until(lambda now: "life-0" in now.vms, 60, "its VMs")
    ends = min(stage.now.vms[node]["ends"] for node in ("life-0", "life-1"))
    yield is_told(stage, job, f"flex: VMs end {day_time(ends)}")
    yield until(lambda now: now.state(job) == "RUNNING", 90, "the job to run")
    yield pause(2)
    assert stage.now.comment(job) == f"flex: VMs end {day_time(ends)}"
    cluster.scontrol("update", f"jobid={job}", "timelimit=300")
    yield until(lambda now: now.jobs[job]["TimeLimit"] == "05:00:00", 30, "its new limit")
    limit = day_time(seconds_of(stage.now.jobs[job]["EndTime"]))
    yield is_told(stage, job, f"flex: VMs end {day_time(ends)}, before the job's time limit {limit}: "
                              "it will be requeued then; checkpoint before")
    emulator.kill_instance("life-1")
    yield is_told(stage, job, "flex: lost life-1: its VM is gone; back in the queue")
    cluster.scancel(job)


def one_vm(stage):
    """One VM is not several; without a limit nothing is given up."""
    job = stage.submit("one", "-p", "one", "-N1", "--time=10")
    yield until(lambda now: now.queued("one-0"), 60, "its request")
    yield is_told(stage, job, lambda now: waiting(now, job, 1))


def words_of_others(stage):
    """An admin's comment stays, before ours."""
    job = stage.submit("other", "-H", "-p", "other", "-N1", "--time=10")
    stage.cluster.scontrol("update", f"jobid={job}", "admincomment=ticket 12")
    stage.cluster.scontrol("release", str(job))
    yield until(lambda now: now.queued("other-0"), 60, "its request")
    yield is_told(stage, job, lambda now: "ticket 12 | " + waiting(now, job, 1))


def words_behind(stage):
    """What an admin puts behind ours stays there, whatever we have to tell later."""
    jobs = [stage.submit(f"behind {number}", "-p", "behind", "-w", f"behind-{number}", "-N1", "--time=10") for number in (0, 1)]
    for job in jobs:
        yield is_told(stage, job, lambda now: waiting(now, job, 1))  # pylint: disable=cell-var-from-loop
    for job, tail in zip(jobs, (" | ticket 13", " | ticket 14 | ann")):
        stage.cluster.scontrol("update", f"jobid={job}", f"admincomment={stage.now.comment(job)}{tail}")
        # From now on there is more to tell.
        stage.cluster.scontrol("update", f"jobid={job}", "comment=flex(wait=3h)")
        # pylint: disable=cell-var-from-loop
        yield is_told(stage, job, lambda now: waiting(now, job, 1, wait=3 * 3600) + tail)


def quota(stage):
    """Another reason than a lack of capacity is worth a word."""
    job = stage.submit("gpu", "-p", "gpu", "-N2", "--time=10")
    yield until(lambda now: now.queued("gpu-0"), 60, "its request")
    yield is_told(stage, job, lambda now: waiting(
        now, job, 2, more=f": quota {QUOTA} is used up (limit 8), ask for more or wait"))


def second_attempt(stage):
    """The first one fails, it is told when the next one is, and it waits again."""
    job = stage.job["again"]
    failed = (rf"flex: attempt 1 failed: {re.escape(LATE['message'])} \(LIMIT_EXCEEDED\); "
              r"the next one is at \d{4}-\d\d-\d\dT\d\d:\d\d")

    def asked():
        names = [call["body"]["name"] for call in stage.emulator.calls("resizeRequests.insert") if call["status"] == 200]
        return {name for name in names if name.startswith(f"j{job}-")}

    # The first one is in the queue for a moment, too, and may be told as such.
    yield until(lambda now: len(asked()) == 2 and now.queued("again-0"), 60, "the second attempt")
    # It was there for seconds only, between two looks perhaps.
    told = stage.cluster.admin_comments(job)
    assert len([text for _, text in told if re.fullmatch(failed, text)]) == 1, told
    yield is_told(stage, job, lambda now: waiting(now, job, 1, attempt=2))


def capped(stage):
    """TimeLimit and margin are more than VMs live here."""
    job = stage.submit("cap", "-p", "cap", "-N1", "--time=2:00:00")
    wish = stage.submit("cap wish", "-p", "cap", "-N1", "--time=10", "--comment=flex(run=2h)")
    words = "flex: time limit 02:00:00 capped: VMs live at most 01:00:00 from their start, save your work before that"
    asked = "asked for VMs that live 02:00:00, but here they live 01:00:00 from their start"
    yield is_told(stage, job, lambda now: waiting(now, job, 1, more="; " + words.removeprefix("flex: ")))
    yield is_told(stage, wish, lambda now: waiting(now, wish, 1, more="; " + asked))


def ignored(stage):
    """What was not understood."""
    job = stage.submit("ignored", "-p", "late", "-N1", "--time=10", "--comment=flex(run=8d,wait=3h,what=1)")
    told = ("; ignored: run=8d: too long, VMs live from 10m to 7d; "
            "what: not known; write flex(run=4h,wait=30m,ontimeout=hold)")
    yield is_told(stage, job, lambda now: waiting(now, job, 1, wait=3 * 3600, more=told))


def refused(stage):
    """No VMs can be had as it stands: held, and told what to do."""
    job = stage.submit("bad", "-p", "bad", "-N1", "--time=10")
    yield until(lambda now: now.comment(job) and now.state(job) == "PENDING", 60, "the job to be held")
    words = (r"flex: no VMs: .*missing-template.*\. Held so that it does not loop; "
             r"ask your admin, then 'scontrol release' it")
    assert re.fullmatch(words, stage.now.comment(job)), stage.now.comment(job)
    assert stage.now.is_held(job)


def texts(stage, job, beginning):
    """All that it was told and that begins so: a job that is given back waits again soon, and is told so."""
    return [text for _, text in stage.cluster.admin_comments(job) if text.startswith(beginning)]


def given_back(name, nodeset, options, words, state=""):
    """`state`: in which it ends; without one it is back in the queue."""
    def scene(stage):
        job = stage.submit(name, "-p", nodeset, "-N1", "--time=10", *options)
        told = yield until(lambda now: texts(stage, job, "flex: no VMs"), 60, "the job to be told why")
        assert set(told) == {f"flex: no VMs within {words}"}
        yield until(lambda now: now.state(job) == state if state else now.restarts(job) > 0, 60, "the job to be given back")
        stage.cluster.scancel(job)
    return scene


OWN = "the job's max-wait 00:00:08"
SCENES = {
    "life": life,
    "one VM": one_vm,
    "words of others": words_of_others,
    "words behind ours": words_behind,
    "quota": quota,
    "second attempt": second_attempt,
    "capped": capped,
    "ignored": ignored,
    "refused": refused,
    "requeued": given_back("r", "late", ["--comment=flex(wait=0:08)"], f"{OWN}; back in the queue"),
    "held": given_back("h", "late", ["--comment=flex(wait=0:08,ontimeout=hold)"],
                       f"{OWN}; held, 'scontrol release' it to try again"),
    "cancelled": given_back("c", "late", ["--comment=flex(wait=0:08,ontimeout=cancel)"],
                            f"{OWN}; cancelled, submit it again to try again", "CANCELLED"),
    "not to be requeued": given_back("n", "late", ["--no-requeue", "--comment=flex(wait=0:08)"],
                                     f"{OWN}; ended, it may not be requeued; submit it again to try again",
                                     "NODE_FAIL"),
    "the site's limit": given_back("s", "site", [], "provision_timeout 00:00:08; back in the queue"),
    "the site's limit, held": given_back("sh", "site", ["--comment=flex(wait=3h,ontimeout=hold)"],
                                         "provision_timeout 00:00:08; held, 'scontrol release' it to try again"),
}
