#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The SPANK plugin in the real sbatch, salloc and srun, without a cluster: what they list and refuse, and what is in the module.

Usage: plugin_test.py PLUGIN SOURCE_ROOT
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PLUGIN = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
PAGE = SOURCE / "docs/man/spank_flex_start.8"
PROGRAMS = ("sbatch", "salloc", "srun")
OPTIONS = ("--flex-run-duration", "--flex-max-wait", "--flex-on-timeout")
BAD_VALUES = ("0", "-1", "8d", "abc", str(2**31), "x" * 10240)
ARGUMENTS = "not known; there are max_run=, max_wait=, cache_dir= and lease="
# Nobody listens on port 1: what is not refused ends there.
SLURM_CONF = """ClusterName=nowhere
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=1
AuthType=auth/munge
NodeName=n1 NodeAddr=127.0.0.1 CPUs=1
PartitionName=p Nodes=n1 Default=YES
"""


class Site:
    """A slurm.conf with a plugstack.conf beside it."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.conf = self.write("slurm.conf", SLURM_CONF)
        self.write("cgroup.conf", "")
        self.set_plugstack(f"required {PLUGIN}")

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def set_plugstack(self, text):
        self.write("plugstack.conf", text + "\n")

    def run(self, *command, **environment):
        env = {"PATH": os.environ["PATH"], "SLURM_CONF": str(self.conf), "COLUMNS": "200", **environment}
        return subprocess.run([str(word) for word in command], cwd=self.directory, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=300)

    def options(self, program):
        """Of the plugin, in the program's help."""
        done = self.run(program, "--help")
        assert done.returncode == 0, done.stderr
        return done, re.findall(r"^ +(--flex-[a-z-]+)=", done.stdout, re.M)


def on_site(test):
    def run():
        with tempfile.TemporaryDirectory() as directory:
            test(Site(directory))
    run.__name__ = test.__name__
    return run


def assert_refused(done, program, option, value):
    """One sentence of ours, that can be read, and an exit code."""
    assert done.returncode != 0 and done.stdout == "", (program, option, value[:20])
    ours = [line for line in done.stderr.splitlines() if "flex-start:" in line]
    assert len(ours) == 1, done.stderr
    assert ours[0].startswith(f"{program}: error: flex-start: {option}={value[:40]}"), ours[0]
    assert len(ours[0]) < 200, ours[0]
    assert re.search(r"from \d+[a-z] to \d+[a-z]|write requeue, hold or cancel", ours[0]), ours[0]


@on_site
def each_program_lists_the_options(site):
    for program in PROGRAMS:
        done, listed = site.options(program)
        assert listed == list(OPTIONS), (program, done.stdout[-2000:], done.stderr)
        assert done.stderr == "", done.stderr
    site.set_plugstack("")
    assert site.options("sbatch")[1] == []


@on_site
def each_program_refuses_bad_values(site):
    for program in PROGRAMS:
        command = ("--wrap", "true") if program == "sbatch" else ("true",)
        for option in OPTIONS:
            for value in BAD_VALUES:
                done = site.run(program, f"{option}={value}", *command)
                assert_refused(done, program, option, value)


@on_site
def bad_values_in_the_script_are_refused(site):
    for option in OPTIONS:
        for value in BAD_VALUES:
            script = site.write("job.sh", f"#!/bin/sh\n#SBATCH {option}={value}\ntrue\n")
            assert_refused(site.run("sbatch", script), "sbatch", option, value)


@on_site
def bad_values_in_the_environment_are_refused(site):
    for option in OPTIONS:
        variable = "SLURM_SPANK__SLURM_SPANK_OPTION_flex_start_" + option[2:].replace("-", "_")
        for program in PROGRAMS:
            command = ("--wrap", "true") if program == "sbatch" else ("true",)
            assert_refused(site.run(program, *command, **{variable: "8d"}), program, option, "8d")


@on_site
def an_optional_plugin_refuses_them_too(site):
    site.set_plugstack(f"optional {PLUGIN}")
    assert_refused(site.run("sbatch", "--flex-max-wait=8d", "--wrap", "true"), "sbatch", "--flex-max-wait", "8d")


@on_site
def arguments_set_the_limits(site):
    site.set_plugstack(f"required {PLUGIN} max_run=2d max_wait=12h cache_dir=/var/spool/%n lease=off")
    done, _ = site.options("srun")
    assert "(10m to 2d)" in done.stdout and "(up to 12h)" in done.stdout, done.stdout
    done = site.run("sbatch", "--flex-run-duration=3d", "--wrap", "true")
    assert "--flex-run-duration=3d: too long, VMs live from 10m to 2d" in done.stderr, done.stderr


@on_site
def wrong_arguments_are_told(site):
    for words, why in (("typo=1", f"typo: {ARGUMENTS}"), ("max_run=8d", "max_run=8d: too long, VMs live from 10m to 7d"),
                       ("lease=no", "lease: write on or off"), ("cache_dir=here", "cache_dir: not an absolute path"),
                       ("max_wait=1h max_wait=2h", "max_wait: given twice")):
        sentence = f"error: flex-start: plugstack.conf: {why}"
        site.set_plugstack(f"required {PLUGIN} {words}")
        for program in PROGRAMS:
            done = site.run(program, "--help")
            assert done.returncode != 0 and f"{program}: {sentence}" in done.stderr, done.stderr
        site.set_plugstack(f"optional {PLUGIN} {words}")
        done, listed = site.options("sbatch")
        assert listed == [] and sentence in done.stderr, done.stderr


