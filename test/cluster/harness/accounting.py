# SPDX-License-Identifier: GPL-2.0-or-later
"""A slurmdbd with a MariaDB of its own, for a Cluster with `accounting=True`."""
import shutil

from .sandbox import PATH

ACCOUNT = "physics"


def _program(name):
    path = shutil.which(name, path=PATH)
    if path is None:
        raise FileNotFoundError(f"{name} is not installed (try: tools/setup.sh test)")
    return path


class Accounting:
    """The database is reached through a socket in the scratch directory only; slurmdbd listens on loopback.

    The cluster's user has the account `ACCOUNT`, which is the default, with the QOS `normal`."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.sandbox = cluster.sandbox
        self.port = self.sandbox.port()
        self.database = self.dbd = None

    @property
    def user(self):
        return self.sandbox.account.pw_name

    def slurm_conf(self):
        """The lines of slurm.conf."""
        return ["AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
                f"AccountingStoragePort={self.port}",
                # For munge this is the socket: AuthInfo does not count here.
                f"AccountingStoragePass={self.cluster.dir}/munge/munge.sock", "AccountingStorageEnforce=associations,limits,qos"]

    def _slurmdbd_conf(self):
        d = self.cluster.dir
        return "\n".join([
            "AuthType=auth/munge", f"AuthInfo=socket={d}/munge/munge.sock", f"SlurmUser={self.user}",
            "DbdHost=localhost", "DbdAddr=127.0.0.1", f"DbdPort={self.port}", f"PidFile={d}/run/slurmdbd.pid",
            f"LogFile={d}/log/slurmdbd.log", "DebugLevel=verbose", "CommunicationParameters=NoInAddrAny",
            "StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=root", "StorageLoc=slurm"]) + "\n"

    def start(self):
        """After munged and before slurmctld, which has to know the cluster's associations when it starts."""
        cluster, d = self.cluster, self.cluster.dir
        data, socket = d / "state" / "mariadb", d / "run" / "mariadb.sock"
        self.sandbox.run([_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db",
                          "--auth-root-authentication-method=normal", "--skip-name-resolve"], timeout=120)
        self.database = self.sandbox.spawn(
            [_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking",
             f"--pid-file={d}/run/mariadb.pid", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
             "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0"], "mariadbd.out")
        cluster.wait_for(lambda: self._is_there(self.database, socket.exists()), 60, "mariadbd's socket")
        self.sandbox.write("etc/slurmdbd.conf", self._slurmdbd_conf(), 0o600)
        self.dbd = self.sandbox.spawn([_program("slurmdbd"), "-D"], "slurmdbd.out",
                                      env=cluster.env(MYSQL_UNIX_PORT=str(socket)))
        cluster.wait_for(lambda: self._is_there(self.dbd, self._answers()), 60, "slurmdbd to answer", interval=0.5)
        # Its own name, if slurmctld has not registered before.
        self.sacctmgr("add", "cluster", cluster.name)
        self.sacctmgr("add", "account", ACCOUNT)
        self.sacctmgr("add", "user", self.user, f"account={ACCOUNT}", "adminlevel=admin")

    def _is_there(self, child, answer):
        if child.poll() is not None:
            raise RuntimeError(f"{child.args[0]} ended with {child.returncode}\n{self.cluster.log_tails()}")
        return answer

    def _answers(self):
        return self.cluster.slurm("sacctmgr", "-n", "show", "cluster", check=False, timeout=60).returncode == 0

    def sacctmgr(self, *arguments, check=True):
        """What it printed; sacctmgr exits with 1 where nothing had to be changed."""
        done = self.cluster.slurm("sacctmgr", "-i", *arguments, check=check)
        return done.stdout + done.stderr

    def limit_user(self, account, **limits):
        """Of the user's association with the account; -1 takes a limit away."""
        self.sacctmgr("modify", "user", self.user, "where", f"account={account}", "set",
                      *[f"{key}={value}" for key, value in limits.items()])

    def limit_account(self, account, **limits):
        self.sacctmgr("modify", "account", account, "set", *[f"{key}={value}" for key, value in limits.items()])

    def limit_qos(self, qos, **limits):
        self.sacctmgr("modify", "qos", qos, "set", *[f"{key}={value}" for key, value in limits.items()])
