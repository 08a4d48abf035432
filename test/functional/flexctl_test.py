#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives flexctl from outside: what it prints, writes and refuses, and its exit codes.

Usage: flexctl_test.py FLEXCTL SOURCE_ROOT
"""
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import plain_tests

PROGRAM = str(Path(sys.argv[1]).resolve())
SAMPLES = Path(sys.argv[2]).resolve() / "test/data/import"
FORMATS = {"slurm_gcp": "slurm-gcp", "vertex": "vertex"}


def flexctl(*words, directory=None, text=None):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=directory, input=text, capture_output=True, text=True)


def in_scratch(test):
    def run():
        with tempfile.TemporaryDirectory() as directory:
            test(Path(directory))
    run.__name__ = test.__name__
    return run


def samples():
    for directory, name in FORMATS.items():
        for expect in sorted((SAMPLES / directory).glob("*.expect")):
            source = next(path for path in expect.parent.glob(expect.stem + ".*") if path != expect)
            yield name, source, expect.read_text(encoding="utf-8")


def each_sample_becomes_its_file_with_a_report():
    assert len(list(samples())) >= 6
    for name, source, expected in samples():
        done = flexctl("import", name, source.name, directory=source.parent)
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected, done.stdout
        lines = done.stderr.splitlines()
        assert all(line.startswith(source.name + ":") for line in lines), done.stderr
        assert "mapped" in lines[-1] and "assumed" in lines[-1], lines[-1]


def its_own_output_is_refused():
    """flex-start.yaml is neither a blueprint nor a nodeset."""
    done = flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/nodeset.expect")
    assert done.returncode == 2 and done.stdout == "", done.stderr


@in_scratch
def it_writes_a_file_that_the_owner_alone_can_change_and_never_over_another(scratch):
    out = scratch / "flex-start.yaml"
    words = ("import", "vertex", SAMPLES / "vertex/pool.yaml", "--output", out)
    done = flexctl(*words)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    assert "nodesets:" in out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o644, oct(out.stat().st_mode)
    out.write_text("mine")
    done = flexctl(*words)
    assert done.returncode == 2 and "--force" in done.stderr, done.stderr
    assert out.read_text() == "mine"
    assert flexctl(*words, "--force").returncode == 0
    assert "nodesets:" in out.read_text()


@in_scratch
def a_file_that_cannot_be_written_fails(scratch):
    done = flexctl("import", "vertex", SAMPLES / "vertex/pool.yaml", "--output", scratch / "no/such/dir")
    assert done.returncode == 1 and "cannot be written" in done.stderr, done.stderr


@in_scratch
def a_file_that_is_not_there_or_not_one_is_bad_usage(scratch):
    assert flexctl("import", "vertex", scratch / "none.json").returncode == 2
    done = flexctl("import", "vertex", scratch)
    assert done.returncode == 2 and "directory" in done.stderr.lower(), done.stderr


def standard_input_is_a_file_too():
    text = (SAMPLES / "slurm_gcp/config.yaml").read_text(encoding="utf-8")
    done = flexctl("import", "slurm-gcp", "/dev/stdin", text=text)
    assert done.returncode == 0 and "fluid-mega-[0-7]" in done.stdout, done.stderr


def the_report_can_be_json():
    done = flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/blueprint.yaml", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stderr)
    fates = {entry["fate"] for entry in report["report"]}
    assert fates == {"mapped", "assumed", "no equivalent", "left out"}, fates
    assert report["problems"] == []
    placed = [entry for entry in report["report"] if entry["from"].endswith("max_run_duration")]
    assert placed[0]["place"]["line"] == 32, placed


def a_reservation_is_refused_with_its_place():
    text = "nodeset_name: a\nzone: us-east4-a\ndws_flex: {enabled: true}\nreservation_name: pledge\n"
    done = flexctl("import", "slurm-gcp", "/dev/stdin", text=text)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert "/dev/stdin:4:19: reservation_name: nodeset 'a' uses a reservation" in done.stderr, done.stderr
    done = flexctl("import", "slurm-gcp", "/dev/stdin", "--json", text=text)
    assert done.returncode == 2
    assert json.loads(done.stderr)["problems"][0]["place"] == {"line": 4, "column": 19}


def nodesets_and_the_cluster_can_be_chosen():
    done = flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/config.yaml", "--nodeset", "hfour", "--cluster", "wave")
    assert done.returncode == 0, done.stderr
    assert "wave-hfour-0" in done.stdout and "mega" not in done.stdout, done.stdout
    assert flexctl("import", "slurm-gcp", SAMPLES / "slurm_gcp/config.yaml", "--cluster", "A B").returncode == 2


@in_scratch
def a_log_is_kept_where_it_is_asked_for(scratch):
    log = scratch / "log"
    done = flexctl("import", "vertex", SAMPLES / "vertex/pool.yaml", "--log-file", log)
    assert done.returncode == 0 and "event=imported" in log.read_text(), done.stderr


def bad_usage_is_2_and_help_and_version_are_0():
    for words in ((), ("frobnicate",), ("import",), ("import", "kueue", "x"), ("import", "vertex"),
                  ("import", "vertex", "a", "b"), ("--log-level", "loud", "import", "vertex", os.devnull)):
        assert flexctl(*words).returncode == 2, words
    assert flexctl("--help").returncode == 0 and "import" in flexctl("--help").stdout
    assert flexctl("import", "vertex", "--help").returncode == 0
    assert flexctl("--version").stdout.startswith("flexctl ")


TESTS = [
    each_sample_becomes_its_file_with_a_report,
    its_own_output_is_refused,
    it_writes_a_file_that_the_owner_alone_can_change_and_never_over_another,
    a_file_that_cannot_be_written_fails,
    a_file_that_is_not_there_or_not_one_is_bad_usage,
    standard_input_is_a_file_too,
    the_report_can_be_json,
    a_reservation_is_refused_with_its_place,
    nodesets_and_the_cluster_can_be_chosen,
    a_log_is_kept_where_it_is_asked_for,
    bad_usage_is_2_and_help_and_version_are_0,
]


if __name__ == "__main__":
    sys.exit(plain_tests.run(TESTS))