@on_site
def the_example_works_as_it_is_and_with_all_arguments(site):
    example = (SOURCE / "etc/plugstack.conf.example").read_text(encoding="utf-8")
    lines = [line.lstrip("#") for line in example.splitlines() if re.match(r"#?(optional|required) ", line)]
    assert len(lines) == 2, lines
    for line in lines:
        site.set_plugstack(re.sub(r"\S+/spank_flex_start\.so", str(PLUGIN), line))
        done, listed = site.options("sbatch")
        assert listed == list(OPTIONS) and done.stderr == "", done.stderr


def the_manual_page_has_the_options_arguments_and_variables():
    text = PAGE.read_text(encoding="utf-8").replace("\\-", "-")
    # Headings of lists: ".TP", then ".BI --flex-max-wait= TIME".
    headings = re.findall(r"^\.TP\n\.BI ([a-z_-]+)= ", text, re.M)
    assert headings == [*OPTIONS, *re.findall(r"([a-z_]+)=", ARGUMENTS)], headings
    variables = set(re.findall(rb"SLURM_FLEX_[A-Z_]+", PLUGIN.read_bytes()))
    assert set(re.findall(r"^\.B (SLURM_FLEX_[A-Z_]+)", text, re.M)) == {name.decode() for name in variables}, variables


def symbols(*options):
    text = subprocess.run(["nm", "-D", *options, PLUGIN], check=True, capture_output=True, text=True).stdout
    return [line.split()[-2:] for line in text.splitlines()]


def only_symbols_of_spank_leave_the_module():
    names = {name for _, name in symbols("--defined-only")}
    constants = {"plugin_name", "plugin_type", "plugin_version", "spank_plugin_version"}
    assert names - constants == {"slurm_spank_init", "slurm_spank_init_post_opt", "slurm_spank_user_init",
                                 "slurm_spank_job_epilog"}, names
    assert constants <= names, names


def the_module_needs_only_libc_and_the_program():
    text = subprocess.run(["readelf", "-d", PLUGIN], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert needed and all(re.match(r"(libc|libm|ld-linux.*)\.so\.", name) for name in needed), needed
    foreign = {name for kind, name in symbols("--undefined-only") if kind == "U" and "@GLIBC" not in name}
    assert all(re.match(r"spank_|slurm_(info|error)$", name) for name in foreign), foreign


def valgrind(site, *command):
    """The errors, each as its kind and its frames (file, function) from the inside out."""
    report = site.directory / "valgrind.xml"
    done = site.run("valgrind", "--quiet", "--leak-check=full", "--keep-debuginfo=yes", "--num-callers=40", "--xml=yes",
                    f"--xml-file={report}", *command)
    errors = []
    for error in ElementTree.parse(report).iter("error"):
        frames = [(Path(frame.findtext("obj") or "?").name, frame.findtext("fn") or "?")
                  for frame in error.find("stack").iter("frame")]
        errors.append((error.findtext("kind"), frames))
    return done, errors


def is_ours(kind, frames):
    """A leak is whose code asked for the memory; of anything else no frame may be ours."""
    if kind.startswith("Leak_"):
        frames = [frame for frame in frames if not frame[0].startswith(("vgpreload", "libc.so"))][:1]
    return any(name == PLUGIN.name for name, _ in frames)


@on_site
def valgrind_finds_no_error_of_the_plugin(site):
    # The whole way of a submission, which then fails for want of a slurmctld; a refusal; the help.
    sbatch = shutil.which("sbatch")
    good = [f"{option}={value}" for option, value in zip(OPTIONS, ("4h", "30m", "hold"))]
    commands = ([sbatch, *good, "--comment=mine", "--wrap", "true"], [sbatch, "--flex-run-duration=8d", "--wrap", "true"],
                [sbatch, "--help"])
    reports = [valgrind(site, *command) for command in commands]
    done = reports[0][0]
    assert "flex-start" not in done.stderr and "Unable to contact slurm controller" in done.stderr, done.stderr
    site.set_plugstack("")
    _, without = valgrind(site, sbatch, "--help")
    assert without, "valgrind has nothing to say of sbatch: is it running?"
    invalid = {kind for kind, _ in without if not kind.startswith("Leak_")}
    for done, errors in reports:
        for kind, frames in errors:
            assert not is_ours(kind, frames), (kind, frames)
            assert kind.startswith("Leak_") or kind in invalid, (kind, frames)


TESTS = [
    each_program_lists_the_options,
    each_program_refuses_bad_values,
    bad_values_in_the_script_are_refused,
    bad_values_in_the_environment_are_refused,
    an_optional_plugin_refuses_them_too,
    arguments_set_the_limits,
    wrong_arguments_are_told,
    the_example_works_as_it_is_and_with_all_arguments,
    the_manual_page_has_the_options_arguments_and_variables,
    only_symbols_of_spank_leave_the_module,
    the_module_needs_only_libc_and_the_program,
    valgrind_finds_no_error_of_the_plugin,
]


def main():
    failed = 0
    for test in TESTS:
        try:
            test()
            print(f"ok   {test.__name__.replace('_', ' ')}", flush=True)
        except Exception:  # whatever it is, the others are still worth running
            failed += 1
            print(f"FAIL {test.__name__.replace('_', ' ')}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
