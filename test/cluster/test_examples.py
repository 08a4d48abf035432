# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples on a real slurmctld: job_submit.lua refuses bad words, and the job scripts outlive a warning."""
import re
import signal
import time
from pathlib import Path

import pytest

from harness.conf import Nodeset
from harness.sandbox import PATH
from harness.slurm import Cluster, find_program

HERE = Path(__file__).resolve().parent
ETC = HERE.parent.parent / "etc"
STAY = {"SuspendTime": "3600"}
NODESETS = [Nodeset("a3u", 7, partition=STAY), Nodeset("h4d", 1, partition=STAY)]
# Jobs are looked at long after their end.
SLURM = ["JobSubmitPlugins=lua", "MinJobAge=3600"]
PIECES = {f"{task}-{piece}" for task in (0, 1) for piece in (1, 2, 3)}


def without_plugin(script):
    """As the script itself says: without the --flex lines, with the comment."""
    lines = script.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(re.sub("^##SBATCH", "#SBATCH", line) for line in lines if not line.startswith("#SBATCH --flex-"))


@pytest.fixture(scope="module")
def cluster(build):
    stand_in = HERE / "harness" / "stand_in.py"
    programs = {"ResumeProgram": (stand_in, "resume"), "SuspendProgram": (stand_in, "suspend")}
    cluster = Cluster(NODESETS, build=build, programs=programs, slurm_extra=SLURM, cred_expire=5)
    box = cluster.sandbox
    box.write("etc/job_submit.lua", (ETC / "job_submit.lua.example").read_text(encoding="utf-8"))
    box.write("out/train.py", (ETC / "examples" / "train.py").read_text(encoding="utf-8"))
    for script in (ETC / "examples").glob("*.sh"):
        box.write(f"out/{script.name}", without_plugin(script))
    box.install(build / "timeleft" / "flex-timeleft")
    cluster.tool = box.install(build / "test" / "cluster" / "scheduler-tool")
    with cluster:
        cluster.scontrol("update", "nodename=a3u-[0-6],h4d-0", "state=power_up")
        nodes = [node for nodeset in NODESETS for node in nodeset.nodes]
        cluster.wait_for(lambda: all(cluster.node_state(node) == {"IDLE", "CLOUD"} for node in nodes), 90,
                         "the nodes to be up")
        yield cluster


def submit(cluster, *words, **variables):
    """sbatch, with flex-timeleft where the job finds it; the job's number."""
    env = cluster.env(PATH=f"{cluster.dir}/bin:{PATH}", **variables)
    text = cluster.sandbox.run([find_program("sbatch"), "--parsable", *words], env=env).stdout
    return int(text.strip().partition(";")[0])


def text_of(cluster, name):
    path = cluster.dir / "out" / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.fixture(scope="module")
def jobs(cluster):
    """The job scripts, all under way at once; two are warned as the sweeper does it before the VMs end."""
    soon = int(time.time()) + 300
    number = {
        "train": submit(cluster, "train.sh", "--steps=75", "--step-seconds=0.2"),
        "array": submit(cluster, "--array=0-1", "array.sh", "3", "5"),
        # Not with --export: since 26.05 slurmd then asks for the user's login environment, which it may only as root.
        "short": submit(cluster, "--nodes=1", "train.sh", "--steps=3", "--step-seconds=0.1",
                        SLURM_FLEX_END_TIME=str(soon)),
        "het": submit(cluster, "het.sh", "--steps=10", "--step-seconds=0.1"),
    }
    results = cluster.dir / "out" / f"array-{number['array']}"
    is_ready = {"train": lambda: "begins" in text_of(cluster, f"train-{number['train']}.out"),
                "array": lambda: len(list(results.glob("*-1.new"))) == 2}

    def warn_who_is_ready():
        for name in [name for name, check in is_ready.items() if check()]:
            cluster.sandbox.run([cluster.tool, "signal", number[name], int(signal.SIGURG)], env=cluster.env())
            del is_ready[name]
        return not is_ready

    cluster.wait_for(warn_who_is_ready, 120, "the jobs that are to be warned")
    return number


# First, so that the jobs run while this is tried.

@pytest.mark.parametrize("comment, sentence", [
    ("flex(run=8d)", "run=8d: too long, VMs live from 10m to 7d"),
    ("flex(run=0)", "run=0: too short, VMs live from 10m to 7d"),
    ("mine; flex(wait=-1)", "wait=-1: not a time; write minutes, 90m, 4h, 2d or D-HH:MM:SS, a job may wait from 1s to 7d"),
    ("flex(ontimeout=later)", "ontimeout=later: write requeue, hold or cancel"),
    ("flex(walk=1h)", "walk: not known; write flex(run=4h,wait=30m,ontimeout=hold)"),
    (f"flex(run={'9' * 10_000})", f"run={'9' * 40}...: too long,")],
    ids=lambda text: text[:24])
