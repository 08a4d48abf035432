# SPDX-License-Identifier: GPL-2.0-or-later
"""A bare Debian in a directory, in which to run commands as root.

It is made by debootstrap from the mirror that this machine's apt uses, kept as a tar file, and unpacked anew for each
run. What runs in it has its own mounts and process numbers and ends with this process, however that ends; a directory
that a killed one has left is removed by the next.
"""
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MONTH = 30 * 86400
# What a clean shell has, and the way out to the mirror.
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
       "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "locale",
       **{key: value for key, value in os.environ.items() if key.lower() in ("http_proxy", "https_proxy", "no_proxy")}}
# The end of the name of a directory that is unpacked.
TREE = ".tree"
NEEDED = ("debootstrap", "setpriv", "unshare")
# Not exec'd: this shell is init to what runs below it, and takes in the orphans. The directory is made a mount of its own
# so that none of those below it can be seen from outside, even where "/" is no mount that could be made private.
MOUNT_AND_RUN = """
mount --bind "$1" "$1" && mount --make-private "$1" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" &&
  mount --make-rslave "$1/sys" && mount --rbind /dev "$1/dev" && mount --make-rslave "$1/dev" &&
  mount -t tmpfs tmpfs "$1/dev/shm" || exit 125
chroot "$1" sh -c "cd /$2 && $3"
exit $?
"""


class Impossible(Exception):
    """This machine cannot have one: it lacks a right, not a package."""


