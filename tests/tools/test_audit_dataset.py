"""The audit of texts: planted leaks are found, and none where labels are drawn at random."""

import random
import sys

import pytest
import torch

from tools.analysis import audit_dataset
from tools.analysis.audit_dataset import Texts, audit
from xmodal.engine.errors import ConfigError

WORDS = 'a red blue green disc star ring left right above below of the two three'.split()


def texts(size, seed, planted):
    """Random words; with ``planted`` a share of the texts with label 1 say 'not'."""
    generator = random.Random(seed)
    labels = [generator.randrange(2) for _ in range(size)]
    words = [generator.sample(WORDS, 6) for _ in labels]
    for text, label in zip(words, labels, strict=True):
        if label and generator.random() < planted:
            text.append('not')
    return Texts(words, torch.tensor(labels), [str(i // 2) for i in range(size)])


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('planted', [0.0, 0.3, 1.0])
def test_a_planted_leak_is_found_and_nothing_else(planted, seed):
    found = audit(texts(1500, seed, planted), texts(800, 100 + seed, planted))
    assert found.leaks == (planted > 0)
    if planted == 1:
        assert found.reader > 99
    # Who hears 'not' half the time of `planted` cannot know more than this.
    assert found.reader < 50 + 50 * planted + 6


@pytest.mark.parametrize('task', ['snli_ve_shapes', 'nlvr2_shapes'])
def test_the_tool_reads_the_data_of_a_config(
    relocated, tiny_world, tmp_path, monkeypatch, capsys, task
):
    config = relocated(f'configs/acerpe/{task}.py', tiny_world)
    config.dump(tmp_path / 'config.py')
    monkeypatch.setattr(sys, 'argv', ['audit', str(tmp_path / 'config.py')])
    audit_dataset.main()
    assert 'most frequent label' in capsys.readouterr().out


def test_tasks_without_labels_are_refused(relocated, tiny_world, tmp_path, monkeypatch):
    relocated('configs/acerpe/vqa_shapes.py', tiny_world).dump(tmp_path / 'config.py')
    monkeypatch.setattr(sys, 'argv', ['audit', str(tmp_path / 'config.py')])
    with pytest.raises(ConfigError, match='whose samples have no text with a label'):
        audit_dataset.main()
