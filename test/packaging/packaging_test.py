# SPDX-License-Identifier: GPL-2.0-or-later
"""What the packages are made of: the unit, tmpfiles, logrotate, and the lists of files of debian/ and the spec.

packaging_test.py SOURCE BUILD. The packages themselves are built and tried by 'make test-packages'.
"""
import fnmatch
import grp
import json
import os
import pwd
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tools"), str(SOURCE / "test/functional"), str(SOURCE / "test/functional/new_admin")]
sys.dont_write_bytecode = True
import checkout  # noqa: E402
import plain_tests  # noqa: E402
import readme  # noqa: E402

DEBIAN = SOURCE / "packaging/debian"
SPEC = SOURCE / "packaging/rpm/slurm-flex-start.spec"
NAME = "slurm-flex-start"
PACKAGES = (NAME, f"{NAME}-emulator")
MOST_EXPOSURE = 2.0


def run(*words, code=0, **more):
    """Its output, both kinds."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout)
    return done.stdout


def read(path):
    return path.read_text(encoding="utf-8")


def unit_text():
    return read(BUILD / "etc/flex-sweeper.service")


def for_me(text):
    """With the names of this user for SlurmUser, who need not exist here."""
    user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    return re.sub(r"\bslurm slurm\b", f"{user} {group}", text)


# The unit

def the_unit_is_hardened():
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={int(MOST_EXPOSURE * 10)}",
               BUILD / "etc/flex-sweeper.service")
    exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", said)[1])
    assert exposure <= MOST_EXPOSURE, said


def systemd_knows_every_line_of_the_unit():
    with tempfile.TemporaryDirectory() as scratch:
        unit = Path(scratch, "flex-sweeper.service")
        # What is not installed yet is no mistake of the unit's.
        unit.write_text(re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", unit_text(), flags=re.M), encoding="utf-8")
        said = run("systemd-analyze", "verify", "--man=no", unit)
        assert "flex-sweeper.service" not in said, said


def the_unit_waits_for_a_configuration():
    conditions = re.findall(r"^ConditionPathExists=(.*)$", unit_text(), re.M)
    assert "|/etc/slurm/flex-start.yaml" in conditions and all(path.startswith("|") for path in conditions), conditions


def the_sweeper_may_write_where_slurm_keeps_its_state():
    places = " ".join(re.findall(r"^ReadWritePaths=(.*)$", unit_text(), re.M)).split()
    for place in ("/var/lib/slurm", "/var/spool/slurmctld", "/var/spool/slurm"):
        assert f"-{place}" in places, places
    # A place that is missing must not keep the unit from starting.
    assert all(place.startswith("-") for place in places), places


# Beside the unit

def tmpfiles_makes_the_log_directory():
    with tempfile.TemporaryDirectory() as scratch:
        conf = Path(scratch, "slurm-flex-start.conf")
        conf.write_text(for_me(read(SOURCE / "etc/tmpfiles.conf")).replace("/var/log/", f"{scratch}/"), encoding="utf-8")
        run("systemd-tmpfiles", "--create", conf)
        assert Path(scratch, "flex-start").stat().st_mode & 0o7777 == 0o750


def logrotate_takes_its_file():
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        log = Path(scratch, "flex-sweeper.log")
        log.write_text("a line\n", encoding="utf-8")
        conf = Path(scratch, "rotate")
        conf.write_text(read(SOURCE / "etc/logrotate.conf").replace("/var/log/flex-start", scratch), encoding="utf-8")
        conf.chmod(0o644)
        said = run("/usr/sbin/logrotate", "--force", "--state", Path(scratch, "state"), conf)
        assert "error" not in said, said
        assert read(log) == "" and read(Path(scratch, "flex-sweeper.log.1")) == "a line\n", said


# Versions and dependencies

def project_version():
    return json.loads(run("meson", "introspect", "--projectinfo", BUILD))["version"]


def all_packages_have_the_projects_version():
    version = project_version()
    assert read(DEBIAN / "changelog").startswith(f"{NAME} ({version}-1) "), read(DEBIAN / "changelog")[:60]
    assert re.search(r"^Version: +(\S+)$", read(SPEC), re.M)[1] == version


def words(text):
    return {re.sub(r"\(.*?\)", "", word).strip() for word in text.replace("\n", " ").split(",")} - {""}


def the_packages_are_built_with_what_setup_installs():
    control = re.search(r"^Build-Depends:(.*?)^\S*$", read(DEBIAN / "control"), re.M | re.S)[1]
    setup = set(re.search(r'^build="(.*?)"', read(SOURCE / "tools/setup.sh"), re.M | re.S)[1].split())
    # debhelper-compat is what debhelper provides; meson brings ninja along; dpkg-dev is always there.
    assert words(control) - {"debhelper-compat"} == setup - {"dpkg-dev", "ninja-build"}, words(control) ^ setup


# Files

def options():
    return {item["name"]: item["value"] for item in json.loads(run("meson", "introspect", "--buildoptions", BUILD))}


def installed():
    """All that 'meson install' installs, by the names that it has in a package."""
    chosen = options()
    prefix, etc = chosen["prefix"], os.path.join(chosen["prefix"], chosen["sysconfdir"])
    with tempfile.TemporaryDirectory() as scratch:
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", scratch)
        names = [os.path.join(directory, name)[len(scratch):]
                 for directory, _, here in os.walk(scratch) for name in here]
    found = set()
    for name in names:
        if name.startswith(etc + "/"):
            name = "/etc" + name[len(etc):]
        elif name.startswith(prefix + "/"):
            name = "/usr" + name[len(prefix):]
        found.add(re.sub("^(/usr)?/lib/systemd/system/", "/UNITS/", name).lstrip("/"))
    return found


def not_matched(names, patterns):
    """Names that no pattern has, and patterns that have no name. A pattern is a file, or a directory with all in it."""
    def has(pattern, name):
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, pattern + "/*")
    left = {name for name in names if not any(has(pattern, name) for pattern in patterns)}
    idle = {pattern for pattern in patterns if not any(has(pattern, name) for name in names)}
    return left, idle


def debian_packages_have_every_file_that_is_installed():
    patterns = []
    for package in PACKAGES:
        lines = read(DEBIAN / f"{package}.install").replace("${env:UNIT_DIR}", "UNITS").splitlines()
        patterns += [line.split()[0] for line in lines]  # a second word is where it goes
    assert not_matched(installed(), patterns) == (set(), set()), not_matched(installed(), patterns)


def the_rpm_has_every_file_that_is_installed():
    macros = {"_bindir": "usr/bin", "_sbindir": "usr/sbin", "_sysconfdir": "etc", "_datadir": "usr/share", "_unitdir": "UNITS",
              "_docdir": "usr/share/doc", "_mandir": "usr/share/man", "_prefix": "usr", "name": NAME,
              "slurm_plugin_dir": "usr/lib/*/slurm-wlm"}
    patterns = []
    for part in re.findall(r"^%files.*?\n(.*?)(?=^%(?:files|changelog))", read(SPEC), re.M | re.S):
        for line in part.split("\n"):
            path = re.sub(r"%\{(\w+)\}", lambda macro: macros[macro[1]], line.split(" ")[-1])
            if path and not line.startswith(("%license", "%doc", "#")):
                patterns.append(path)
    assert not_matched(installed(), patterns) == (set(), set()), not_matched(installed(), patterns)


# RPM

def rpm_parses_the_spec():
    # Fedora's macros are not on this machine: they stay as they are.
    names = run("rpmspec", "--query", "--builtrpms", "--queryformat", "%{name}\\n", SPEC).split()
    assert names == list(PACKAGES), names
    assert "%prep" in run("rpmspec", "--parse", SPEC)


def rpmbuild_unpacks_a_tarball():
    name = f"{NAME}-{project_version()}"
    with tempfile.TemporaryDirectory() as scratch:
        os.makedirs(f"{scratch}/SOURCES")
        with tarfile.open(f"{scratch}/SOURCES/{name}.tar.gz", "w:gz", compresslevel=1) as tar:
            for file in checkout.files():
                tar.add(SOURCE / file, f"{name}/{file}", recursive=False)
        run("rpmbuild", "-bp", "--nodeps", "--define", f"_topdir {scratch}", SPEC)
        # rpm 4.20 has a directory more between them.
        assert list(Path(scratch, "BUILD").glob(f"**/{name}/meson.build"))


# README

def readme_has_five_steps_that_a_test_can_follow():
    steps = readme.steps(read(SOURCE / "README.md"))
    assert [step.number for step in steps] == [1, 2, 3, 4, 5], steps
    for step in steps:
        assert step.blocks, f"step {step.number} has nothing to type"
        for _, text in step.blocks:
            assert not readme.unknown_placeholders(text), (step.number, readme.unknown_placeholders(text))


if __name__ == "__main__":
    sys.exit(plain_tests.run([
        the_unit_is_hardened, systemd_knows_every_line_of_the_unit, the_unit_waits_for_a_configuration,
        the_sweeper_may_write_where_slurm_keeps_its_state, tmpfiles_makes_the_log_directory, logrotate_takes_its_file,
        all_packages_have_the_projects_version, the_packages_are_built_with_what_setup_installs,
        debian_packages_have_every_file_that_is_installed, the_rpm_has_every_file_that_is_installed, rpm_parses_the_spec,
        rpmbuild_unpacks_a_tarball, readme_has_five_steps_that_a_test_can_follow]))
