"""Tools that read data merge ``--cfg-options`` as a training does."""

import sys

import pytest

from tools.analysis import anchor_statistics, audit_dataset
from xmodal.errors import ConfigError


@pytest.mark.parametrize(
    ('option', 'message'),
    [
        ('test_dataloader.dataset.pipeline.99.type=x', '--cfg-options test_.*: .*99'),
        ('custom_imports.imports=[no_such_module]', 'Failed to import no_such_module'),
    ],
)
@pytest.mark.parametrize(
    ('tool', 'config', 'checkpoint'),
    [
        (anchor_statistics, 'pretrain_shapes', ['weights.pth']),
        (audit_dataset, 'snli_ve_shapes', []),
    ],
)
def test_options_are_merged_as_those_of_a_training(
    relocated, tiny_world, tmp_path, monkeypatch, tool, config, checkpoint, option, message
):
    file = tmp_path / 'config.py'
    relocated(f'configs/acerpe/{config}.py', tiny_world).dump(file)
    arguments = [tool.__name__, str(file), *checkpoint, '--cfg-options', option]
    monkeypatch.setattr(sys, 'argv', arguments)
    with pytest.raises(ConfigError, match=message):
        tool.main()
