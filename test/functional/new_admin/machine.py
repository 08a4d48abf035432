# SPDX-License-Identifier: GPL-2.0-or-later
"""What an admin has before the first step: a machine with a Slurm of its own, and Google, for which the emulator stands."""
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOGS = Path("/var/log")
STATE = Path("/var/lib/slurm/slurmctld")
USER = "alice"
NODES = 64
PATH = f"{HERE}/stand_ins:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

SLURM_CONF = """\
ClusterName=hpc
SlurmctldHost={host}(127.0.0.1)
SlurmUser=slurm
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
StateSaveLocation={state}
SlurmdSpoolDir=/var/spool/slurmd-vm/%n
SlurmctldPidFile=/run/new-admin/ctld.pid
SlurmdPidFile=/run/new-admin/slurmd-%n.pid
SlurmctldLogFile=/var/log/new-admin-ctld.log
SlurmdLogFile=/var/log/new-admin-slurmd.log
SlurmctldDebug=verbose
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=2
NodeName=old-0 NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=main Nodes=old-0 Default=YES
"""


def wait_for(condition, timeout, what):
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for {what}")
        time.sleep(0.5)
    return value


def free_ports(count):
    """The first of so many in a row, below those that the kernel gives out by itself."""
    for first in range(13000 + secrets.randbelow(100) * 100, 32000, count):
        probes = []
        try:
            for port in range(first, first + count):
                probe = socket.socket()
                probes.append(probe)
                probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
    raise AssertionError("no free ports")


class Machine:
    """Commands on it, as root or as a user."""

    def __init__(self):
        self.children = []
        first = free_ports(NODES + 4)
        self.ctld_port, self.slurmd_port, self.google_port, self.listen_port = range(first, first + 4)
        self.google = f"http://127.0.0.1:{self.google_port}"
        self.env = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "EDITOR": str(HERE / "stand_ins" / "editor"),
                    "DEBIAN_FRONTEND": "noninteractive", "NEW_ADMIN_GOOGLE": self.google,
                    "NEW_ADMIN_FIRST_PORT": str(first + 4)}

    def run(self, command, user="root", code=0):
        """A shell's command line, to its end; its output. `code`: the exit code it must have, or None for any."""
        words = ["sh", "-e", "-c", command]
        if user != "root":
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *words]
        cwd = "/root" if user == "root" else f"/home/{user}"
        done = subprocess.run(words, env={**self.env, "HOME": cwd}, cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
        if code is not None and done.returncode != code:
            raise AssertionError(f"exit code {done.returncode}, not {code}:\n{command}\n{done.stdout}")
        return done.stdout

    def spawn(self, words, log, user=None):
        identity = {"user": user, "group": user, "extra_groups": []} if user else {}
        with open(LOGS / f"new-admin-{log}.log", "ab") as output:
            child = subprocess.Popen(words, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                     start_new_session=True, **identity)
        self.children.append(child)
        return child

    # Before the first step

    def prepare(self):
        """munged, a slurmctld without cloud nodes, a user."""
        Path("/run/new-admin").mkdir(exist_ok=True)
        if subprocess.run(["id", USER], capture_output=True, check=False).returncode != 0:
            self.run(f"useradd --create-home {USER}")
        self._start_munged()
        version = self.run("slurmctld -V").split()[1]
        Path("/etc/slurm/slurm.conf").write_text(SLURM_CONF.format(
            host=os.uname().nodename.partition(".")[0], ctld_port=self.ctld_port, slurmd_port=self.slurmd_port,
            state=STATE), encoding="ascii")
        # 22.05 ends on "disabled"; the newer ones need it where no cgroup may be made.
        plugin = "cgroup/v1" if version < "23.11" else "disabled"
        Path("/etc/slurm/cgroup.conf").write_text(f"CgroupPlugin={plugin}\n", encoding="ascii")
        self.run("systemctl start slurmctld")
        wait_for(lambda: " UP" in self.run("scontrol ping", code=None), 60, "slurmctld to answer")

    def _start_munged(self):
        key = Path("/etc/munge/munge.key")
        if not key.exists():
            key.write_bytes(secrets.token_bytes(128))
            key.chmod(0o600)
            shutil.chown(key, "munge", "munge")
        run = Path("/run/munge")
        run.mkdir(mode=0o755, exist_ok=True)
        shutil.chown(run, "munge", "munge")
        self.spawn(["/usr/sbin/munged", "--foreground"], "munged", user="munge")
        wait_for(lambda: (run / "munge.socket.2").exists(), 30, "munged's socket")

    # Google

    def start_google(self):
        """The emulator; its VMs are slurmd processes on this machine. Needs its package."""
        config = Path("/run/new-admin/google.json")
        config.write_text(json.dumps({"hook": [str(HERE / "stand_ins" / "vm")], "boot_delay_ms": 3000,
                                      "operation_ms": 200, "projects": ["flex-test"]}), encoding="utf-8")
        self.spawn(["/usr/sbin/flex-gce-emulator", "--port", str(self.google_port), "--config", str(config)], "google")
        wait_for(self._google_answers, 30, "the emulator")
        key = Path("/etc/slurm/google-key.json")
        key.write_text(json.dumps({"type": "authorized_user", "client_id": "test", "client_secret": "test",
                                   "refresh_token": "test", "token_uri": f"{self.google}/_emulator/oauth/token"}),
                       encoding="utf-8")
        key.chmod(0o600)
        shutil.chown(key, "slurm", "slurm")

    def _google_answers(self):
        try:
            return self.ask_google("state") is not None
        except OSError:
            return False

    def ask_google(self, what):
        with OPENER.open(f"{self.google}/_emulator/{what}", timeout=30) as answer:
            return json.loads(answer.read())

    def stands_for_google(self):
        """What flex-start.yaml says here beside what README has in it."""
        return (f"api: {{endpoint: '{self.google}'}}\ncredentials: /etc/slurm/google-key.json\n"
                f"sweeper: {{listen: '127.0.0.1:{self.listen_port}'}}\n")

    # The end

    def stop(self):
        self.run("systemctl stop flex-sweeper slurmctld", code=None)
        for file in Path("/run/new-admin").glob("vm-*.pid"):
            self.run(f"{HERE}/stand_ins/vm down {file.stem.removeprefix('vm-')} zone group", code=None)
        for child in self.children:
            child.kill()
            child.wait()
        self.children = []

    def log_tails(self, lines=25):
        text = ""
        for path in sorted(LOGS.glob("new-admin-*.log")):
            tail = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            text += f"--- {path}\n" + "\n".join(tail) + "\n"
        return text
