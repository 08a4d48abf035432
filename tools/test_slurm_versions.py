#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds and tests the checkout on other Slurm releases, each in a bare Debian of its own.

A suite's Debian is made by debootstrap from the mirror that this machine's apt uses, kept as a tar file, and unpacked
anew for each run. The run has its own mounts and process numbers, so nothing of it is left, however it ends.
"""
import argparse
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("trixie", "sid")
# All of these suites, and by name what meets Slurm most. The crash matrix, the ways, the quota and the soak are about
# our own order of calls, which is the same with any Slurm.
TESTS = (("--suite", "unit"), ("--suite", "functional"), ("--test", "cluster"), ("--test", "scenes"), ("--test", "leases"),
         ("--test", "plugin"), ("--test", "job-words"), ("--test", "examples"))
PROJECT = "srv/project"
MONTH = 30 * 86400
# What a clean shell has, and the way out to the mirror.
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
       **{key: value for key, value in os.environ.items() if key.lower() in ("http_proxy", "https_proxy", "no_proxy")}}
NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
# Not exec'd: this shell is init to what runs below it, and takes in the orphans.
MOUNT_AND_RUN = """
mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" &&
  mount -t tmpfs tmpfs "$1/dev/shm" || exit 125
chroot "$1" sh -c "cd /$2 && $3"
exit $?
"""


def say(text):
    print(f"versions: {text}", flush=True)


def remove(directory):
    """Also while the last processes in it end. Its mounts went with them; if not, they are no business of rm's."""
    for _ in range(50):
        subprocess.run(["rm", "-rf", "--one-file-system", "--", str(directory)], stderr=subprocess.DEVNULL, check=False)
        if not directory.exists():
            return
        time.sleep(0.1)
    say(f"could not remove {directory}")


def follow(command, log, **more):
    """Runs a command to its end, on the screen and in the log; its exit code and what it printed."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env=ENV, **more)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            log.write(line)
            log.flush()
            print("  " + line, end="", flush=True)
        return process.wait(), "".join(lines)
    finally:
        process.kill()  # and with it, by --kill-child, all that it started
        process.wait()


def counts_of(output):
    """(passed, failed, skipped) by run_tests.py's last line."""
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.M)
    return tuple(int(number or 0) for number in found[-1]) if found else (0, 0, 0)


def host_mirror():
    """Where this machine gets its own release from."""
    release = re.search(r"^VERSION_CODENAME=\"?(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    if release is None:
        return None
    found = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main",
         f"Release: {release[1]}"], capture_output=True, text=True, check=False).stdout.split()
    if found and found[0].startswith("mirror+file:"):
        found = Path(found[0].removeprefix("mirror+file:").rstrip("/")).read_text(encoding="utf-8").split()
    return found[0] if found else None


@dataclass
class Outcome:
    """How a suite went."""
    suite: str
    slurm: str = "no Slurm"
    counts: tuple = (0, 0, 0)
    failed: list = field(default_factory=list)   # names of steps
    seconds: float = 0

    def text(self):
        passed, failed, skipped = self.counts
        how = "FAILED in " + " and ".join(self.failed) if self.failed else "ok"
        return (f"{self.suite:<8} {self.slurm:<24} {how}: {passed} passed, {failed} failed, {skipped} skipped"
                f" ({self.seconds / 60:.0f} min)")


