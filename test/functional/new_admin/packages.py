# SPDX-License-Identifier: GPL-2.0-or-later
"""What dpkg must leave behind at each stage of the packages' life."""
import os
import re
from pathlib import Path

NAME = "slurm-flex-start"
WANTS = Path("/etc/systemd/system/multi-user.target.wants/flex-sweeper.service")
CONFFILE = Path("/etc/logrotate.d/slurm-flex-start")
PROGRAMS = ("/usr/sbin/flex-resume", "/usr/sbin/flex-suspend", "/usr/sbin/flex-resume-fail", "/usr/sbin/flex-sweeper",
            "/usr/sbin/flexctl", "/usr/bin/flex-timeleft")
# Not part of the system, or apt's and dpkg's own books.
ELSEWHERE = ("/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/home", "/srv", "/var/cache", "/var/lib/apt", "/var/lib/dpkg",
             "/var/lib/systemd", "/var/log/apt", "/var/log/journal", "/usr/share/info", "/usr/lib/python3", "/etc/ld.so.cache")


def files():
    """Every path there is, but for what is made all the time."""
    found = set()
    for directory, names, here in os.walk("/"):
        names[:] = [name for name in names if os.path.join(directory, name) not in ELSEWHERE and name != "__pycache__"]
        found.update(os.path.join(directory, name) for name in [*names, *here])
    return found


def is_running(program):
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/exe") == program:
                return True
        except OSError:
            continue
    return False


def state(machine, package=NAME):
    return machine.run(f"dpkg-query -W -f '${{db:Status-Status}}' {package}", code=None).strip()


def check_installed(machine):
    assert state(machine) == "installed" and state(machine, f"{NAME}-emulator") == "installed"
    for program in PROGRAMS:
        assert os.access(program, os.X_OK), program
        machine.run(f"{program} --version")
    assert WANTS.is_symlink() and WANTS.exists(), f"{WANTS}: the unit is not enabled"
    # Without a configuration it is skipped, at boot and by hand.
    machine.run("systemctl start flex-sweeper")
    assert not is_running("/usr/sbin/flex-sweeper")
    directory = os.stat("/var/log/flex-start")
    assert directory.st_mode & 0o7777 == 0o750, oct(directory.st_mode)
    assert machine.run("stat -c %U /var/log/flex-start").strip() == "slurm"
    # The plugin is where Slurm looks for plugins: a name without a directory is enough.
    plugins = machine.run("scontrol show config | sed -n 's/^PluginDir *= *//p'").strip()
    assert Path(plugins, "spank_flex_start.so").is_file(), plugins
    assert machine.run(f"dpkg --verify {NAME} {NAME}-emulator").strip() == ""


def newer(machine, directory):
    """The package with a higher version."""
    deb = next(path for path in sorted(directory.glob(f"{NAME}_*.deb")))
    work = Path("/tmp/newer")
    machine.run(f"rm -rf {work} && dpkg-deb -R {deb} {work}")
    control = work / "DEBIAN/control"
    text = re.sub(r"^(Version: .*)$", r"\1+1", control.read_text(encoding="utf-8"), flags=re.M)
    control.write_text(text, encoding="utf-8")
    machine.run(f"dpkg-deb -Znone --root-owner-group -b {work} /tmp/newer.deb && rm -rf {work}")
    return "/tmp/newer.deb"


def check_upgrade(machine, directory):
    """A conffile that was changed and a unit that was disabled stay so; what the admin wrote is not touched."""
    yaml = Path("/etc/slurm/flex-start.yaml").read_bytes()
    CONFFILE.write_text(CONFFILE.read_text(encoding="utf-8").replace("weekly", "daily"), encoding="utf-8")
    machine.run("/usr/bin/systemctl disable flex-sweeper")
    deb = newer(machine, directory)
    machine.run(f"apt-get install -q -y {deb}")
    assert "daily" in CONFFILE.read_text(encoding="utf-8")
    assert not WANTS.is_symlink(), "the upgrade has enabled a unit that the admin disabled"
    assert Path("/etc/slurm/flex-start.yaml").read_bytes() == yaml
    machine.run("/usr/bin/systemctl enable flex-sweeper")
    machine.run(f"apt-get install -q -y --reinstall {deb}")
    assert WANTS.is_symlink(), "the upgrade has disabled the unit"


def check_remove(machine):
    """Programs go, what was configured stays."""
    machine.run(f"apt-get remove -q -y {NAME} {NAME}-emulator")
    assert state(machine) == "config-files", state(machine)
    for program in PROGRAMS:
        assert not os.path.lexists(program), program
    assert CONFFILE.is_file() and Path("/etc/slurm/flex-start.yaml").is_file()


def check_purge(machine, before):
    """Nothing of ours is left. What the admin wrote, and Slurm's own state, are not ours."""
    machine.run(f"apt-get purge -q -y {NAME} {NAME}-emulator && apt-get autoremove -q -y --purge")
    assert state(machine) not in ("installed", "config-files"), state(machine)
    own = ("/etc/slurm/", "/var/log/new-admin-", "/var/spool/slurmd-vm")
    left = sorted(path for path in files() - before if not path.startswith(own))
    slurm = [path for path in left if path.startswith("/var/lib/slurm/slurmctld/") and "flex" not in path]
    left = [path for path in left if path not in slurm]
    assert not left, f"left behind: {left}"
    assert not sorted(before - files()), f"taken away: {sorted(before - files())}"
