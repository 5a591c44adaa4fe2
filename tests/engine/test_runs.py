"""Runs that are interrupted, resumed and told to stop."""

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from mmengine.config import Config
from runs import assert_equal, assert_same_end, call_at, load, stop, train

from xmodal.datasets import stack_images
from xmodal.engine.hooks import BrokenImageHook, DelayedHeadsHook


@pytest.mark.parametrize('workers, steps', [(0, 1), (2, 2)])
def test_a_run_resumed_in_the_middle_of_an_epoch_equals_the_uninterrupted_one(
    tiny_config, tmp_path, workers, steps
):
    options = {
        'train_dataloader.num_workers': workers,
        'optim_wrapper.accumulative_counts': steps,
        'default_hooks.checkpoint.by_epoch': False,
        'default_hooks.checkpoint.interval': 2,
    }
    epoch = 4 * steps
    train(tiny_config, work_dir=str(tmp_path / 'whole'), **options)
    cut = options | {'work_dir': str(tmp_path / 'cut')}
    # After the checkpoint in the middle of the second epoch.
    interrupted = tiny_config.copy()
    interrupted.custom_hooks.append(call_at(epoch + 3, stop))
    with pytest.raises(KeyboardInterrupt):
        train(interrupted, **cut)
    assert not (tmp_path / f'cut/iter_{2 * epoch}.pth').exists()
    resumed = train(tiny_config, resume=True, **cut)
    assert resumed.iter == 2 * epoch
    last = f'iter_{2 * epoch}.pth'
    assert_same_end(tmp_path / 'whole' / last, tmp_path / 'cut' / last)


def test_a_run_resumed_after_an_epoch_equals_the_uninterrupted_one(tiny_config, tmp_path):
    train(tiny_config, work_dir=str(tmp_path / 'whole'))
    interrupted = tiny_config.copy()
    interrupted.custom_hooks.append(call_at(4, stop))
    with pytest.raises(KeyboardInterrupt):
        train(interrupted, work_dir=str(tmp_path / 'cut'))
    train(tiny_config, work_dir=str(tmp_path / 'cut'), resume=True)
    assert_same_end(tmp_path / 'whole/epoch_2.pth', tmp_path / 'cut/epoch_2.pth')


def test_the_log_says_what_is_left_of_a_batch_that_is_shared_out(tiny_config):
    tiny_config.train_cfg.max_epochs = 1
    whole = train(tiny_config, work_dir=f'{tiny_config.work_dir}/1')
    halved = train(
        tiny_config,
        work_dir=f'{tiny_config.work_dir}/2',
        **{'optim_wrapper.accumulative_counts': 2},
    )
    logs = [next(Path(run.log_dir).glob('*.log')).read_text() for run in (whole, halved)]
    assert 'global_batch_size=8 is' not in logs[0]
    assert 'is 1 process(es) x 2 accumulated step(s) x 4: a loss that compares' in logs[1]


def test_a_checkpoint_holds_the_queue_the_teacher_and_the_temperature(tiny_config):
    runner = train(tiny_config, **{'train_cfg.max_epochs': 1})
    state = load(f'{runner.work_dir}/epoch_1.pth')['state_dict']
    assert state['queue.pointer'] == 32 % 20
    assert (state['queue.image_ids'] >= 0).all()
    assert 'heads.itc.temperature.log' in state
    assert any(key.startswith('teacher.') for key in state)


def test_a_failed_save_leaves_the_checkpoint_before_it_whole(tiny_config, monkeypatch):
    runner = train(tiny_config, **{'train_cfg.max_epochs': 1})
    path = f'{runner.work_dir}/epoch_1.pth'
    before = load(path)

    def disk_full(content, file, *_, **__):
        Path(file).write_bytes(b'half')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('mmengine.runner.runner.save_checkpoint', lambda c, f, **_: disk_full(c, f))
    with pytest.raises(OSError, match='No space left'):
        runner.save_checkpoint(runner.work_dir, 'epoch_1.pth')
    assert_equal(load(path)['state_dict'], before['state_dict'])


def spoil(count):
    """A hook function that makes losses of ``count`` iterations infinite."""

    def call(runner):
        head, left = runner.model.heads['itc'], [count]
        true_loss = head.loss

        def loss(*args):
            losses = true_loss(*args)
            if left[0]:
                left[0] -= 1
                losses['loss_itc'] = losses['loss_itc'] * torch.inf
            return losses

        head.loss = loss

    return call


def test_one_loss_that_is_not_finite_skips_its_step_and_is_counted(tiny_config):
    tiny_config.custom_hooks.append(call_at(2, spoil(2)))
    runner = train(tiny_config)
    assert runner.optim_wrapper.skipped == 2
    assert all(p.isfinite().all() for p in runner.model.parameters())


