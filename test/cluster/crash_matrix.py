# SPDX-License-Identifier: GPL-2.0-or-later
"""A program dies or meets trouble at one of its calls; what is right after it and the sweeper's rounds?

A clean run of each scene gives its calls, from the emulator's journal. Then every call has a case for
every kind of trouble, so a call that is new is covered without anyone remembering. The programs that
slurmctld runs are no-ops here: jobs stay CONFIGURING, nodes POWERING_UP or POWERED_DOWN, and one
slurmctld serves all workers. A worker has its own emulator, nodes and jobs, and one case at a time.
"""
import queue
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from crash_stage import LARGE, SMALL, Worker, code_of
from harness.slurm import Cluster, find_program

KINDS = {"kill-before": "hold_before", "kill-after": "hold_after", "lost-reply": "lost_reply",
         "429": "429", "503": "503", "reset": "reset", "gives-up": "503"}
ROUNDS = 2          # of the sweeper, after which everything must be right
MOST_ROUNDS = 8     # that a scene may take to be right where nothing goes wrong
READS = ("get", "list", "wait", "aggregatedList")


@dataclass(frozen=True)
class Call:
    """The how-manieth call of a method in a run; of the sweeper's run in that round."""
    method: str
    number: int
    round: int = 0
    is_look: bool = False  # before the run's first write

    def __str__(self):
        where = f"round-{self.round + 1}:" if self.round else ""
        return f"{where}{self.method.replace('regionInstanceGroupManager', '~')}#{self.number + 1}"


@dataclass
class Outcome:
    """What a case, or a clean run (without call and kind), led to."""
    scene: object
    call: Call = None
    kind: str = "clean"
    complaints: list = field(default_factory=list)
    story: str = ""
    calls: list = field(default_factory=list)  # of a clean run
    rounds: int = ROUNDS                       # that a clean run took

    @property
    def name(self):
        return f"{self.scene.name}: {self.kind}" + (f" at {self.call}" if self.call else "")

    def __str__(self):
        return f"{self.name}\n  " + "\n  ".join(self.complaints) + f"\n{self.story}"


def is_write(entry):
    return not entry["method"].rpartition(".")[2].startswith(READS)


def calls_of(journal, number=0):
    """Every call of a run, known by its method: side by side, they come in any order."""
    seen = Counter()
    calls = []
    is_look = True
    for entry in journal:
        is_look = is_look and not is_write(entry)
        calls.append(Call(entry["method"], seen[entry["method"]], number, is_look))
        seen[entry["method"]] += 1
    return calls


def without_looks(outcomes):
    """Their calls; of the looks, which are the same in all scenes of a program, each only once."""
    seen = set()
    for outcome in outcomes:
        for call in outcome.calls:
            look = (outcome.scene.program, call.method)
            if not call.is_look or look not in seen:
                yield outcome, call
            seen.add(look)


def run_clean(stage):
    """The scene without trouble: which calls there are, and that it ends right."""
    outcome = Outcome(stage.scene)
    stage.begin()
    if not stage.scene.is_sweeper:
        code = code_of(stage.start_program())
        journal = stage.emulator.journal()
        outcome.calls = calls_of(journal)
        stage.emulator.clear_journal()
        outcome.complaints += [f"the program ended with {code}"] if code else []
        outcome.complaints += sweep_rounds(stage, ROUNDS)
        outcome.complaints += [f"the sweeper had something to do: {entry['method']}"
                               for entry in stage.emulator.journal() if is_write(entry)]
        outcome.complaints += stage.check()
    else:
        acting = []
        for number in range(MOST_ROUNDS):
            stage.emulator.clear_journal()
            if number:
                stage.pause()
            code = stage.sweep()
            journal = stage.emulator.journal()
            if any(is_write(entry) for entry in journal):
                acting.append(calls_of(journal, number))
            outcome.rounds = max(ROUNDS, number + 1)
            outcome.complaints = ([f"round {number + 1} ended with {code}"] if code else []) + stage.check()
            if not outcome.complaints:
                break
        outcome.calls = [call for calls in acting[:2] for call in calls]
    if not outcome.calls:
        outcome.complaints.append("no call was made")
    if outcome.complaints:
        outcome.story = stage.story()
    return outcome


def sweep_rounds(stage, count):
    """Good rounds, with the graces' time between them."""
    complaints = []
    for number in range(count):
        if number:
            stage.pause()
        if code := stage.sweep():
            complaints.append(f"good round {number + 1} of the sweeper ended with {code}")
    return complaints


def run_case(stage, call, kind, rounds):
    outcome = Outcome(stage.scene, call, kind)
    stage.begin()
    for _ in range(call.round):
        stage.sweep()
        stage.pause()
    is_lasting = kind == "gives-up"
    stage.emulator.fault(call.method, KINDS[kind], after=call.number, retry_after=0, count=1000 if is_lasting else 1)
    child = stage.start_program(stage.hasty if is_lasting else None)
    if kind.startswith("kill"):
        outcome.complaints += stage.kill_at_the_held_call(child)
    elif (code := code_of(child)) not in ((0, 1) if is_lasting else (0,)):
        outcome.complaints.append(f"the program ended with {code}")
    if stage.emulator.faults()[0]["hits"] == 0:
        outcome.complaints.append("the call was not made")
    stage.emulator.clear_faults()
    outcome.complaints += sweep_rounds(stage, rounds)
    outcome.complaints += stage.check()
    if outcome.complaints:
        outcome.story = stage.story()
    return outcome