def test_a_bad_word_is_refused_with_a_sentence_and_nothing_is_submitted(cluster, jobs, comment, sentence):
    before = queue(cluster)
    commands = [("sbatch", "--comment", "--wrap=exit 0"), ("srun", "--comment", "true"), ("salloc", "--comment", "true")]
    if cluster.version >= (23, 2):
        commands.append(("sbatch", "--extra", "--wrap=exit 0"))
    for program, option, rest in commands:
        done = cluster.slurm(program, "--partition=h4d", f"{option}={comment}", rest, check=False)
        assert done.returncode != 0 and f"flex: {sentence}" in done.stderr, (program, option, done)
    assert queue(cluster) == before


def queue(cluster):
    return sorted(cluster.slurm("squeue", "-h", "-r", "-t", "all", "-o", "%A").stdout.split())


@pytest.mark.parametrize("options", [[], ["--comment=of Monday"], ["--comment=flex(run=4h,wait=30,ontimeout=cancel) of Monday"]])
def test_other_words_are_taken_as_they_are(cluster, jobs, options):
    job = cluster.sbatch("-H", "-p", "h4d", *options)
    assert cluster.job(job).get("Comment", "") == "".join(options).replace("--comment=", "")
    cluster.scontrol("update", f"jobid={job}", "comment=flex(run=2d)")
    refused = cluster.slurm("scontrol", "update", f"jobid={job}", "comment=flex(run=20d)", check=False)
    assert refused.returncode != 0
    assert "run=20d: too long, VMs live from 10m to 7d" in refused.stderr + cluster.log("slurmctld.log")
    cluster.scontrol("update", f"jobid={job}", "timelimit=5", "name=other")
    record = cluster.job(job)
    assert (record["Comment"], record["TimeLimit"], record["JobName"]) == ("flex(run=2d)", "00:05:00", "other")
    cluster.scancel(job)


def test_reading_a_job_is_no_trouble_for_slurmctld(cluster):
    """Not every Slurm knows every field of a job."""
    assert not re.search(r"error.*(lua|field)", cluster.log("slurmctld.log"))


# The job scripts

def test_a_training_saves_its_work_when_warned_and_goes_on_after_a_requeue(cluster, jobs):
    job = jobs["train"]
    assert cluster.job(job)["Comment"] == "flex(run=5h,wait=12h,ontimeout=hold)"
    cluster.wait_job(job, "COMPLETED")
    text = text_of(cluster, f"train-{job}.out")
    step = re.search(r"^saved step (\d+): got SIGURG$", text, re.M)[1]
    told = ["begins", f"saved step {step}: got SIGURG", f"goes on from step {step}", "saved step 75", "done after 75 steps"]
    places = [text.find(line) for line in told]
    assert -1 not in places and places == sorted(places), text
    assert int(step) < 75 and cluster.job(job)["Restarts"] == "1"


def test_a_training_saves_its_work_when_little_time_is_left(cluster, jobs):
    """The end that its environment tells stays the same here, so each of its lives has time for a step."""
    job = jobs["short"]
    cluster.wait_job(job, "COMPLETED")
    text = text_of(cluster, f"train-{job}.out")
    for line in ("saved step 1: the VMs end in less than 10m", "goes on from step 1",
                 "saved step 2: the VMs end in less than 10m", "goes on from step 2", "done after 3 steps"):
        assert line in text, text
    assert cluster.job(job)["Restarts"] == "2"


def test_of_an_array_the_warned_task_alone_goes_back_and_does_the_rest_later(cluster, jobs):
    first = jobs["array"]
    cluster.wait_for(lambda: {task["JobState"] for task in cluster.jobs(first)} == {"COMPLETED"}, 120, "both tasks")
    tasks = {int(task["JobId"]): task for task in cluster.jobs(first)}
    # The hard case: one of the tasks has the number of the array.
    assert {job: task["Restarts"] for job, task in tasks.items()} == {first: "1", next(job for job in tasks if job != first): "0"}
    again = tasks[first]["ArrayTaskId"]
    text = text_of(cluster, f"array-{first}_{again}.out")
    assert re.search(r"goes back into the queue before piece [23]\n", text) and "done: 3 pieces" in text, text
    other = text_of(cluster, f"array-{first}_{1 - int(again)}.out")
    assert "goes back" not in other and "done: 3 pieces" in other, other
    assert {path.name for path in (cluster.dir / "out" / f"array-{first}").iterdir()} == PIECES


def test_a_heterogeneous_job_runs_on_all_its_components(cluster, jobs):
    job = jobs["het"]
    cluster.wait_for(lambda: {part["JobState"] for part in cluster.jobs(job)} == {"COMPLETED"}, 120, "the het job")
    parts = cluster.jobs(job)
    assert [part["Comment"] for part in parts] == ["flex(run=10h,wait=6h,ontimeout=hold)"] * 2
    assert [part["Partition"] for part in parts] == ["h4d", "a3u"]
    text = text_of(cluster, f"het-{job}.out")
    assert "time left: unknown" in text and "prepares on h4d-0" in text and "done after 10 steps" in text, text