def test_three_in_a_row_end_the_run_with_what_was_in_the_batch(tiny_config):
    tiny_config.custom_hooks.append(call_at(2, spoil(3)))
    expected = r'(?s)iteration 5 .*loss_itc inf.*3 in a row.*\.png: '
    with pytest.raises(RuntimeError, match=expected):
        train(tiny_config)


def test_a_share_of_broken_images_above_the_limit_ends_the_run_with_the_list(
    tiny_config, tiny_world, tmp_path
):
    root = shutil.copytree(tiny_world, tmp_path / 'broken')
    (root / 'images/train/000/train_000003.png').write_bytes(b'no image')
    with pytest.raises(RuntimeError, match=r'(?s)images are broken.*000003\.png'):
        train(tiny_config, **{'train_dataloader.dataset.data_root': str(root)})


def test_a_resumed_run_goes_on_counting_broken_images(tiny_config, tiny_world, tmp_path):
    root = shutil.copytree(tiny_world, tmp_path / 'broken')
    (root / 'images/train/000/train_000003.png').write_bytes(b'no image')
    changes = {
        'train_dataloader.dataset.data_root': str(root),
        'default_hooks.broken_images.limit': 1.0,
        'train_cfg.max_epochs': 1,
    }
    train(tiny_config, **changes)
    saved = load(f'{tiny_config.work_dir}/epoch_1.pth')['broken_images']
    assert saved['batches'] == 4 and len(saved['broken']) == 1
    tiny_config.experiment_name = 'again'
    runner = train(tiny_config, resume=True, **{**changes, 'train_cfg.max_epochs': 2})
    (hook,) = (hook for hook in runner.hooks if isinstance(hook, BrokenImageHook))
    assert (hook.seen, hook.batches, len(hook.broken)) == (2 * saved['seen'], 8, 2)


def test_heads_begin_when_the_config_says(tiny_config):
    seen = []
    tiny_config.custom_hooks += [
        dict(type='DelayedHeadsHook', epochs=dict(itm=1, mlm=1)),
        call_at(0, lambda r: seen.append(r.model.heads.active)),
        call_at(4, lambda r: seen.append(r.model.heads.active)),
    ]
    train(tiny_config)
    assert seen == [{'itc', 'ace', 'mim'}, {'itc', 'ace', 'mim', 'itm', 'mlm'}]


@pytest.mark.parametrize('start', [0, 1, 2])
def test_heads_that_begin_after_the_end_of_a_run_are_named(start):
    """A head that is off is not missed."""
    heads = dict(itc={}, itm={}, mlm=None)
    model = SimpleNamespace(heads={'itc': 1, 'itm': 1})
    logger, cfg = MagicMock(), Config(dict(model=dict(heads=heads)))
    runner = SimpleNamespace(model=model, cfg=cfg, max_epochs=1, logger=logger)
    DelayedHeadsHook(dict(itm=start, mlm=3)).before_train(runner)
    said = [call.args[0] for call in logger.warning.call_args_list]
    assert [text.partition(' are not trained')[0] for text in said] == ["the heads ['itm']"] * (
        start > 0
    )


def test_bfloat16_trains_and_keeps_weights_in_float32(tiny_config):
    runner = train(tiny_config, **{'optim_wrapper.dtype': 'bfloat16', 'train_cfg.max_epochs': 1})
    assert all(p.dtype == torch.float32 and p.isfinite().all() for p in runner.model.parameters())


def test_a_model_learns_a_few_samples(tiny_config, tiny_world, tmp_path):
    """Contrast among eight scenes with a caption each begins at log 8 and ends near nothing."""
    losses = []
    records = json.loads((tiny_world / 'albef/train.json').read_text())[:8]
    few = [record | {'caption': record['caption'][:1]} for record in records]
    (tmp_path / 'few.json').write_text(json.dumps(few))
    tiny_config.merge_from_dict(
        dict(
            model=dict(queue_length=0, momentum=None),
            train_dataloader=dict(dataset=dict(ann_file=str(tmp_path / 'few.json'))),
            train_cfg=dict(max_epochs=60),  # of one step
            optim_wrapper=dict(optimizer=dict(lr=3e-3)),
            param_scheduler=[],
            default_hooks=dict(checkpoint=dict(interval=100)),
        )
    )
    tiny_config.model.heads = dict(itc=dict(type='ITCHead'))
    tiny_config.custom_hooks = [
        call_at(0, lambda runner: losses.append(contrast(runner))),
        call_at(59, lambda runner: losses.append(contrast(runner))),
    ]
    train(tiny_config)
    first, last = losses
    assert first == pytest.approx(math.log(8), abs=0.2)
    assert last < 0.3 * first


@torch.no_grad()
def contrast(runner):
    """The contrastive loss of the first eight scenes, with their first captions."""
    samples = [runner.train_dataloader.dataset[(index, 0)] for index in range(8)]
    batch = runner.model.data_preprocessor(stack_images(samples), True)
    return float(runner.model(**batch, mode='loss')['loss_itc'])
