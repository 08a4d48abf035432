# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the programs are, and what happens to the logs of a test that failed."""
import os
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True  # a checkout stays as it was
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

BUILD = Path(os.environ.get("FLEX_BUILD_DIR", HERE.parent.parent / "build")).resolve()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test's cluster saves its logs before it goes."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for value in getattr(item, "funcargs", {}).values():
        save = getattr(getattr(value, "cluster", value), "save_logs", None)
        if save is None:
            continue
        target = BUILD / "test-logs" / item.name
        try:
            save(target)
            report.sections.append(("logs", f"saved in {target}"))
        except Exception as error:  # the test's own failure is what matters
            report.sections.append(("logs", f"could not be saved: {error!r}"))


@pytest.fixture(scope="session")
def build():
    return BUILD


@pytest.fixture(scope="session")
def running_site(build):
    from site_under_test import Site
    site = Site(build)
    with site.cluster:
        site.submit()
        yield site


@pytest.fixture
def site(running_site):
    """The shared cluster; every test that uses it also checks the calls made meanwhile."""
    yield running_site
    running_site.check_journal()
