# SPDX-License-Identifier: GPL-2.0-or-later
"""flexctl doctor: nothing on a good set-up, and each seeded mistake by its own name and no other."""
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness import conf
from harness.conf import Nodeset
from harness.emulator import REGION, Emulator
from harness.slurm import Cluster, slurm_version

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ZONES = (f"{REGION}-a", f"{REGION}-b")
OLD = slurm_version() < (23, 11)
SCHEDULING = {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": "604800"},
              "instanceTerminationAction": "DELETE", "onHostMaintenance": "TERMINATE", "automaticRestart": False}
NO_RESERVATION = {"consumeReservationType": "NO_RESERVATION"}
NOTES = {"iam.service_agent_unseen", "slurm.plugin"}
PARTITION = {"MaxTime": "6-23:45:00", "SuspendTime": None, "SuspendTimeout": None, "ResumeTimeout": None}
EXTRA = ["SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,cloud_reg_addrs", "SuspendTime=300",
         "SuspendTimeout=120", "ResumeTimeout=65533", "SuspendExcNodes=gpu-[0-1]"]
QUOTA = {"PREEMPTIBLE_NVIDIA_H100_GPUS": 64, "NVIDIA_A100_GPUS": 0, "A2_CPUS": 1000, "PREEMPTIBLE_CPUS": 10000, "CPUS": 10000}


def template(name, machine="a3-highgpu-8g", more=None, **scheduling):
    """One for Flex Start, but for what is said; None takes a field away."""
    fields = {key: value for key, value in {**SCHEDULING, **scheduling}.items() if value is not None}
    properties = {"machineType": machine, "scheduling": fields, "reservationAffinity": NO_RESERVATION, **(more or {})}
    return {"name": name, "properties": properties}