class Crew:
    """Runs cases side by side, each on a worker that has the scene's nodeset."""

    def __init__(self, workers):
        self.kinds = {}  # nodesets to a pool of threads and its free workers
        for worker in workers:
            self.kinds.setdefault(tuple(worker.nodesets), queue.SimpleQueue()).put(worker)
        self.pools = {kind: ThreadPoolExecutor(free.qsize()) for kind, free in self.kinds.items()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pool in self.pools.values():
            pool.shutdown(cancel_futures=True)

    def run(self, cases):
        futures = []
        for run, scene, *arguments in cases:
            kind = next(kind for kind in self.kinds if (scene.side, scene.size) in kind)
            futures.append(self.pools[kind].submit(self._run_one, self.kinds[kind], run, scene, arguments))
        return [future.result() for future in futures]

    @staticmethod
    def _run_one(free, run, scene, arguments):
        worker = free.get()
        try:
            return run(worker.stage(scene), *arguments)
        except Exception as error:  # one broken case must not hide the others
            call, kind = arguments[:2] if arguments else (None, "clean")
            return Outcome(scene, call, kind, [repr(error)])
        finally:
            free.put(worker)


class Results:
    """The outcomes of all scenes that are to be tested, by scene. All run at once: mostly they wait."""

    def __init__(self, matrix, scenes, tell, **options):
        self.cluster = matrix  # whose logs are saved
        self.outcomes = {scene.name: [] for scene in scenes}
        for outcome in matrix.run(scenes, tell, **options):
            self.outcomes[outcome.scene.name].append(outcome)

    def check(self, scene):
        outcomes = self.outcomes[scene]
        assert len(outcomes) > len(KINDS), outcomes
        failed = [outcome for outcome in outcomes if outcome.complaints]
        assert not failed, f"{len(failed)} of {len(outcomes)} cases:\n" + "\n".join(map(str, failed))


class Matrix:
    """The cluster and its workers; `run` gives the outcomes of all cases of the scenes."""

    def __init__(self, build, small=14, large=3):
        self.workers = [Worker(number, SMALL if number < small else LARGE, build) for number in range(small + large)]
        noop = {"ResumeProgram": (find_program("true"), "resume"), "SuspendProgram": (find_program("true"), "suspend")}
        self.cluster = Cluster([nodeset for worker in self.workers for nodeset in worker.nodesets.values()],
                               build=build, programs=noop)
        self.build = build

    def start(self):
        self.cluster.start()
        for directory, name in (("resume", "flex-resume"), ("suspend", "flex-suspend"), ("sweeper", "flex-sweeper")):
            self.cluster.sandbox.install(self.build / directory / name)
        for worker in self.workers:
            worker.start(self.cluster)
        waiting = sum(size for worker in self.workers for side, size in worker.nodesets if side != "off")
        self.cluster.wait_for(lambda: self._powering_up() == waiting, 60, f"{waiting} nodes to be POWERING_UP")

    def _powering_up(self):
        text = self.cluster.slurm("scontrol", "-o", "show", "nodes").stdout
        return sum("POWERING_UP" in line for line in text.splitlines())

    def run(self, scenes, tell=print, *, all_looks=True):
        """`all_looks`: trouble also where a scene only looks, as others do."""
        began = time.monotonic()
        tell("")
        with Crew(self.workers) as crew:
            clean = crew.run([(run_clean, scene) for scene in scenes])
            for outcome in clean:
                tell(f"  {outcome.scene.name}: {len(outcome.calls)} calls: " +
                     ", ".join(str(call) for call in outcome.calls))
            calls = [(outcome, call) for outcome in clean for call in outcome.calls]
            if not all_looks:
                calls = without_looks(clean)
            outcomes = clean + crew.run([(run_case, outcome.scene, call, kind,
                                          outcome.rounds + outcome.scene.more_rounds)
                                         for outcome, call in calls for kind in KINDS])
        for kind, count in Counter(outcome.kind for outcome in outcomes).items():
            failed = sum(bool(outcome.complaints) for outcome in outcomes if outcome.kind == kind)
            tell(f"  {kind:<12} {count:>4} cases, {failed} failed")
        tell(f"  {len(outcomes)} cases in {time.monotonic() - began:.0f} s")
        return outcomes

    def close(self):
        self.cluster.close()

    def save_logs(self, target):
        self.cluster.save_logs(target)
        for worker in self.workers:
            directory = target / f"emulator-{worker.number}"
            directory.mkdir(exist_ok=True)
            worker.emulator.save(directory)
