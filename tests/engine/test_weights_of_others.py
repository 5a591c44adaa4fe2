"""Checkpoints that belong to another model, in part or not at all, and those that are the best."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from runs import load, train

from xmodal.checkpoint_file import write_checkpoint
from xmodal.engine.hooks import ExactCheckpointHook
from xmodal.engine.launch import build_runner
from xmodal.errors import ConfigError


def changed(file, change):
    content = load(file)
    state = content['state_dict']
    content['state_dict'] = {k: v for k, v in map(change, state, state.values()) if k}
    other = file.with_name('other.pth')
    torch.save(content, other)
    return str(other)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda k, v: (k if 'fusion' not in k else None, v), r'lacks .*backbone\.fusion.*'),
        (lambda k, v: (k, v[:1] if 'image_proj.weight' in k else v), 'image_proj'),
        (lambda k, v: (f'encoder.{k}', v), 'lacks .*: give a checkpoint of this config'),
    ],
    ids=['in part', 'another shape', 'nothing'],
)
def test_a_test_needs_weights_for_the_whole_model(trained, tiny_config, change, message):
    file, config = trained, tiny_config
    config.load_from, config.experiment_name = changed(file, change), 'foreign'
    with pytest.raises(ValueError, match=rf'(?s)other\.pth .*{message}'):
        build_runner(config).test()


def test_training_begins_with_the_weights_that_fit_and_needs_some(trained, tiny_config):
    file, config = trained, tiny_config
    config.load_from = changed(file, lambda k, v: (k if 'fusion' not in k else None, v))
    assert train(config, **{'train_cfg.max_epochs': 1}).iter == 4
    config.load_from = changed(file, lambda k, v: (f'encoder.{k}', v))
    with pytest.raises(ValueError, match=r"other\.pth has nothing .* called 'encoder\."):
        train(config)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'', r'\(0 bytes\) is no checkpoint'),
        (b'version https://git-lfs.github.com/spec/v1\noid sha256:1\n', 'git lfs pull'),
        (None, 'Is it whole'),
    ],
    ids=['empty', 'pointer', 'cut short'],
)
def test_a_file_that_is_no_checkpoint_is_named(trained, tiny_config, content, message):
    file, config = trained, tiny_config
    broken = file.with_name('broken.pth')
    broken.write_bytes(file.read_bytes()[:1000] if content is None else content)
    config.load_from = str(broken)
    for index, begin in enumerate(('test', 'train')):
        config.experiment_name = f'broken {index}'
        with pytest.raises(ValueError, match=rf'broken\.pth .*{message}'):
            getattr(build_runner(config), begin)()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / 'new' / 'weights.pth'
    write_checkpoint(file, {'weight': torch.ones(2)})

    def disk_full(content, output):
        output.write(b'half')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(torch, 'save', disk_full)
    with pytest.raises(OSError, match='No space left'):
        write_checkpoint(file, {})
    assert load(file)['weight'].equal(torch.ones(2)) and list(file.parent.iterdir()) == [file]


def test_the_best_checkpoint_stays_until_the_next_is_whole(tiny_config, monkeypatch):
    scores, saved = iter([200.0, 300.0, 400.0]), []

    def validate(runner):
        hook = next(hook for hook in runner.hooks if type(hook).__name__ == 'ExactCheckpointHook')
        hook.after_val_epoch(runner, {'mean_recall': next(scores)})
        saved.append(sorted(path.name for path in Path(runner.work_dir).glob('best_*')))

    tiny_config.default_hooks.checkpoint.update(save_best='mean_recall', rule='greater')
    runner = train(tiny_config, **{'train_cfg.max_epochs': 1})
    for epoch in (2, 3):
        runner.train_loop._epoch = epoch
        validate(runner)
    assert saved == [['best_mean_recall_epoch_2.pth'], ['best_mean_recall_epoch_3.pth']]

    def disk_full(*_, **__):
        raise OSError(28, 'No space left on device')

    runner.train_loop._epoch = 4
    monkeypatch.setattr('mmengine.runner.runner.save_checkpoint', disk_full)
    with pytest.raises(OSError, match='No space left'):
        validate(runner)
    assert [path.name for path in Path(runner.work_dir).glob('best_*')] == saved[-1]


def test_a_best_metric_that_the_validation_does_not_have_is_a_sentence(tiny_config):
    tiny_config.default_hooks.checkpoint.update(save_best='recall', rule='greater')
    tiny_config.train_cfg.update(max_epochs=1, val_interval=1)
    with pytest.raises(ConfigError, match=r"save_best names 'recall', .* i2t/R@1, .*mean_recall"):
        train(tiny_config)


def test_a_best_metric_that_is_left_to_mmengine_needs_a_rule():
    hook = ExactCheckpointHook(save_best='auto')
    message = r"save_best='auto' is 'i2t/R@1': .* Write rule='greater' .* of i2t/R@1, rsum"
    with pytest.raises(ConfigError, match=message):
        hook._save_best_checkpoint(SimpleNamespace(epoch=1, iter=1), {'i2t/R@1': 5.0, 'rsum': 9.0})


def test_a_key_that_checkpoints_do_not_know_is_an_error_at_once(tiny_config):
    tiny_config.default_hooks.checkpoint.intervall = 2
    with pytest.raises(ConfigError, match=r"checkpoint takes no key 'intervall', .* 'interval'\?"):
        build_runner(tiny_config)


def test_a_training_set_without_a_whole_batch_is_an_error_before_training(tiny_config):
    tiny_config.train_dataloader.global_batch_size = 64
    with pytest.raises(ValueError, match='no whole batch: 32 samples .* x 64: lower train_data'):
        train(tiny_config)


def test_more_batches_than_an_epoch_has_are_all_of_them(tiny_config):
    tiny_config.train_cfg.update(max_epochs=1, val_interval=1)
    for part in ('train', 'val'):
        tiny_config[f'{part}_dataloader'].num_batch_per_epoch = 1000
    runner = train(tiny_config)
    assert [len(x.dataset) for x in (runner.train_dataloader, runner.val_dataloader)] == [32, 6]
    assert len(runner.train_dataloader) == 32 / runner.train_dataloader.batch_size