class Suite:
    """One Debian release: its tar file, and a copy of it in which to work."""

    def __init__(self, name, args):
        self.name, self.args = name, args
        self.tar = args.directory / f"{name}.tar"
        self.logs = args.directory / "logs" / name
        self.root = None

    def run(self):
        outcome = Outcome(self.name)
        started = time.monotonic()
        remove(self.logs)
        self.logs.mkdir(parents=True)
        with open(self.logs / "output.log", "w", encoding="utf-8") as log, self._tree() as self.root:
            if self._make_tar(log) and self._unpack():
                self._steps(outcome, log)
            else:
                outcome.failed.append("debootstrap")
            if outcome.failed:
                self._save()
        outcome.seconds = time.monotonic() - started
        return outcome

    @contextlib.contextmanager
    def _tree(self):
        directory = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self.args.directory))
        directory.chmod(0o755)
        try:
            yield directory
        finally:
            remove(directory)

    def _make_tar(self, log):
        if self.tar.exists() and time.time() - self.tar.stat().st_mtime < MONTH:
            return True
        say(f"{self.name}: debootstrap from {self.args.mirror}")
        with self._tree() as fresh:
            code, _ = follow([*NAMESPACE, "debootstrap", "--variant=minbase", "--include=make,ca-certificates",
                              self.name, str(fresh), self.args.mirror], log)
            if code != 0:
                return False
            self._prepare(fresh)
            new = self.root / "tar"  # still empty otherwise
            subprocess.run(["tar", "-C", str(fresh), "--exclude=./var/cache/apt/archives/*.deb", "-cf", str(new), "."],
                           check=True)
            new.rename(self.tar)
        return True

    @staticmethod
    def _prepare(root):
        """No service starts, no package waits for the disk, and a mirror may be a frozen one, with old dates."""
        policy = root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        policy.chmod(0o755)
        (root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n", encoding="ascii")
        (root / "etc/apt/apt.conf.d/99versions").write_text(
            'Acquire::Check-Valid-Until "false";\nAcquire::Languages "none";\n', encoding="ascii")

    def _unpack(self):
        """The tar file, this machine's way to look up names, and the tracked files as they are now."""
        subprocess.run(["tar", "-C", str(self.root), "-xf", str(self.tar)], check=True)
        for name in ("hosts", "resolv.conf"):
            shutil.copyfile(f"/etc/{name}", self.root / "etc" / name)
        project = self.root / PROJECT
        project.mkdir(parents=True)
        files = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split("\0")
        for name in files:
            if (ROOT / name).is_file():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, project / name)
        return True

    def _inside(self, command, log):
        return follow([*NAMESPACE, "sh", "-c", MOUNT_AND_RUN, "sh", str(self.root), PROJECT, command], log)

    def _steps(self, outcome, log):
        jobs = f" -j{self.args.jobs}" if self.args.jobs else ""
        tests = shlex.join(word for pair in self.args.test for word in pair)
        for name, command in (("setup", "make setup"),
                              ("build", f"make build/build.ninja && ninja -C build{jobs}"),
                              ("tests", f"python3 tools/run_tests.py {tests}"),
                              ("demo", "make demo")):
            say(f"{self.name}: {name}")
            code, output = self._inside(command, log)
            if name == "setup":
                outcome.slurm = self._slurm()
            if name == "tests":
                outcome.counts = counts_of(output)
            if code != 0:
                outcome.failed.append(name)
                if name in ("setup", "build"):
                    return

    def _slurm(self):
        status = (self.root / "var/lib/dpkg/status").read_text(encoding="utf-8")
        found = re.search(r"^Package: slurmctld\n(?:.+\n)*?Version: (\S+)", status, re.M)
        return f"Slurm {found[1]}" if found else "no Slurm"

    def _save(self):
        """What explains a failure."""
        for name in ("build/test-logs", "build/meson-logs"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copytree(self.root / PROJECT / name, self.logs / Path(name).name)


def become_root():
    if os.geteuid() == 0:
        return
    if shutil.which("sudo") is None:
        sys.exit("versions: making a chroot needs root: run this as root, or install sudo")
    keep = [f"{key}={value}" for key, value in ENV.items() if key.lower().endswith("proxy")]
    os.execvp("sudo", ["sudo", "env", *keep, sys.executable, *sys.argv])


def prepare_directory(directory):
    directory.mkdir(parents=True, exist_ok=True)
    if directory.stat().st_uid != 0:
        sys.exit(f"versions: {directory} is not root's; choose another one with --directory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", help=f"a release of Debian (default: {' '.join(SUITES)})")
    parser.add_argument("--test", action="append", help=f"a test's name (default: {' '.join(name for _, name in TESTS)})")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "flex-versions",
                        help="where the tar files are kept, and the logs (default: %(default)s)")
    parser.add_argument("--mirror", help="a Debian mirror (default: the one in this machine's apt sources)")
    parser.add_argument("--jobs", type=int, help="compilers at the same time (default: ninja's)")
    args = parser.parse_args()
    become_root()
    for program in ("debootstrap", "unshare", "git"):
        if shutil.which(program) is None:
            sys.exit(f"versions: {program} is not installed (try: tools/setup.sh chroot)")
    args.suite = args.suite or SUITES
    args.test = [("--test", name) for name in args.test] if args.test else TESTS
    args.mirror = args.mirror or host_mirror()
    if args.mirror is None:
        sys.exit("versions: found no Debian mirror in this machine's apt sources; name one with --mirror")
    args.directory = args.directory.absolute()
    prepare_directory(args.directory)
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    outcomes = []
    for suite in args.suite:
        outcomes.append(Suite(suite, args).run())
    for outcome in outcomes:
        print(outcome.text())
    print(f"logs: {args.directory / 'logs'}")
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; everything is removed")
        sys.exit(130)