TEMPLATES = [
    template("flex-template"),
    template("standard", provisioningModel="STANDARD"),
    template("spot", provisioningModel="SPOT"),
    template("preemptible", preemptible=True),
    template("stops", instanceTerminationAction="STOP"),
    template("migrates", onHostMaintenance="MIGRATE"),
    template("reserved", more={"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}}),
    template("endless", maxRunDuration=None),
    template("month", maxRunDuration={"seconds": str(30 * 86400)}),
    template("day", maxRunDuration={"seconds": "86400"}),
    template("fixed-ip", more={"networkInterfaces": [{"network": "global/networks/default", "networkIP": "10.0.0.7"}]}),
    template("nat-ip", more={"networkInterfaces": [{"accessConfigs": [{"natIP": "203.0.113.7"}]}]}),
    template("placed", more={"resourcePolicies": ["compact"]}),
    template("a4x", "a4x-highgpu-4g"),
    template("plain", "n2-standard-4"),
    template("a2", "a2-highgpu-1g"),
    template("newer"),
]


@dataclass
class Mistake:
    """What is done wrong, and what is found."""
    name: str
    finding: str
    severity: str = "error"
    slurm: dict = field(default_factory=dict)    # pattern in slurm.conf: what stands there instead
    yaml: dict = field(default_factory=dict)     # keys of flex-start.yaml, dotted; None takes it away
    cloud: dict = field(default_factory=dict)    # settings of the emulator
    says: str = ""                               # a pattern in what is found
    place: str = ""                              # a pattern in the text of the line that it names


def slurm(name, finding, pattern, text="", severity="error", says="", place=None):
    return Mistake(name, finding, severity, slurm={pattern: text}, says=says,
                   place=(text.split("\n")[0] if place is None else place))


def nodeset(name, finding, severity="error", says="", place="", **keys):
    return Mistake(name, finding, severity, yaml={f"nodesets.gpu.{key}": value for key, value in keys.items()}, says=says,
                   place=place)


def of_template(name, finding, severity="error", says=""):
    return nodeset(f"template {name}", finding, severity, says, f'instance_template: "{name}"', instance_template=name)


def denied(permission, severity="error", finding="iam.permission"):
    return Mistake(f"no {permission}", finding, severity, cloud={"denied_permissions": [permission]}, says=re.escape(permission))


MISTAKES = [
    # flex-start.yaml
    nodeset("unknown key", "config.problem", zone="us-central1-a", says="zone", place="zone:"),
    nodeset("unreadable node list", "config.problem", nodes="gpu-[0-", says="gpu-", place="nodes:"),
    nodeset("too long a life", "config.problem", dws_flex={"max_run_duration": "8d"}, says="8d", place="max_run_duration"),
    Mistake("no region's zone", "config.problem", yaml={"defaults.zones": ["us-central1"]}, place="zones"),
    # slurm.conf
    slurm("no ResumeProgram", "slurm.resume_program", r"ResumeProgram=.*\n"),
    slurm("no such ResumeProgram", "slurm.resume_program", r"ResumeProgram=.*", "ResumeProgram=/nowhere/flex-resume", says="there is no"),
    slurm("another's SuspendProgram", "slurm.suspend_program", r"SuspendProgram=.*", "SuspendProgram=/bin/true", says="not flex-suspend"),
    slurm("no ResumeFailProgram", "slurm.resume_fail_program", r"ResumeFailProgram=.*\n"),
    slurm("a resume rate", "slurm.resume_rate", r"ResumeRate=0", "ResumeRate=300"),
    slurm("a suspend rate", "slurm.suspend_rate", r"SuspendRate=0\n", severity="warning"),
    slurm("no ResumeTimeout", "slurm.resume_timeout", r"\nResumeTimeout=.*", says="not set"),
    slurm("a short ResumeTimeout", "slurm.resume_timeout", r"\nResumeTimeout=65533", "\nResumeTimeout=600", "warning", place="ResumeTimeout=600"),
    slurm("ResumeTimeout 65534", "slurm.resume_timeout", r"\nResumeTimeout=65533", "\nResumeTimeout=65534", place="ResumeTimeout=65534"),
    slurm("ResumeTimeout of 7 days", "slurm.resume_timeout", r"\nResumeTimeout=65533", "\nResumeTimeout=604800", place="ResumeTimeout=604800"),
    slurm("a short ResumeTimeout of the partition", "slurm.resume_timeout", r"(PartitionName=gpu .*)", r"\1 ResumeTimeout=600", "warning",
          says="partition gpu", place="PartitionName=gpu"),
    slurm("no SuspendTime", "slurm.suspend_time", r"\nSuspendTime=.*", place=""),
    slurm("a short SuspendTimeout", "slurm.suspend_timeout", r"\nSuspendTimeout=120", "\nSuspendTimeout=10", "warning", place="SuspendTimeout=10"),
    slurm("no idle_on_node_suspend", "slurm.idle_on_node_suspend", r"idle_on_node_suspend,", place="SlurmctldParameters"),
    slurm("ReturnToService 1", "slurm.return_to_service", r"ReturnToService=2", "ReturnToService=1", "warning"),
    slurm("nodes missing", "nodes.missing", r"NodeName=gpu-\[0-7\]", "NodeName=gpu-[0-5]", says=r"gpu-\[6-7\]", place="nodes:"),
    slurm("nodes not CLOUD", "nodes.not_cloud", r"(NodeName=gpu.*)State=CLOUD", r"\1State=UNKNOWN", place="NodeName=gpu"),
    slurm("cloud nodes of nobody", "nodes.unmanaged", r"\nNodeName=gpu", "\nNodeName=old-[0-3] CPUs=1 State=CLOUD\nNodeName=gpu",
          says=r"old-\[0-3\]", place="NodeName=old"),
    slurm("static nodes are suspended", "nodes.static_suspend", r"\nSuspendExcNodes=.*", "\nSuspendExcNodes=gpu-0", says="gpu-1",
          place="SuspendExcNodes=gpu-0"),
    slurm("a partition that is never suspended", "nodes.never_suspended", r"(PartitionName=gpu .*)", r"\1 SuspendTime=INFINITE", "warning",
          says=r"gpu-\[2-7\]", place="PartitionName=gpu"),
    slurm("too many nodes are kept", "nodes.never_suspended", r"\nSuspendExcNodes=.*", "\nSuspendExcNodes=gpu-[0-7]", "warning",
          says=r"gpu-\[2-7\]", place="SuspendExcNodes"),
    slurm("MaxTime of a month", "partition.max_time", r"MaxTime=6-23:45:00", "MaxTime=30-00:00:00", "warning", place="PartitionName=gpu"),
    slurm("no DefaultTime", "partition.default_time", r" DefaultTime=\S+", severity="warning", place="PartitionName=gpu"),
    slurm("nodes in no partition", "partition.none", r"(PartitionName=gpu .*)Nodes=gpu-\[0-7\]", r"\1Nodes=gpu-[0-6]", "warning", says="gpu-7",
          place=""),
    slurm("no such user", "slurm.user", r"SlurmUser=.*", "SlurmUser=nobody-has-this-name"),
    slurm("a line that is none", "slurm.conf_line", r"\nTreeWidth", "\nResumeRate 0\nTreeWidth", place="ResumeRate 0"),
    slurm("a key without a value", "slurm.conf_line", r"\nTreeWidth", "\nSuspendExcParts=\nTreeWidth", place="SuspendExcParts="),
    slurm("a list that is none", "slurm.conf_line", r"\nNodeName=gpu", "\nNodeName=x[0- State=CLOUD\nNodeName=gpu", place=r"NodeName=x\[0-"),
    slurm("a setting that was not loaded", "slurm.not_loaded", r"\nSuspendTime=300", "\nSuspendTime=900", "warning", says="SuspendTime", place=""),
    slurm("a key that Slurm does not know", "slurm.conf_refused", r"\nTreeWidth", "\nResumeSpeed=9\nTreeWidth", place=""),
    slurm("nobody answers", "slurm.unreachable", r"SlurmctldPort=.*", "SlurmctldPort=1", place=""),
    # templates
    Mistake("no such template", "template.missing", yaml={"nodesets.gpu.instance_template": "nobody"}, place="instance_template"),
    of_template("standard", "template.model"),
    of_template("spot", "template.spot"),
    of_template("preemptible", "template.spot"),
    of_template("stops", "template.termination"),
    of_template("migrates", "template.maintenance"),
    of_template("reserved", "template.reservation"),
    of_template("endless", "template.no_run_duration"),
    of_template("month", "template.run_duration"),
    of_template("day", "template.run_duration", "warning"),
    of_template("fixed-ip", "template.static_ip", says="10.0.0.7"),
    of_template("nat-ip", "template.static_ip", says="203.0.113.7"),
    of_template("placed", "template.placement"),
    of_template("a4x", "machine.no_flex_start"),
    of_template("plain", "machine.no_flex_start"),
    nodeset("placement of a machine that cannot be placed", "machine.placement", placement={"max_distance": 2}),
    Mistake("a margin as long as the VM's life", "partition.margin", "warning", slurm={r"MaxTime=6-23:45:00": "MaxTime=00:01:00"},
            yaml={"nodesets.gpu.run_duration_margin": "7d"}, place="run_duration_margin"),
    nodeset("another machine type", "template.machine_type", "warning", machine_type="a4-highgpu-8g"),
    # zones, quotas, the project
    Mistake("a zone that is not there", "zone.missing", yaml={"defaults.zones": [f"{REGION}-a", f"{REGION}-x"]}, place="zones"),
    Mistake("a zone that is down", "zone.down", "warning", cloud={"zones_down": [f"{REGION}-b"]}, place="zones"),
    Mistake("a machine that a zone lacks", "machine.not_in_zone", "warning",
            cloud={"machine_types": {f"{REGION}-b": ["n1-standard-1"]}}, says=f"{REGION}-b", place="zones"),
    Mistake("no quota for GPUs", "quota.gpus", cloud={"quota": {"PREEMPTIBLE_NVIDIA_H100_GPUS": 0}}),
    Mistake("too little quota for GPUs", "quota.gpus", "warning", cloud={"quota": {"PREEMPTIBLE_NVIDIA_H100_GPUS": 32}}, says="64"),
    Mistake("too few CPUs", "quota.cpus", "warning", cloud={"quota": {"PREEMPTIBLE_CPUS": 300}}, says="PREEMPTIBLE_CPUS"),
    Mistake("too few CPUs of the family", "quota.cpus", "warning", yaml={"nodesets.gpu.instance_template": "a2"},
            cloud={"quota": {"A2_CPUS": 24, "NVIDIA_A100_GPUS": 8}}, says="A2_CPUS"),
    Mistake("a group with another template", "template.group", "warning", yaml={"nodesets.gpu.instance_template": "newer"},
            says="flex-template"),
    # permissions
    denied("compute.instanceGroupManagers.list"),
    denied("compute.instanceGroupManagers.get"),
    denied("compute.instanceGroupManagers.create"),
    denied("compute.instanceGroupManagers.delete"),
    denied("compute.instanceGroupManagers.update"),
    denied("compute.instances.delete"),
    denied("compute.instances.getSerialPortOutput"),
    denied("compute.instanceTemplates.get"),
    # credentials, the clock, the way to Google
    Mistake("no key file", "credentials.file", yaml={"credentials": "/nowhere/key.json"}, place="credentials"),
    Mistake("a clock that is behind", "clock.skew", cloud={"clock_skew_seconds": 3600}, says="behind"),
    Mistake("a clock that is ahead", "clock.skew", "warning", cloud={"clock_skew_seconds": -120}, says="ahead"),
    Mistake("a VM without access scopes", "credentials.scope", cloud={"lacks_scopes": True}, says="scopes"),
    Mistake("nobody at the endpoint", "api.unreachable", yaml={"api.endpoint": "http://127.0.0.1:1"}, place="endpoint"),
]
OLD_MISTAKES = []
if OLD:
    OLD_MISTAKES += [
        slurm("no cloud_reg_addrs", "slurm.cloud_reg_addrs", r",cloud_reg_addrs", severity="warning", place="SlurmctldParameters"),
        slurm("a small TreeWidth", "slurm.tree_width", r"TreeWidth=64", "TreeWidth=4", "warning"),
        slurm("ResumeTimeout INFINITE", "slurm.resume_timeout", r"\nResumeTimeout=65533", "\nResumeTimeout=INFINITE", "warning",
              place="ResumeTimeout=INFINITE"),
    ]
if slurm_version() < (23, 2):
    OLD_MISTAKES += [slurm("hidden cloud nodes", "slurm.private_data", r"PrivateData=cloud\n")]
MISTAKES += OLD_MISTAKES
if slurm_version() < (25, 5):
    NOTES.add("slurm.version")


# What looks like a mistake and is none: pattern in slurm.conf, what stands there instead.
GOOD = {
    "nodes are in DNS": {r",cloud_reg_addrs": ",cloud_dns", r"TreeWidth=64": "TreeWidth=4"},
    "a NodeSet by feature": {r"(\nNodeName=gpu.*)": r"\1 Features=h100,gpu\nNodeSet=fast Feature=gpu",
                             r"(PartitionName=gpu .*)Nodes=gpu-\[0-7\]": r"\1Nodes=fast"},
    "the partition has its own timeouts": {
        r"\nResumeTimeout=65533": "\nResumeTimeout=300", r"\nSuspendTimeout=120": "\nSuspendTimeout=30",
        r"(PartitionName=gpu .*)": r"\1 ResumeTimeout=65533 SuspendTimeout=120"},
}


class Practice:
    """A good set-up, and copies of its files with mistakes in them."""

    def __init__(self, build):
        self.emulator = Emulator(build / "emulator" / "flex-gce-emulator", templates=TEMPLATES, quota=QUOTA,
                                 capacity={zone: 0 for zone in ZONES})
        self.cluster = Cluster(
            [Nodeset("gpu", 8, {"static_nodes": "gpu-[0-1]"}, PARTITION, boots=False)],
            build=build, emulator=self.emulator, zones=ZONES, slurm_extra=EXTRA, sweeper=True)
        self.flexctl = None
        self._build = build
        self._count = 0

    def open(self):
        self.flexctl = self.cluster.sandbox.install(self._build / "ctl" / "flexctl")
        self.cluster.wait_for(lambda: (self.cluster.sweeper_dir / "heartbeat").exists(), 60, "the sweeper's first round")

    def copy(self, mistake):
        """The directory of a slurm.conf and a flex-start.yaml with the mistake."""
        self._count += 1
        name = f"etc/{self._count}"
        sandbox = self.cluster.sandbox
        (sandbox.dir / name).mkdir(mode=0o755)
        sandbox.own(sandbox.dir / name)
        text = self.cluster.conf.read_text(encoding="utf-8")
        for pattern, instead in mistake.slurm.items():
            assert re.search(pattern, text), f"{pattern} is not in slurm.conf"
            # The last one counts.
            *_, last = re.finditer(pattern, text)
            text = text[:last.start()] + last.expand(instead) + text[last.end():] if instead else re.sub(pattern, "", text)
        sandbox.write(f"{name}/slurm.conf", text)
        shutil.copy(self.cluster.dir / "etc" / "cgroup.conf", sandbox.dir / name / "cgroup.conf")
        settings = json.loads(json.dumps(self.cluster.flex_config))
        for key, value in mistake.yaml.items():
            *path, last = key.split(".")
            section = settings
            for part in path:
                section = section.setdefault(part, {})
            section[last] = value
        sandbox.write(f"{name}/flex-start.yaml", conf.to_yaml(settings), 0o600)
        return sandbox.dir / name

    def doctor(self, directory, *options, **more):
        env = self.cluster.sandbox.env(SLURM_CONF=str(directory / "slurm.conf"), GCE_METADATA_HOST="127.0.0.1:1")
        return self.cluster.sandbox.run([self.flexctl, "doctor", *options], env=env, check=False, timeout=120, **more)

    def findings(self, directory, *options, **more):
        done = self.doctor(directory, "--json", *options, **more)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"no JSON: {done.returncode} {done.stdout} {done.stderr}")

    def save_logs(self, target):
        self.cluster.save_logs(target)


@pytest.fixture(scope="module")
def practice(build):
    practice = Practice(build)
    with practice.cluster:
        practice.open()
        yield practice


def short(findings):
    return [(finding["id"], finding["severity"]) for finding in findings]


def test_a_good_set_up_has_nothing(practice):
    code, report = practice.findings(practice.cluster.dir / "etc")
    assert report["findings"] == []
    assert {note["id"] for note in report["notes"]} == NOTES
    assert (code, report["errors"], report["warnings"], report["not_checked"]) == (0, 0, 0, [])
    text = practice.doctor(practice.cluster.dir / "etc")
    assert text.returncode == 0 and text.stdout.startswith("nothing found"), text.stdout
    assert "flex-doctor" not in json.dumps(practice.emulator.state())


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_a_mistake_is_found_and_nothing_else(practice, mistake):
    directory = practice.copy(mistake)
    before = {key: value for key, value in practice.emulator.configuration().items() if key in mistake.cloud}
    practice.emulator.config(**mistake.cloud)
    try:
        code, report = practice.findings(directory)
    finally:
        # Maps are merged: what was not there is taken away.
        for key, value in before.items():
            if isinstance(value, dict):
                before[key] = {**{name: None for name in mistake.cloud[key]}, **value}
        practice.emulator.config(**before)
    assert short(report["findings"]) == [(mistake.finding, mistake.severity)], report["findings"]
    finding, = report["findings"]
    assert code == {"error": 2, "warning": 1}[mistake.severity]
    assert finding["what"] and finding["why"] and finding["fix"]
    if mistake.says:
        assert re.search(mistake.says, finding["what"]), finding
    if mistake.place:
        assert finding["line"] > 0, finding
        line = Path(finding["file"]).read_text(encoding="utf-8").splitlines()[finding["line"] - 1]
        assert re.search(mistake.place, line), (line, finding)


@pytest.mark.parametrize("method,says", [
    ("zones.get", "zone"), ("instanceTemplates.get", "template"), ("projects.get", "project"),
    ("regionInstanceGroupManagers.list", "groups|compute.instanceGroupManagers.list"), ("machineTypes.get", "machine type"),
    ("instances.delete", "compute.instances.delete")])
def test_what_is_not_answered_is_not_taken_for_good(practice, method, says):
    practice.emulator.fault(method, "503", count=1000)
    try:
        code, report = practice.findings(practice.cluster.dir / "etc")
        text = practice.doctor(practice.cluster.dir / "etc")
    finally:
        practice.emulator.clear_faults()
    assert (code, short(report["findings"])) == (1, [("api.incomplete", "warning")]), report
    assert report["not_checked"] and all(re.search(says, line) for line in report["not_checked"]), report["not_checked"]
    assert text.returncode == 1 and "\nnot checked: " in text.stdout and "nothing found" not in text.stdout, text.stdout


def test_what_may_not_be_read_is_not_taken_for_good(practice):
    practice.emulator.config(denied_permissions=["compute.regions.get"])
    try:
        code, report = practice.findings(practice.cluster.dir / "etc")
    finally:
        practice.emulator.config(denied_permissions=[])
    assert (code, report["findings"]) == (0, [])
    assert report["not_checked"] == ["quotas: permission compute.regions.get is missing"]


def test_all_mistakes_are_told_at_once_in_words(practice):
    mistake = Mistake("several", "", slurm={r"ResumeRate=0": "ResumeRate=300", r"ReturnToService=2": "ReturnToService=0"},
                      yaml={"nodesets.gpu.instance_template": "stops"})
    directory = practice.copy(mistake)
    done = practice.doctor(directory, "--fix-hints")
    assert done.returncode == 2
    for text in ("error: ResumeRate is 300 [slurm.resume_rate]", "warning: ReturnToService is 0 [slurm.return_to_service]",
                 "instanceTerminationAction is STOP, not DELETE [template.termination]", "2 errors, 1 warning",
                 "       ResumeRate=0\n", "gcloud compute instance-templates create"):
        assert text in done.stdout, done.stdout
    assert re.search(rf"fix: {re.escape(str(directory))}/slurm.conf:\d+: change it to ResumeRate=0", done.stdout), done.stdout


def test_read_only_writes_nothing(practice):
    since = len(practice.emulator.journal())
    code, report = practice.findings(practice.cluster.dir / "etc", "--read-only")
    calls = practice.emulator.journal()[since:]
    assert code == 0 and report["not_checked"] == ["permissions to write: --read-only"]
    mine = [call for call in calls if "flex-doctor" in call["path"]]
    assert mine and all(call["verb"] == "GET" for call in mine), mine


def test_probes_are_refused_without_a_trace(practice):
    since = len(practice.emulator.journal())
    bulk = Mistake("bulk", "", yaml={"nodesets.gpu.on_stockout": [{"wait": "1h", "mode": "bulk_insert"}]})
    practice.findings(practice.copy(bulk))
    writes = [call for call in practice.emulator.journal()[since:] if call["verb"] != "GET" and "flex-doctor" in json.dumps(call)]
    assert len(writes) >= 5 and any("bulkInsert" in call["path"] for call in writes)
    assert all(call["status"] in (400, 404) for call in writes), writes


def test_offline_asks_nobody(practice):
    since = len(practice.emulator.journal())
    mistake = Mistake("both", "", slurm={r"ResumeRate=0": "ResumeRate=300"}, yaml={"api.endpoint": "http://127.0.0.1:1"})
    code, report = practice.findings(practice.copy(mistake), "--offline")
    assert (code, short(report["findings"])) == (2, [("slurm.resume_rate", "error")])
    assert not [call for call in practice.emulator.journal()[since:] if "flex-doctor" in call["path"]]


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_mistake_is_not_told(practice, name):
    code, report = practice.findings(practice.copy(Mistake(name, "", slurm=GOOD[name])), "--offline")
    assert (code, report["findings"]) == (0, [])


def test_offline_knows_the_release(practice):
    _, report = practice.findings(practice.cluster.dir / "etc", "--offline")
    assert tuple(int(number) for number in report["slurm_version"].split(".")[:2]) == slurm_version(), report


@pytest.mark.parametrize("mistake", OLD_MISTAKES, ids=[mistake.name for mistake in OLD_MISTAKES])
def test_what_only_an_old_release_needs_is_found_offline(practice, mistake):
    _, report = practice.findings(practice.copy(mistake), "--offline")
    assert short(report["findings"]) == [(mistake.finding, mistake.severity)], report["findings"]


def test_a_sweeper_that_is_away_is_missed(practice):
    cluster = practice.cluster
    cluster.stop_sweeper()
    try:
        heartbeat = cluster.sweeper_dir / "heartbeat"
        kept = heartbeat.read_text(encoding="utf-8")
        cluster.sandbox.write("state/flex-start/heartbeat", "1700000000\n")
        code, report = practice.findings(cluster.dir / "etc")
        assert (code, short(report["findings"])) == (2, [("sweeper.not_running", "error")])
        heartbeat.unlink()
        code, report = practice.findings(cluster.dir / "etc")
        assert (code, short(report["findings"])) == (1, [("sweeper.not_running", "warning")])
        assert f"User={cluster.sandbox.account.pw_name}" in report["findings"][0]["hints"]
        cluster.sandbox.write("state/flex-start/heartbeat", kept)
    finally:
        cluster.start_sweeper()


def test_a_state_directory_that_cannot_be_made_is_told_without_the_one_above_it(practice):
    mistake = Mistake("elsewhere", "", yaml={"sweeper.state_dir": "/var/lib/flex-doctor-was-here"})
    _, report = practice.findings(practice.copy(mistake))
    found = {finding["id"]: finding for finding in report["findings"]}
    assert set(found) == {"state.directory", "sweeper.not_running"}, report["findings"]
    user = practice.cluster.sandbox.account.pw_name
    assert found["state.directory"]["hints"] == [f"install -d -o {user} -m 0750 /var/lib/flex-doctor-was-here"]


def test_files_that_others_must_read(practice):
    """plugstack.conf as every user, flex-start.yaml as SlurmUser."""
    directory = practice.copy(Mistake("modes", ""))
    sandbox = practice.cluster.sandbox
    plugstack = sandbox.write(f"etc/{directory.name}/plugstack.conf", "# nothing\n", 0o640)
    code, report = practice.findings(directory)
    assert (code, short(report["findings"])) == (2, [("slurm.plugstack_mode", "error")]), report["findings"]
    assert report["findings"][0]["hints"] == [f"chmod 0644 {plugstack}"]
    plugstack.chmod(0o644)
    assert practice.findings(directory)[1]["findings"] == []
    if os.geteuid() != 0:
        pytest.skip("only root can read what SlurmUser cannot")
    os.chown(directory / "flex-start.yaml", 0, 0)
    code, report = practice.findings(directory, user=0, group=0, extra_groups=[])
    assert (code, short(report["findings"])) == (2, [("config.owner", "error")]), report["findings"]


def test_the_examples_are_good_but_for_this_machine(practice):
    """etc/ of the source: the programs' directory is all that they cannot know."""
    sandbox = practice.cluster.sandbox
    (sandbox.dir / "etc" / "examples").mkdir(mode=0o755)
    sandbox.own(sandbox.dir / "etc" / "examples")
    user = sandbox.account.pw_name
    text = (ROOT / "etc" / "slurm.conf.example").read_text(encoding="utf-8")
    sandbox.write("etc/examples/slurm.conf", f"ClusterName=hpc\nSlurmctldHost=localhost\nSlurmUser={user}\n{text}")
    sandbox.write("etc/examples/flex-start.yaml", (ROOT / "etc" / "flex-start.yaml.example").read_text(encoding="utf-8"), 0o600)
    shutil.copy(ROOT / "etc" / "plugstack.conf.example", sandbox.dir / "etc" / "examples" / "plugstack.conf")
    code, report = practice.findings(sandbox.dir / "etc" / "examples", "--offline")
    found = {finding["id"] for finding in report["findings"]}
    assert found <= {"slurm.resume_program", "slurm.suspend_program", "slurm.resume_fail_program", "slurm.plugin_file"}, report["findings"]


def test_the_manual_names_every_finding():
    """Ids of the sources and of the table in flexctl(8)."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "ctl" / "doctor").glob("check_*.cc"))
    topics = "config|slurm|nodes|partition|state|sweeper|credentials|api|clock|region|zone|template|machine|quota|iam"
    used = set(re.findall(rf'"((?:{topics})\.[a-z_]+)"', sources)) - {"defaults.zones"}
    keys = {"sweeper.state_dir", "api.endpoint", "api.max_active_requests"}
    page = (ROOT / "docs" / "man" / "flexctl.8").read_text(encoding="utf-8")
    told = set(re.findall(rf"^((?:{topics})\.[a-z_]+)\t", page, re.M))
    assert used - keys <= told and told <= used, (used - told - keys, told - used)
