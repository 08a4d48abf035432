# SPDX-License-Identifier: GPL-2.0-or-later
"""What must be true in the end."""
from . import logs, site
from .outcome import outcome

OFF = {"IDLE", "CLOUD", "POWERED_DOWN"}


def outcomes(run):
    """[(name, what, problem)], one for each job or task."""
    found = []
    for one in run.jobs.values():
        if not one.records and one.client is not None and one.client.poll() and run.done["restart_slurmctld"]:
            found.append((one.name, "not taken by slurmctld, which was away", ""))
        elif not one.records:
            found.append((one.name, "unknown", "slurmctld does not know it"))
        for record in one.records:
            nodes = logs.expand(record.get("NodeList", "").replace("(null)", ""))
            lost = [node for node in nodes if run.lost.get(node)]
            what, problem = outcome(record, is_cancelled=one.is_cancelled, lost_nodes=lost)
            found.append((f"{one.name} (job {record['JobId']})", what, problem))
    return found


def _jobs(run):
    return [f"{name} {problem}" for name, _, problem in outcomes(run) if problem]


def _clients(run):
    return [f"the srun of {one.name} still runs" for one in run.jobs.values()
            if one.client is not None and one.client.poll() is None]


def _cloud(run):
    state = run.emulator.state()
    left = [f"VM {vm['name']} is left ({vm['status']})" for vm in state["vms"]
            if not site.is_foreign(vm["name"])]
    left += [f"request {request['group']}/{request['name']} is left ({request['state']})"
             for request in state["requests"]]
    left += [f"group {group['name']} is left" for group in state["groups"]
             if not site.is_foreign(group["name"])]
    return left


def _nodes(run):
    problems = []
    for record in run.node_records():
        words = set(record["State"].replace("*", "").split("+")) - {"PLANNED"}
        if words != OFF:
            problems.append(f"node {record['NodeName']} is {record['State']} ({record.get('Reason', '')})")
    return problems


def _leaks(run):
    """What the sweeper itself thinks should be gone."""
    return [f"leaked since {leak['since']}: {leak['kind']} {leak['target']}: {leak['why']}"
            for leak in run.cluster.sweeper_status().get("leaks", [])]


def unmet(run):
    """Conditions that time may still bring about."""
    return _jobs(run) + _clients(run) + _nodes(run) + _cloud(run) + _leaks(run)


def _daemons(run):
    cluster = run.cluster
    dead = [name for name, child in (("slurmctld", cluster.ctld), ("flex-sweeper", cluster.sweeper))
            if child.poll() is not None]
    codes = [code for code in run.exit_codes if code != 0]
    return ([f"{name} has ended" for name in dead] +
            [f"a sweeper that got SIGTERM ended with {code}" for code in codes])


def _foreigners(run, before):
    try:
        after = site.foreigners(run.emulator)
    except RuntimeError as error:
        after = str(error)
    problems = [] if after == before else [f"what is not ours was {before} and is {after}"]
    for entry in journal(run)[run.first_call:]:
        write = logs.write_of(entry)
        if write is not None and any(map(site.is_foreign, logs.all_names(write))):
            problems.append(f"a call on what is not ours: {entry['method']} {entry['path']}")
    return problems


def _work_left(run):
    """A sweeper that looks now finds nothing to do."""
    done = run.cluster.sweep("--dry-run")
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return [f"a dry run ends with {done.returncode} and says: {'; '.join(lines) or done.stderr}"] \
        if lines or done.returncode else []


def journal(run):
    return [entry for life in run.emulator.earlier for entry in life] + run.emulator.journal()


def log_lines(run):
    return [line for name in ("flex-resume", "flex-suspend", "flex-resume-fail", "flex-sweeper")
            for line in logs.parse_lines(run.cluster.log(f"{name}.log"))]


def _explanations(run):
    lines = log_lines(run)
    problems = [f"no log line explains {write.method} at {write.at:.1f} of "
                f"{' or '.join(','.join(sorted(names)) for names in write.names)}"
                for write in logs.unexplained(journal(run)[run.first_call:], lines)]
    problems += [f"an action without rule or reason: {line.text}" for line in lines
                 if line.event == "action" and not (line.words.get("rule") and line.words.get("why"))]
    return problems


def _circles(run):
    return [f"{times} rounds in a row the sweeper said: {text}"
            for times, text in logs.circles(logs.parse_lines(run.cluster.log("flex-sweeper.log")))]


def _enough(run):
    """Trouble must not be all there is."""
    found = outcomes(run)
    completed = sum(what == "completed" for _, what, _ in found)
    least = max(5, sum(what != "cancelled" for _, what, _ in found) // 2)
    return [] if completed >= least else [f"only {completed} jobs have completed, at least {least} should have"]


def _invariants(run):
    told, untrue = run.cluster.violations()
    return told + untrue


def final(run, foreign):
    """Conditions that are looked at once, at the end."""
    return _enough(run) + _invariants(run) + _daemons(run) + _foreigners(run, foreign) + _work_left(run) + _explanations(run) + _circles(run)

