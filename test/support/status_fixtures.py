# SPDX-License-Identifier: GPL-2.0-or-later
"""status.json as the sweeper writes it, for the page: a small cluster, a big one, an empty one, and trouble."""
import time

STATES = ("allocated", "idle", "booting", "waiting", "draining", "drained", "powering_down", "down", "powered_down")


def iso(seconds_from_now=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds_from_now))


def status(**more):
    """An idle sweeper without nodesets."""
    return {
        "version": "0.1.0", "cluster": "hpc", "region": "us-central1", "pid": 4711, "http": "127.0.0.1:9762", "now": iso(),
        "state": "active", "why": "", "started": iso(-86400), "interval_seconds": 15, "round": 5760, "last_complete_round": iso(-3),
        "failures_in_a_row": 0, "last_round": {"started": iso(-3), "milliseconds": 214, "complete": True, "error": "", "calls": 7,
                                               "done": 0, "failed": 0, "again": 0, "postponed": 0},
        "groups": 0, "entries": 0, "reservations": 0, "nodesets": [], "requests": [], "vms": [], "jobs": [], "retries": [],
        "repairs": [], "leaks": [], "actions": [], **more}


def nodeset(name, states, **more):
    total = sum(states.values())
    return {"name": name, "mode": "queued", "nodes": total, "static_nodes": 0, "vms": states.get("allocated", 0) + states.get("idle", 0),
            "states": states, "nodes_by_state": {state: f"{name}-[0-{count - 1}]" for state, count in states.items()},
            "jobs_waiting": 0, "jobs_running": 0, **more}


def request(job, nodeset_name, nodes, n, waited, **more):
    return {"name": f"j{job}-0f3a", "group": f"hpc-{nodeset_name}", "nodeset": nodeset_name, "state": "ACCEPTED", "job": job,
            "attempt": 1, "step": 0, "mode": "queued", "zones": ["us-central1-a", "us-central1-b"], "nodes": nodes, "n": n,
            "run_seconds": 15300, "created": iso(-waited), "waited_seconds": waited, **more}


def job(number, nodeset_name, nodes, n, state, since, name="train", user="alice", **more):
    return {"id": number, "name": name, "user": user, "state": state, "partition": nodeset_name, "nodeset": nodeset_name,
            "nodes": nodes, "n": n, "request": f"j{number}-0f3a", "since": iso(-since), "time_limit_seconds": 14400, "ends": "",
            "note": "", **more}


def vm(nodeset_name, nodes, n, jobs, since, left, **more):
    return {"nodeset": nodeset_name, "group": f"hpc-{nodeset_name}", "request": f"j{jobs[0] if jobs else 0}-0f3a", "nodes": nodes,
            "n": n, "status": "up", "zone": "us-central1-a", "since": iso(-since), "ends": iso(left), "left_seconds": left,
            "jobs": jobs, "jobs_n": len(jobs), **more}


def action(ago, rule, what, why, **more):
    return {"time": iso(-ago), "rule": rule, "what": what, "target": "", "nodes": "", "job": 0, "why": why, "result": "done", "times": 1, **more}


def small():
    """Two nodesets; one job runs, one waits in Google's queue, one for its turn."""
    return status(
        nodesets=[nodeset("a3u", {"allocated": 16, "waiting": 8, "powered_down": 40}, jobs_waiting=2, jobs_running=1, vms=16,
                          next_end=iso(9000)),
                  nodeset("g2", {"idle": 2, "powered_down": 6}, static_nodes=2)],
        requests=[request(102, "a3u", "a3u-[16-23]", 8, 1500, reason="ZONE_RESOURCE_POOL_EXHAUSTED",
                          message="There is no capacity in us-central1-a.", estimate=iso(2400), gives_up=iso(5700)),
                  request(101, "a3u", "a3u-[0-15]", 16, 7000, state="SUCCEEDED")],
        vms=[vm("a3u", "a3u-[0-15]", 16, [101], 6300, 9000), vm("g2", "g2-[0-1]", 2, [], 300000, 304800, request="")],
        jobs=[job(102, "a3u", "a3u-[16-23]", 8, "waiting", 1500, name="finetune", user="bob", phase="queued"),
              job(103, "a3u", "a3u-24", 1, "waiting", 60, name="eval", request="", note="waiting for its turn: 12 jobs are before it",
                  phase="turn"),
              job(101, "a3u", "a3u-[0-15]", 16, "running", 6000, ends=iso(9000))],
        actions=[action(900, "orphan_instance", "delete_instances", "no powered-up node claims it", nodes="a3u-30", target="hpc-a3u"),
                 action(30, "job_note", "tell_job", "how it stands", job=102)])


