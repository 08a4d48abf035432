#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A new admin: README's five steps from the packages to a first job, on a machine with a Slurm but nothing of ours.

The steps are taken from README itself. Run by tools/test_packages.py in a Debian that is thrown away afterwards: it changes /etc
and runs daemons. Google is the emulator, on loopback; where the admin would type, stand_ins/ does.
"""
import re
import sys
import traceback
from pathlib import Path

import packages
import readme
from machine import HERE, USER, Machine, wait_for

YAML = Path("/etc/slurm/flex-start.yaml")
PROJECT = HERE.parents[2]


class NewAdmin:
    def __init__(self):
        self.machine = Machine()
        self.steps = {step.number: step for step in readme.steps((PROJECT / "README.md").read_text(encoding="utf-8"))}
        self.before = set()
        self.job = 0

    def do(self, step, language="sh", number=0, user="root"):
        """A block of README, as it is but for the words in capitals, under a hardened machine's umask."""
        command = readme.fill(self.steps[step].block(language, number))
        return self.machine.run(("umask 027\n" if user == "root" else "") + command, user)

    # What happens, in this order

    def a_slurm_without_cloud_nodes(self):
        self.machine.prepare()
        self.before = packages.files()

    def step_1_install(self):
        # 'make deb' has been done, by who runs this; the packages are where it puts them.
        block = readme.fill(self.steps[1].block("sh"))
        assert "make deb\n" in block, block
        install = block.replace("make deb\n", "").replace("apt install", "apt-get install -q -y")
        self.machine.run(f"cd {PROJECT}\n{install}")
        self.machine.run(f"cd {PROJECT} && apt-get install -q -y ./build-deb/slurm-flex-start-emulator_*.deb")

    def the_unit_is_enabled_and_not_started(self):
        packages.check_installed(self.machine)

    def step_2_google_cloud(self):
        self.machine.start_google()
        self.do(2)
        names = self.machine.ask_google("state")["templates"]
        assert any(name.endswith("a3u-flex") for name in names), names

    def step_3_with_a_mistake_that_doctor_explains(self):
        text = readme.fill(self.steps[3].block("yaml")) + self.machine.stands_for_google()
        assert "instance_template:" in text
        YAML.write_text(text.replace("instance_template:", "instance_templat:"), encoding="utf-8")
        said = self.machine.run("flexctl doctor", code=2)
        line = 1 + text[:text.index("instance_template:")].count("\n")
        assert f"{YAML}:{line}" in said and "instance_template" in said, said
        YAML.write_text(text, encoding="utf-8")
        YAML.chmod(0o640)  # with that umask

    def doctor_says_what_slurm_conf_lacks(self):
        said = self.machine.run("flexctl doctor", code=2)
        for text in ("ResumeProgram", "SuspendProgram", "ResumeFailProgram", "a3u-", "/etc/slurm/slurm.conf"):
            assert text in said, said

    def step_4_slurm_conf(self):
        self.do(4)
        text = Path("/etc/slurm/slurm.conf").read_text(encoding="utf-8")
        assert "ResumeProgram=/usr/sbin/flex-resume\n" in text and "PartitionName=a3u " in text, text

    def step_5_the_sweeper_starts_and_doctor_is_content(self):
        block = readme.fill(self.steps[5].block("sh"))
        start, doctor, rest = block.partition("flexctl doctor\n")
        assert doctor and not rest, block
        self.machine.run(start)
        assert self.machine.run("systemctl is-active flex-sweeper").strip() == "active"
        # Until its first round is over, doctor misses the sweeper.
        wait_for(lambda: "flex-sweeper has not completed a round yet" not in self.machine.run(doctor, code=None), 60,
                 "the sweeper's first round")
        self.machine.run(doctor)

    def the_first_job(self):
        said = self.do(5, number=1, user=USER)
        self.job = int(re.search(r"Submitted batch job (\d+)", said)[1])
        wait_for(lambda: self.job_state() in ("RUNNING", "COMPLETED", "FAILED"), 240, "the job to start")
        wait_for(lambda: self.job_state() not in ("RUNNING", "COMPLETING"), 60, "the job to end")
        output = Path(f"/home/{USER}/slurm-{self.job}.out").read_text(encoding="utf-8")
        assert self.job_state() == "COMPLETED", (self.job_state(), output)
        assert len(output.split()) == 2, output

    def job_state(self):
        found = re.search(r"JobState=(\S+)", self.machine.run(f"scontrol show job {self.job}", code=None))
        return found[1] if found else ""

    def its_vms_are_given_back(self):
        wait_for(lambda: not self.machine.ask_google("state")["vms"], 180, "the VMs to be deleted")

    def an_upgrade_keeps_what_the_admin_did(self):
        self.machine.run("systemctl stop flex-sweeper")
        packages.check_upgrade(self.machine, PROJECT / "build-deb")

    def after_remove_and_purge_nothing_is_left(self):
        self.machine.stop()
        packages.check_remove(self.machine)
        packages.check_purge(self.machine, self.before)


STORY = ("a_slurm_without_cloud_nodes", "step_1_install", "the_unit_is_enabled_and_not_started", "step_2_google_cloud",
         "step_3_with_a_mistake_that_doctor_explains", "doctor_says_what_slurm_conf_lacks", "step_4_slurm_conf",
         "step_5_the_sweeper_starts_and_doctor_is_content", "the_first_job", "its_vms_are_given_back",
         "an_upgrade_keeps_what_the_admin_did", "after_remove_and_purge_nothing_is_left")


def main():
    """Each part needs those before it: the first failure is the last word."""
    admin = NewAdmin()
    passed = 0
    try:
        for name in STORY:
            print(f"...  {name.replace('_', ' ')}", flush=True)
            getattr(admin, name)()
            print(f"ok   {name.replace('_', ' ')}", flush=True)
            passed += 1
    except Exception:  # told with the logs
        print(f"FAIL {STORY[passed].replace('_', ' ')}")
        traceback.print_exc(file=sys.stdout)
        print(admin.machine.log_tails())
    finally:
        admin.machine.stop()
    failed = int(passed < len(STORY))
    print(f"{passed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