def namespace():
    """unshare with what works here: in a chroot, "/" is no mount and cannot be made private."""
    base = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for more in ([], ["--propagation", "unchanged"]):
        tried = subprocess.run([*base, *more, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return [*base, *more]
    raise Impossible(f"no namespaces of our own: {tried.stderr.strip()}")


@contextlib.contextmanager
def locked(path, more=0):
    """A file, made if need be, or a directory, for this process alone."""
    handle = os.open(path, os.O_RDONLY | (0 if path.is_dir() else os.O_CREAT), 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | more)
        yield
    finally:
        os.close(handle)


def remove(directory, say=print):
    """Also while the last processes in it end. Its mounts went with them; if not, they are no business of rm's."""
    for _ in range(50):
        subprocess.run(["rm", "-rf", "--one-file-system", "--", str(directory)], stderr=subprocess.DEVNULL, check=False)
        if not directory.exists():
            return
        time.sleep(0.1)
    say(f"could not remove {directory}")


def follow(command, log, is_shown=lambda line: True, **more):
    """Runs a command to its end, in the log and what is wanted of it on the screen; its exit code and what it printed."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env=ENV, **more)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            log.write(line)
            log.flush()
            if is_shown(line):
                print("  " + line, end="", flush=True)
        return process.wait(), "".join(lines)
    finally:
        process.kill()  # and with it, by --kill-child, all that it started
        process.wait()


def host_release():
    """The code name of this machine's Debian, or None."""
    found = re.search(r"^VERSION_CODENAME=\"?(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    return found and found[1]


def host_mirror():
    """Where this machine gets its own release from."""
    release = host_release()
    if release is None:
        return None
    found = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main",
         f"Release: {release}"], capture_output=True, text=True, check=False).stdout.split()
    if found and found[0].startswith("mirror+file:"):
        found = Path(found[0].removeprefix("mirror+file:").rstrip("/")).read_text(encoding="utf-8").split()
    return found[0] if found else None


def become_root(say):
    """Runs this program again with sudo, if need be."""
    if os.geteuid() == 0:
        return
    if shutil.which("sudo") is None:
        raise Impossible("making a chroot needs root: run this as root, or install sudo")
    if subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode != 0 and not sys.stdin.isatty():
        raise Impossible("making a chroot needs root, and sudo asks for a password")
    say("with sudo")
    keep = [f"{key}={value}" for key, value in ENV.items() if key.lower().endswith("proxy")]
    sys.stdout.flush()
    os.execvp("sudo", ["sudo", "env", *keep, sys.executable, *sys.argv])


def catch_signals():
    """SIGTERM and SIGHUP unwind like Ctrl-C."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)


def add_options(parser, directory):
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / directory,
                        help="where the tar files are kept, and the logs (default: %(default)s)")
    parser.add_argument("--mirror", help="a Debian mirror (default: the one in this machine's apt sources)")
    parser.add_argument("--jobs", type=int, help="compilers at the same time (default: as many as cores)")


def prepare(args, program):
    """After become_root: what the options and the machine must have; ends the program if they have not."""
    for name in NEEDED:
        if shutil.which(name, path=ENV["PATH"]) is None:
            sys.exit(f"{program}: {name} is not installed (try: tools/setup.sh chroot)")
    args.mirror = args.mirror or host_mirror()
    if args.mirror is None:
        sys.exit(f"{program}: found no Debian mirror in this machine's apt sources; name one with --mirror")
    args.directory = args.directory.absolute()
    args.directory.mkdir(parents=True, exist_ok=True)
    if args.directory.stat().st_uid != 0:
        sys.exit(f"{program}: {args.directory} is not root's; choose another one with --directory")


class BareDebian:
    """One Debian release: its tar file, and within `with` a copy of it in `root`."""

    def __init__(self, suite, args, log, say, packages=()):
        """`packages` are installed before it is kept, as more than the bare minimum."""
        self.suite, self.log, self.say = suite, log, say
        self.directory, self.mirror = args.directory, args.mirror
        self.packages = packages
        # Other packages, or another mirror: another tar file.
        kind = hashlib.sha256(" ".join([self.mirror, *packages]).encode()).hexdigest()[:8]
        self.tar = self.directory / f"{suite}-{kind}.tar"
        self.namespace = namespace()
        self.root = None
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        """`root` is None if debootstrap failed."""
        tree = self._stack.enter_context(self._tree())
        if self._make_tar(tree):
            subprocess.run(["tar", "-C", str(tree), "-xf", str(self.tar)], check=True)
            self._name_service(tree)
            self.root = tree
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    @contextlib.contextmanager
    def _tree(self):
        with contextlib.ExitStack() as stack:
            # Nobody removes a directory between its making and its locking.
            with locked(self.directory / "lock"):
                self._remove_left_over()
                directory = Path(tempfile.mkdtemp(prefix=f"{self.suite}-", suffix=TREE, dir=self.directory))
                directory.chmod(0o755)
                stack.callback(remove, directory, self.say)
                stack.enter_context(locked(directory))
            yield directory

    def _remove_left_over(self):
        """What a killed process has left: nobody holds it any more."""
        for directory in self.directory.glob(f"*{TREE}"):
            with contextlib.suppress(BlockingIOError), locked(directory, fcntl.LOCK_NB):
                self.say(f"removing {directory}, which was left over")
                remove(directory, self.say)

    def _make_tar(self, scratch):
        if self.tar.exists() and time.time() - self.tar.stat().st_mtime < MONTH:
            return True
        self.say(f"{self.suite}: debootstrap from {self.mirror}")
        with self._tree() as fresh:
            code, _ = follow([*self.namespace, "debootstrap", "--variant=minbase", "--include=make,ca-certificates",
                              self.suite, str(fresh), self.mirror], self.log,
                             lambda line: line.startswith(("E:", "W:")))
            if code != 0:
                return False
            self._settle(fresh)
            if not self._install(fresh):
                return False
            new = scratch / "tar"  # still empty otherwise
            subprocess.run(["tar", "-C", str(fresh), "--exclude=./var/cache/apt/archives/*.deb", "-cf", str(new), "."],
                           check=True)
            new.rename(self.tar)
        return True

    @staticmethod
    def _settle(root):
        """No service starts, no package waits for the disk, and a mirror may be a frozen one, with old dates."""
        policy = root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        policy.chmod(0o755)
        (root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n", encoding="ascii")
        (root / "etc/apt/apt.conf.d/99bare").write_text(
            'Acquire::Check-Valid-Until "false";\nAcquire::Languages "none";\n', encoding="ascii")

    def _install(self, root):
        if not self.packages:
            return True
        self.say(f"{self.suite}: installing {' '.join(self.packages)}")
        self._name_service(root)
        code, _ = self.run("apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y "
                           f"--no-install-recommends {' '.join(self.packages)}", root=root,
                           is_shown=lambda line: line.startswith("E:") and "/dev/pts" not in line)
        return code == 0

    @staticmethod
    def _name_service(root):
        """This machine's way to look up names."""
        for name in ("hosts", "resolv.conf"):
            shutil.copyfile(f"/etc/{name}", root / "etc" / name)

    def run(self, command, inside="", root=None, is_shown=lambda line: True):
        """A shell's command line, in the directory `inside`; its exit code and output."""
        return follow([*self.namespace, "sh", "-c", MOUNT_AND_RUN, "sh", str(root or self.root), inside, command],
                      self.log, is_shown)