def served():
    """Jobs that wait, but not in Google's queue any more, or not yet: booting, between two attempts, VMs without a request."""
    return status(
        nodesets=[nodeset("a3u", {"booting": 8, "waiting": 4}, jobs_waiting=3, vms=8)],
        requests=[request(102, "a3u", "a3u-[0-7]", 8, 1500, state="SUCCEEDED"),
                  request(102, "a3u", "a3u-[0-7]", 8, 9000, state="FAILED", name="j102-old", reason="STOCKOUT", message="none")],
        vms=[vm("a3u", "a3u-[0-7]", 8, [102], 60, 15000, status="booting")],
        jobs=[job(102, "a3u", "a3u-[0-7]", 8, "waiting", 1500, name="finetune", phase="booting"),
              job(103, "a3u", "a3u-[8-9]", 2, "waiting", 900, name="eval", request="", phase="retry", retry_at=iso(130)),
              job(104, "a3u", "a3u-[10-11]", 2, "waiting", 60, name="bulk", request="", phase="creating")])


def big(nodes=10_000):
    """Ten nodesets of a thousand nodes, as many rows as there may be."""
    sets = [nodeset(f"set{i}", {"allocated": 600, "idle": 40, "booting": 60, "waiting": 200, "powered_down": nodes // 10 - 900},
                    jobs_waiting=10, jobs_running=30, next_end=iso(600 * (i + 1))) for i in range(10)]
    rows, jobs, requests = [], [], []
    for i in range(300):
        name = f"set{i % 10}"
        hosts = f"{name}-[{i // 10 * 20}-{i // 10 * 20 + 19}]"
        rows.append(vm(name, hosts, 20, [1000 + i], 600 * (i % 40), 600 + 300 * i))
        jobs.append(job(1000 + i, name, hosts, 20, "running", 300 * (i % 40), ends=iso(600 + 300 * i)))
    for i in range(100):
        name = f"set{i % 10}"
        hosts = f"{name}-[{600 + i // 10 * 20}-{600 + i // 10 * 20 + 19}]"
        requests.append(request(2000 + i, name, hosts, 20, 60 * i, reason="ZONE_RESOURCE_POOL_EXHAUSTED", message="none", estimate=iso(60 * i)))
        jobs.append(job(2000 + i, name, hosts, 20, "waiting", 60 * i))
    actions = [action(10 * i, "finished_request", "delete_request", "done for an hour", target=f"j{i}-x") for i in range(100)]
    return status(nodesets=sets, vms=rows, jobs=jobs, requests=requests, actions=actions)


def troubled():
    """Stopped, leaking, retrying, with a view that is not complete."""
    return status(
        state="waiting", why="Compute Engine: listing the groups: HTTP 503", failures_in_a_row=2,
        nodesets=[nodeset("a3u", {"down": 2, "unknown": 1, "powering_down": 3, "powered_down": 4},
                          stopped="3 boots in a row failed: startup script exited with 1")],
        requests=[request(7, "a3u", "a3u-[0-1]", 2, 300, state="FAILED", attempt=2, reason="QUOTA_EXCEEDED",
                          message="Quota 'NVIDIA_H100_GPUS' exceeded. Limit: 8.0", retry_at=iso(90))],
        vms=[vm("a3u", "a3u-7", 1, [], 400, 200, status="leaving"), {**vm("a3u", "a3u-8", 1, [], 0, 0, status="dead"), "since": "", "ends": ""}],
        retries=[{"nodes": "a3u-0", "n": 1, "attempts": 2, "refusals": 1, "next": iso(90), "why": "QUOTA_EXCEEDED: no"}],
        repairs=[{"node": "a3u-5", "count": 3, "reason": "GPU fell off the bus", "given_up": True, "last": iso(-4000)}],
        actions=[action(20, "orphan_instance", "delete_instances", "no powered-up node claims it", nodes="a3u-9", target="hpc-a3u",
                        result="failed", error="Required 'compute.instances.delete' permission", times=37, first=iso(-600)),
                 action(10, "unbacked_node", "DOWN", "its VM is gone", nodes="a3u-2", result="again")],
        leaks=[{"kind": "vm", "target": "a3u-9", "since": iso(-3600), "why": "no node wants it, and it is not deleted"}])


HOSTILE = "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>\"'&amp;"


def hostile():
    """Every text from outside is an attack."""
    shown = small()
    shown["why"] = shown["cluster"] = shown["region"] = HOSTILE
    shown["nodesets"][0].update(name=HOSTILE, stopped=HOSTILE, mode=HOSTILE)
    shown["nodesets"][0]["states"] = {HOSTILE: 1, "__proto__": 2, "allocated": 3}
    for row in shown["requests"] + shown["vms"] + shown["jobs"] + shown["actions"]:
        row.update({key: HOSTILE for key, value in row.items()
                    if isinstance(value, str) and key not in ("state", "status", "since", "ends", "created", "time", "estimate", "gives_up")})
    shown["leaks"] = [{"kind": HOSTILE, "target": HOSTILE, "since": HOSTILE, "why": HOSTILE}]
    shown["retries"] = [{"nodes": HOSTILE, "attempts": 1, "next": "no time", "why": HOSTILE}]
    return shown
