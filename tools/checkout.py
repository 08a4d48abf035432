# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of this checkout, or of an unpacked tarball, as they are now."""
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What is made here, and is no source; see .gitignore.
MADE = ("build", "__pycache__", ".git")


def _is_made(name):
    return name in MADE or name.startswith("build-")


def files():
    """Names below ROOT: by git what is tracked or new, without git all but what was built."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        return [name for name in listed if (ROOT / name).is_file()]
    found = []
    for directory, names, here in os.walk(ROOT):
        names[:] = [name for name in names if not _is_made(name)]
        found += [os.path.relpath(os.path.join(directory, name), ROOT) for name in here]
    return found


def copy_to(target):
    for name in files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
