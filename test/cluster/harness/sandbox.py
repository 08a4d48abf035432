# SPDX-License-Identifier: GPL-2.0-or-later
"""A scratch directory with processes in it, all of which are gone in the end, whatever happens."""
import atexit
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import procs  # noqa: E402  (also runs as a copy beside vm_hook)

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# Below the range from which the kernel takes ports for outgoing connections.
FIRST_PORT, LAST_PORT, PORT_BLOCK = 12000, 32000, 200


class LeftBehind(Exception):
    """Something outlived the clean-up."""


def _remove_tree(directory):
    """Also while a dying process still writes into it."""
    for _ in range(50):
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.exists(directory):
            return True
        threading.Event().wait(0.05)
    return False


class Sandbox:
    """Runs as the caller, or as an ordinary user where the caller is root."""

    _open = []

    # Slurm 26.05 refuses nobody as SlurmUser.
    def __init__(self, prefix="flex-", user="daemon"):
        self.account = pwd.getpwnam(user) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        # In /tmp, not $TMPDIR: a Unix socket's path has at most 107 characters.
        self.dir = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
        self.closed = False
        self._children = []
        self._install_lock, self._installed = threading.Lock(), {}
        self._port_lock = None
        self._next_port = self._last_port = 0
        self._guard = self._start_guard()
        Sandbox._open.append(self)
        _install_handlers()
        for name in ("bin", "etc", "log", "run", "state", "spool", "munge", "out"):
            (self.dir / name).mkdir(mode=0o755)
        self.own(self.dir, *self.dir.iterdir())
        self.dir.chmod(0o711)  # munged wants its socket to be reachable by all

    # Files

    def own(self, *paths):
        if os.geteuid() == 0:
            for path in paths:
                os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def write(self, name, content, mode=0o644):
        path = self.dir / name
        data = content if isinstance(content, bytes) else content.encode()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
        path.chmod(mode)
        self.own(path)
        return path

    def install(self, program, name=None):
        """A copy in bin/: the checkout may be in a home that the cluster's user cannot enter."""
        path = self.dir / "bin" / (name or Path(program).name)
        found = Path(program).stat()
        source = (found.st_ino, found.st_size, found.st_mtime_ns)
        # One that is being written cannot be run: neither by this thread nor by another.
        with self._install_lock:
            is_there = path.exists() and self._installed.get(path) == (source, path.stat().st_mtime_ns)
            if not is_there:
                path.unlink(missing_ok=True)
                shutil.copyfile(program, path)
                path.chmod(0o755)
                self.own(path)
                self._installed[path] = (source, path.stat().st_mtime_ns)
        return path

    # Ports

    def port(self):
        """A port that is free now and that no other sandbox on this machine will take."""
        while True:
            if self._next_port == self._last_port:
                self._take_port_block()
            port, self._next_port = self._next_port, self._next_port + 1
            # Without SO_REUSEADDR: not every program may bind where old connections linger.
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                return port

    def _take_port_block(self):
        first = FIRST_PORT + os.getpid() % 97 * PORT_BLOCK
        span = LAST_PORT - FIRST_PORT
        locks = self._port_lock = self._port_lock or []
        for step in range(0, span, PORT_BLOCK):
            block = FIRST_PORT + (first - FIRST_PORT + step) % span
            lock = socket.socket(socket.AF_UNIX)
            try:
                lock.bind(f"\0flex-start-test-ports-{block}")  # abstract: ends with the process
            except OSError:
                lock.close()
                continue
            locks.append(lock)
            self._next_port, self._last_port = block, block + PORT_BLOCK
            return
        raise RuntimeError("no free block of ports")

    # Processes

    def env(self, **more):
        """Nothing of the caller's: no SLURM_*, no proxy, no Google credentials."""
        return {"PATH": PATH, "HOME": str(self.dir), "LANG": "C.UTF-8", "TZ": "UTC",
                "USER": self.account.pw_name, procs.MARK: str(self.dir), **more}

    def _identity(self):
        if os.geteuid() != 0:
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    def spawn(self, argv, log, env=None, stdout=None):
        """A daemon in its own session; its output goes to log/<log>, or to `stdout`."""
        with open(self.dir / "log" / log, "ab") as output:
            child = subprocess.Popen(
                [str(word) for word in argv], stdin=subprocess.DEVNULL,
                stdout=output if stdout is None else stdout, stderr=output, env=env or self.env(), cwd=self.dir,
                start_new_session=True, umask=0o022, **self._identity())
        self._children.append(child)
        return child

    def run(self, argv, env=None, check=True, timeout=60, **more):
        """A command, to its end; its output is text."""
        done = subprocess.run(
            [str(word) for word in argv], env=self.env() if env is None else env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
            **{"stdin": subprocess.DEVNULL, "cwd": self.dir / "out", "umask": 0o022,
               **self._identity(), **more})
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n"
                               f"{done.stdout}{done.stderr}")
        return done

    def stop(self, child, timeout=20):
        """Asks a daemon to end, and makes it end."""
        if child is None or child.poll() is not None:
            return
        child.terminate()
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def processes(self):
        return procs.find(str(self.dir))

    # The end

    def _start_guard(self):
        """A process that cleans up if this one is killed: it sees the pipe close."""
        return subprocess.Popen(
            [sys.executable, "-BI", __file__, str(self.dir)], stdin=subprocess.PIPE,
            start_new_session=True, cwd="/", env={"PATH": PATH})

    def close(self):
        """Ends every process, removes the directory; raises LeftBehind if that did not work."""
        if self.closed:
            return
        self.closed = True
        left = procs.end(str(self.dir))
        for child in self._children:
            child.kill()  # where it has hidden its mark
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
        gone = _remove_tree(self.dir)
        for lock in self._port_lock or []:
            lock.close()
        with contextlib.suppress(OSError):
            self._guard.stdin.write(b"done")
            self._guard.stdin.close()
        self._guard.wait(30)
        if self in Sandbox._open:
            Sandbox._open.remove(self)
        left |= self.processes()
        if left or not gone:
            what = [procs.describe(pid) for pid in sorted(left)] + ([str(self.dir)] if not gone else [])
            raise LeftBehind("left behind: " + ", ".join(what))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _close_all():
    for sandbox in list(Sandbox._open):
        sandbox.close()


def _install_handlers():
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that `finally` and atexit do their work."""
    if getattr(_install_handlers, "done", False):
        return
    _install_handlers.done = True
    atexit.register(_close_all)
    if threading.current_thread() is threading.main_thread():
        for name in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.default_int_handler)


def _guard(directory):
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    if sys.stdin.buffer.read() != b"done":
        procs.end(directory)
        _remove_tree(directory)


if __name__ == "__main__":
    _guard(sys.argv[1])
