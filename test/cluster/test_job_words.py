# SPDX-License-Identifier: GPL-2.0-or-later
"""A job's AdminComment over its life, word by word, and how often it is written. The scenes are in words_scenes.py."""
import pytest

from words_scenes import NOTE_INTERVAL, SCENES


@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(words, scene):
    words.outcome(scene)


def waits_in(written):
    return [(at, text) for at, text in written if text.startswith("flex: waiting")]


def test_slurmctld_is_not_flooded_while_the_estimate_moves(words):
    """Every second another text: one update in note_interval."""
    words.outcome("life")
    written = waits_in(words.cluster.admin_comments(words.job["life"]))
    restless = [at for at, _ in written if words.restless_from <= at <= words.restless_to]
    # A round that takes long writes late what the next one need not wait for.
    assert 0 < len(restless) <= (words.restless_to - words.restless_from) / NOTE_INTERVAL + 2, written


def test_no_text_is_written_twice(words):
    words.wait_all()
    for job in words.job.values():
        texts = [text for _, text in words.cluster.admin_comments(job)]
        assert not [text for text, following in zip(texts, texts[1:]) if text == following], texts


def test_vms_that_come_are_told_at_once(words):
    """Not only when the interval is over: the estimate had just been told."""
    words.outcome("life")
    written = words.cluster.admin_comments(words.job["life"])
    first = [number for number, (_, text) in enumerate(written) if text.startswith("flex: VMs end")][0]
    assert written[first][0] - written[first - 1][0] < NOTE_INTERVAL, written
