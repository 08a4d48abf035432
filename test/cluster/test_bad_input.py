# SPDX-License-Identifier: GPL-2.0-or-later
"""Every bad file through the programs: a clear message, the right exit code, nothing asked for."""
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[1] / "data"
BAD_CONFIGS = sorted((DATA / "config" / "bad").glob("*.yaml"))
BAD_FILES = sorted((DATA / "resume" / "bad").glob("*.json"))


def expected(path):
    """The `# expect: line:col: text` lines at the top of a bad config."""
    text = path.read_bytes().decode("utf-8", "replace")
    # An expectation that ends in "…" is the beginning of the message: the rest is the YAML library's.
    return [line.partition("expect: ")[2].rstrip("… ") for line in text.splitlines() if line.startswith("# expect: ")]


def test_there_are_enough_bad_files():
    assert len(BAD_CONFIGS) >= 20
    assert len(BAD_FILES) >= 20


@pytest.mark.parametrize("program", ["flex-resume", "flex-suspend", "flex-resume-fail"])
def test_all_bad_configs_end_with_2_and_say_where(site, program):
    sandbox = site.cluster.sandbox
    for path in BAD_CONFIGS if program == "flex-resume" else BAD_CONFIGS[:3]:
        copy = sandbox.write("run/bad.yaml", path.read_bytes(), 0o600)
        done = sandbox.run([site.cluster.program(program), "--config", copy, "--log-file",
                            sandbox.dir / "log" / "bad-config.log", "alien-0"],
                           env={"SLURM_CONF": str(site.cluster.conf)}, check=False, cwd="/")
        assert done.returncode == 2, f"{path.name}: exit {done.returncode}\n{done.stderr}"
        lines = done.stderr.splitlines()
        for wanted in expected(path):
            assert any(wanted in line for line in lines), f"{path.name}: no '{wanted}' in\n{done.stderr}"
        assert all(line.startswith(str(copy)) for line in lines), f"{path.name}:\n{done.stderr}"


def test_all_bad_resume_files_end_with_1_and_are_explained(site):
    cluster = site.cluster
    log = cluster.dir / "log" / "bad-file.log"
    for path in BAD_FILES:
        log.unlink(missing_ok=True)
        copy = cluster.sandbox.write("run/bad.json", path.read_bytes())
        done = cluster.sandbox.run(
            [cluster.program("flex-resume"), "--log-file", log, "alien-0"], check=False, cwd="/",
            env={"SLURM_CONF": str(cluster.conf), "SLURM_RESUME_FILE": str(copy)})
        assert done.returncode == 1, f"{path.name}: exit {done.returncode}\n{done.stderr}"
        text = log.read_text(encoding="utf-8")
        assert "event=bad_resume_file" in text, f"{path.name}: {text}"
        assert "event=resumed" in text, f"{path.name}: it did not go on\n{text}"


def test_a_bad_resume_file_does_not_lose_the_nodes(site):
    """slurmctld knows the job on the node: it is served all the same, by its own time limit."""
    cluster = site.cluster
    job = cluster.sbatch("-p", "spare", "-N1", "--time=30")
    nodes = cluster.wait_for(lambda: cluster.job_nodes(job), 20, f"job {job} to get a node")
    first = cluster.wait_for(lambda: site.emulator.requests_of(job), 20, f"the request of job {job}")
    copy = cluster.sandbox.write("run/bad.json", "{")
    done = cluster.sandbox.run(
        [cluster.program("flex-resume"), "--log-file", cluster.dir / "log" / "bad-file.log", *nodes],
        check=False, cwd="/", env={"SLURM_CONF": str(cluster.conf), "SLURM_RESUME_FILE": str(copy)})
    assert done.returncode == 1
    assert [request.seconds for request in site.emulator.requests_of(job)] == [1800 + 900]
    cluster.scancel(job)
    cluster.give_back(*nodes)
    cluster.wait_for(lambda: not site.emulator.requests_of(job)[-1].is_active, 30, "the request to be cancelled")
    assert first[0].name == site.emulator.requests_of(job)[0].name
