"""The config of a run that is resumed: kept if it does not fit, and compared with the first one."""

from pathlib import Path

import pytest
from mmengine.config import Config
from runs import load, train

from xmodal.checkpoint_file import write_checkpoint


def resume(config, checkpoint, **changes):
    config.update(resume=True, load_from=str(checkpoint))
    return train(config, **changes)


def log_of(runner):
    return Path(runner.log_dir, f'{runner.timestamp}.log').read_text()


def configs(folder):
    return {file.name: file.read_text() for file in folder.glob('*.py')}


def test_a_config_that_does_not_fit_leaves_that_of_the_run_in_its_folder(trained, tiny_config):
    folder = trained.parent
    (name,) = before = configs(folder)
    tiny_config._filename = name  # the files of both runs have one name
    tiny_config.model.backbone.position.delta = 0.3
    with pytest.raises(ValueError, match='cannot be resumed: its optimizer has other settings'):
        resume(tiny_config, trained, **{'optim_wrapper.optimizer.weight_decay': 0.5})
    assert configs(folder) == before

    resume(tiny_config, trained)
    assert Config.fromfile(folder / name).model.backbone.position.delta == 0.3


def test_what_a_resumed_run_does_in_another_way_is_named(trained, tiny_config):
    tiny_config.custom_hooks.append(dict(type='EarlyStoppingHook', monitor='rsum', rule='greater'))
    tiny_config.default_hooks.logger.interval = 7  # changes nothing that it learns
    del tiny_config.model.heads['mim']['block']
    said = log_of(
        resume(
            tiny_config,
            trained,
            **{'model.backbone.position.delta': 0.3, 'find_unused_parameters': False},
        )
    )
    assert f'{trained} was made with another config' in said
    assert 'model.backbone.position.delta is 0.05 there and 0.3 here' in said
    assert 'model.heads.mim.block=8 is there alone' in said
    assert 'find_unused_parameters is True there and False here' in said
    assert 'custom_hooks is [' in said
    assert 'default_hooks' not in said.partition('was made with')[2].partition('\n')[0]


@pytest.mark.parametrize('text', [None, 'import os', 'model = ', 'work_dir = print(1)'])
def test_a_checkpoint_without_a_config_of_values_is_compared_with_nothing(
    trained, tiny_config, text
):
    content = load(trained)
    del content['meta']['cfg']
    if text is not None:
        content['meta']['cfg'] = text
    write_checkpoint(trained, content)
    assert 'made with another' not in log_of(resume(tiny_config, trained))


def test_nothing_is_said_of_a_run_that_goes_on_as_it_was(trained, tiny_config):
    tiny_config.train_cfg.max_epochs = 1
    tiny_config.optim_wrapper.optimizer.betas = [0.9, 0.98]  # as a command line gives it
    assert 'made with another' not in log_of(resume(tiny_config, trained))
