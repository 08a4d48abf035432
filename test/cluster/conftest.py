# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the programs are, and what happens to the logs of a test that failed."""
import contextlib
import os
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True  # a checkout stays as it was
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

pytest.register_assert_rewrite("sweeper_site", "sweeper_scenes", "sweeper_desk", "lease_scenes",
                             "modes_scenes", "placement_scenes", "zones_scenes", "plugin_scenes", "plugin_wishes", "words_scenes")
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


@contextlib.contextmanager
def playing(stage, begin):
    """A stage with its cluster and what `begin` puts under way."""
    with stage.cluster:
        try:
            begin()
            yield stage
        finally:
            stage.stop()


@pytest.fixture(scope="session")
def stage(build):
    """The sweeper's scenes, all under way."""
    from sweeper_scenes import make_stage, raise_curtain
    stage = make_stage(build)
    with playing(stage, lambda: raise_curtain(stage)):
        yield stage


@pytest.fixture(scope="session")
def modes(build, request):
    """The scenes of all ways to get VMs, those that are tested, all under way."""
    from modes_plays import make_stage, raise_curtain
    chosen = {item.callspec.params["scene"] for item in request.session.items
              if "modes" in item.fixturenames and hasattr(item, "callspec")}
    stage = make_stage(build)
    with playing(stage, lambda: raise_curtain(stage, chosen)):
        yield stage


@pytest.fixture(scope="session")
def plugged(build):
    """The scenes of the plugin, all under way."""
    import plugin_scenes
    import plugin_wishes
    from plugin_site import make_stage, raise_curtain
    stage = make_stage(build)
    with playing(stage, lambda: raise_curtain(stage, {**plugin_wishes.SCENES, **plugin_scenes.SCENES})):
        yield stage


@pytest.fixture(scope="session")
def words(build):
    """The scenes of what a job's author reads, all under way."""
    from words_scenes import make_stage, raise_curtain
    stage = make_stage(build)
    with playing(stage, lambda: raise_curtain(stage)):
        yield stage


@pytest.fixture(scope="session")
def leases(build):
    """The scenes of lease ends and health, all under way."""
    from lease_scenes import begin, make_leases
    stage = make_leases(build)
    with stage.cluster:
        try:
            begin(stage)
            yield stage
        finally:
            stage.rounds.stop()
            stage.stop()


@pytest.fixture(scope="session")
def desk(build):
    """A cluster for rounds by hand."""
    from sweeper_desk import Desk
    desk = Desk(build)
    with desk.cluster:
        yield desk


@pytest.fixture(scope="session")
def still(build):
    """A cluster on which a day's worth of rounds runs."""
    from sweeper_desk import Still
    still = Still(build)
    with still.cluster:
        still.start()
        yield still


@pytest.fixture(scope="module")
def crash_results(build, request):
    """The crash matrix of the module's scenes, those that are tested."""
    from crash_matrix import Matrix, Results
    chosen = {item.callspec.params["scene"] for item in request.session.items
              if item.module is request.module and hasattr(item, "callspec")}
    plugins = request.config.pluginmanager

    def tell(line):
        with plugins.getplugin("capturemanager").global_and_fixture_disabled():
            plugins.getplugin("terminalreporter").write_line(line)

    scenes = [scene for scene in request.module.SCENES if scene.name in chosen]
    matrix = Matrix(build, large=3 if any(scene.size > 4 for scene in scenes) else 0)
    try:
        matrix.start()
        yield Results(matrix, scenes, tell, all_looks=getattr(request.module, "ALL_LOOKS", True))
    finally:
        matrix.close()
