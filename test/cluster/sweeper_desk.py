# SPDX-License-Identifier: GPL-2.0-or-later
"""Two clusters on which nothing happens but what a test does: one for rounds by hand and for the
daemon's manners, one that stays as it is while a day's worth of rounds runs."""
import json
import threading
import time

from harness.conf import Nodeset, to_yaml
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster
from sweeper_site import Moment

C = {"zones": [f"{REGION}-c"]}  # has no room
INSERT = "regionInstanceGroupManagerResizeRequests.insert"
GROUP = "regionInstanceGroupManagers.insert"
LATE = {"code": "LIMIT_EXCEEDED",
        "message": "Resize request could not provision queued instances in the allocated time."}
NEVER = {"code": "INVALID_ARGUMENT", "message": "The machine type is not to be had in this zone."}
QUOTA = {"code": "QUOTA_EXCEEDED", "message": "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded."}

NODESETS = [
    Nodeset("left", 3, C),
    Nodeset("bad", 2, C),
    Nodeset("again", 2, {**C, "retry": {"base": "1s", "limit": 2}}),
    Nodeset("hold", 2, {**C, "provision_timeout": "7s", "on_timeout": "hold"}),
    Nodeset("back", 1, {**C, "provision_timeout": "3s"}),
    Nodeset("quota", 1, {**C, "retry": {"base": "1s"}}),
    Nodeset("refused", 2, C),
    Nodeset("dry", 1, C),
    Nodeset("spare", 1, C),
    Nodeset("race", 2),
    Nodeset("late", 2),
]
SETTINGS = {"sweeper": {"interval": "1s", "orphan_grace": "1h", "empty_mig_grace": "1h", "listen": "127.0.0.1:0",
                        "finished_request_grace": "1h"}}


class Desk:
    """A cluster without a daemon: every round is somebody's."""

    def __init__(self, build, nodesets=None, extra=None, capacity=None):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator",
                                 capacity={f"{REGION}-c": 0, **(capacity or {})})
        self.cluster = Cluster(nodesets or NODESETS, build=build, emulator=self.emulator, flex_extra=extra or SETTINGS,
                               name="desk")

    @property
    def now(self):
        return Moment(self.cluster)

    def submit(self, nodeset, *options):
        """A job in the queue; its id."""
        return self.cluster.sbatch("-p", nodeset, "--time=10", *options)

    def queued(self, *nodes):
        """Until all of them are in the queue; the names of their requests."""
        self.cluster.wait_for(lambda: all(self.now.queued(node) for node in nodes), 40,
                              f"queued requests for {nodes}")
        now = self.now
        return [now.queued(node) for node in nodes]

    def asked(self, nodeset, *options):
        """A job whose request has been asked for, well or not; its id. What was a fault has struck."""
        job = self.submit(nodeset, *options)
        self.cluster.wait_for(lambda: [call for call in self.emulator.calls("resizeRequests.insert")
                                       if call["body"]["name"].startswith(f"j{job}-")], 40,
                              f"the request of job {job}")
        self.emulator.wait(operations=0)
        return job

    def round(self, code=0):
        done = self.cluster.sweep()
        assert done.returncode == code, f"exit {done.returncode}\n{done.stderr}\n{self.cluster.log_tails(30)}"
        return self.now

    def rounds(self, condition, most=3, apart=0.0):
        """Rounds until it is so; no more than `most`."""
        for _ in range(most):
            time.sleep(apart)
            self.round()
            self.emulator.wait(operations=0)
            if condition(self.now):
                return self.now
        raise AssertionError(f"not after {most} rounds\n{self.cluster.situation()}")

    def wait(self, condition, seconds, what):
        return self.cluster.wait_for(lambda: condition(self.now), seconds, what, interval=0.3)

    def config(self, name, **changes):
        """Another configuration file; its path. A section is merged, a None takes a key away."""
        settings = json.loads(json.dumps(self.cluster.flex_config))
        for key, value in changes.items():
            if isinstance(value, dict):
                value = {**settings.get(key, {}), **value}
            settings[key] = value
        settings = {key: value for key, value in settings.items() if value is not None}
        return self.cluster.sandbox.write(f"etc/{name}", to_yaml(settings), 0o600)

    def run(self, *options, env=None, timeout=60):
        """flex-sweeper, to its end."""
        cluster = self.cluster
        return cluster.sandbox.run([cluster.program("flex-sweeper"), *options], env={**cluster.env(), **(env or {})},
                                   check=False, timeout=timeout)

    def spawn(self, *options, log, env=None):
        cluster = self.cluster
        return cluster.sandbox.spawn([cluster.program("flex-sweeper"), *options], log,
                                     env={**cluster.env(), **(env or {})})

    def save_logs(self, target):
        self.cluster.save_logs(target)


class Still(Desk):
    """Static nodes that are up and a job in the queue; then nothing but rounds, back to back."""

    ROUNDS = 5760  # a day at the default interval of 15 s
    SETTLED = 500  # rounds after which memory must not grow

    def __init__(self, build):
        super().__init__(build, [Nodeset("up", 2, {"static_nodes": "up-[0-1]"}, {"SuspendTime": "INFINITE"}),
                                 Nodeset("wait", 4, C)])
        self.sizes = []  # (round, VmRSS in KiB)
        self.counts = {}
        self.child = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self):
        self.submit("wait", "-N4")
        self.queued("wait-0")
        self.cluster.wait_for(lambda: self.cluster.sweep().returncode == 0 and self.now.is_up("up-0", "up-1"), 60,
                              "the static nodes to be up", interval=1)
        self.calls_before = self._calls()
        self.child = self.cluster.sandbox.spawn(
            ["nice", "-n", "10", self.cluster.program("flex-sweeper"), "--rounds", self.ROUNDS, "--interval", "0",
             "--log-file", self.cluster.dir / "log" / "day.log"], "day.out", env=self.cluster.env())
        self._thread.start()

    def _calls(self):
        counters = self.emulator.counters()["calls"]
        return {method: sum(counts.values()) for method, counts in counters.items()}

    def calls_made(self):
        return {method: count - self.calls_before.get(method, 0) for method, count in self._calls().items()
                if count > self.calls_before.get(method, 0)}

    def _watch(self):
        while self.child.poll() is None:
            try:
                with open(f"/proc/{self.child.pid}/status", encoding="ascii") as file:
                    size = [int(line.split()[1]) for line in file if line.startswith("VmRSS:")]
                number = self.cluster.sweeper_status().get("round", 0)
            except (OSError, ValueError):
                continue
            if size and number:
                self.sizes.append((number, size[0]))
            time.sleep(0.1)

    def join(self, seconds=180):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"still running, in round {self.sizes[-1:]}"
        return self.child.returncode
