# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever dies half-way, or meets trouble at any of its calls, is brought right by two rounds of the sweeper."""
import pytest

from crash_matrix import KINDS, Matrix
from crash_scenes import SCENES


class Results:
    """The outcomes of all scenes that are to be tested, by scene. All run at once: mostly they wait."""

    def __init__(self, matrix, scenes, tell):
        self.cluster = matrix  # whose logs are saved
        self.outcomes = {scene.name: [] for scene in scenes}
        for outcome in matrix.run(scenes, tell):
            self.outcomes[outcome.scene.name].append(outcome)


@pytest.fixture(scope="module")
def results(build, request):
    chosen = {item.callspec.params["scene"] for item in request.session.items
              if item.module is request.module and hasattr(item, "callspec")}
    plugins = request.config.pluginmanager

    def tell(line):
        with plugins.getplugin("capturemanager").global_and_fixture_disabled():
            plugins.getplugin("terminalreporter").write_line(line)

    matrix = Matrix(build)
    try:
        matrix.start()
        yield Results(matrix, [scene for scene in SCENES if scene.name in chosen], tell)
    finally:
        matrix.close()


@pytest.mark.parametrize("scene", [scene.name for scene in SCENES])
def test_all_is_right_again_after_trouble_at_any_call(results, scene):
    outcomes = results.outcomes[scene]
    assert len(outcomes) > len(KINDS), outcomes
    failed = [outcome for outcome in outcomes if outcome.complaints]
    assert not failed, f"{len(failed)} of {len(outcomes)} cases:\n" + "\n".join(map(str, failed))
