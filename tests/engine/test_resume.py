"""A run is resumed whole, or not at all; a new run says what it takes from other weights."""

import os
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import ClassVar
from unittest.mock import MagicMock

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.dataset import DefaultSampler
from mmengine.hooks import Hook
from mmengine.optim import scheduler
from runs import call_at, load, stop, train
from torch import nn
from torch.utils.data import BatchSampler, DataLoader

from xmodal.checkpoint_file import write_checkpoint
from xmodal.datasets.base import SampleDataset
from xmodal.datasets.samplers import EpochSampler
from xmodal.engine.checkpoint import to_plain
from xmodal.engine.launch import build_runner
from xmodal.engine.loops import ResumableEpochTrainLoop
from xmodal.engine.optim import SafeAmpOptimWrapper
from xmodal.engine.resume import _wrong_schedules
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS


@HOOKS.register_module(force=True)
class NoteSamples(Hook):
    """Keeps which samples an iteration sees, and the captions that were chosen."""

    by_iteration: ClassVar[dict] = {}
    captions: ClassVar[dict] = {}

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        samples = data_batch['data_samples']
        self.by_iteration[runner.iter] = [sample.sample_index for sample in samples]
        self.captions |= {sample.sample_index: sample.text for sample in samples}


class WithEpochs(DefaultSampler):
    """A sampler of a plug-in that says the epoch."""

    def __iter__(self):
        return ((index, self.epoch) for index in super().__iter__())


MATRIX = 'backbone.image_proj.weight'
TEACHERS = f'teacher.module.{MATRIX}'


@pytest.fixture
def runner(tiny_config):
    """After one epoch."""
    return train(tiny_config, **{'train_cfg.max_epochs': 1})


def cut_matrix(content):
    content['state_dict'][MATRIX] = content['state_dict'][MATRIX][:1]


def rename_meta(content):
    content['meta'] = list(content['meta'])


def cut_moment(content):
    state = content['optimizer']['state']
    state[3]['exp_avg'] = torch.zeros(7, 7)


def other_optimizer(content):
    for group in content['optimizer']['param_groups']:
        group.pop('betas')
        group['momentum'] = 0.9


def other_end(content):
    content['param_schedulers'][0]['end'] = 12


def other_decay(content):
    for group in content['optimizer']['param_groups']:
        group['weight_decay'] *= 0.5
        group['fused'] = not group['fused']  # the same step, by another kernel


UNFIT = {
    f'1 tensors have another shape ({MATRIX} is [1, ': cut_matrix,
    f'lacks 1 of ### tensors of the model ({MATRIX})': lambda c: c['state_dict'].pop(MATRIX),
    f'lacks 1 of ### tensors of the model ({TEACHERS})': lambda c: c['state_dict'].pop(TEACHERS),
    'has 1 tensors that the model lacks (heads.mine)': lambda c: c['state_dict'].update(
        {'heads.mine': torch.ones(1)}
    ),
    'it has no optimizer': lambda c: c.pop('optimizer'),
    'it has 0 schedules, and this run 1': lambda c: c.pop('param_schedulers'),
    'it has 2 schedules, and this run 1': lambda c: c['param_schedulers'].append({}),
    'other values (LinearLR.end is 12 there and 50 here)': other_end,
    'it has no message_hub': lambda c: c.pop('message_hub'),
    "has a list as 'meta', expected a dict": rename_meta,
    'its meta has no number iter': lambda c: c['meta'].pop('iter'),
    'its optimizer is a list, expected a dict': lambda c: c.update(optimizer=[1]),
    'its optimizer has groups of': lambda c: c['optimizer']['param_groups'][0]['params'].pop(),
    "its optimizer's exp_avg of parameter 3 has another shape": cut_moment,
    'its optimizer is of another kind': other_optimizer,
    'its optimizer has other settings (weight_decay is 0.01 there and 0.02 here)': other_decay,
}


def test_a_run_resumes_with_all_that_it_had_or_names_what_does_not_fit(runner):
    trained = Path(runner.work_dir, 'epoch_1.pth')
    whole = load(trained)
    count = len(whole['state_dict'])
    spoilt, runner._resume = trained.with_name('spoilt.pth'), True
    for message, spoil in UNFIT.items():
        content = deepcopy(whole)
        spoil(content)
        write_checkpoint(spoilt, content)
        with pytest.raises(ValueError) as caught:
            runner.load_checkpoint(str(spoilt))
        assert str(spoilt) in str(caught.value)
        assert message.replace('###', str(count)) in str(caught.value)
    runner.load_checkpoint(str(trained))


def test_the_sentence_lists_all_that_does_not_fit(trained, tiny_config):
    content = load(trained)
    cut_matrix(content)
    content['state_dict'].pop('heads.itc.temperature.log')
    content['param_schedulers'] = []
    write_checkpoint(trained, content)
    with pytest.raises(ValueError, match=r'temperature.*another shape.*0 schedules.*by load_from'):
        train(tiny_config, resume=True)


def test_a_run_does_not_go_on_with_another_end_of_its_decay(tiny_config):
    decay = dict(type='CosineAnnealingLR', by_epoch=True, convert_to_iter_based=True)
    tiny_config.param_scheduler = [ConfigDict(decay)]
    train(tiny_config, **{'train_cfg.max_epochs': 1})
    with pytest.raises(ValueError, match=r'CosineAnnealingLR\.T_max is 4 there and 8 here'):
        train(tiny_config, resume=True)


def test_a_run_does_not_go_on_with_another_learning_rate_that_no_schedule_moves(tiny_config):
    tiny_config.param_scheduler = []
    tiny_config.train_dataloader.num_batch_per_epoch = 1
    train(tiny_config, **{'train_cfg.max_epochs': 1})
    with pytest.raises(ValueError, match=r'other settings \(lr is 0\.001 there and 0\.0001 here\)'):
        train(tiny_config, resume=True, **{'optim_wrapper.optimizer.lr': 1e-4})
    assert train(tiny_config, resume=True).iter == 2


def test_a_run_without_a_seed_sees_each_sample_once_an_epoch_when_it_is_resumed(tiny_config):
    changes = {
        'train_cfg.max_epochs': 1,
        'randomness.seed': None,
        'default_hooks.checkpoint.by_epoch': False,
        'default_hooks.checkpoint.interval': 2,
        'custom_hooks': [*tiny_config.custom_hooks, dict(type='NoteSamples')],
    }
    NoteSamples.by_iteration.clear()
    interrupted = {'custom_hooks': [*changes['custom_hooks'], call_at(3, stop)]}
    with pytest.raises(KeyboardInterrupt):
        train(tiny_config, **(changes | interrupted))
    runner = train(tiny_config, resume=True, **changes)
    assert sorted(sum(NoteSamples.by_iteration.values(), [])) == list(range(32))
    dataset = runner.train_dataloader.dataset
    first_part = load(Path(runner.work_dir, 'iter_2.pth'))
    assert dataset.seed == runner.seed == first_part['meta']['seed']


def chosen_captions(config, **changes):
    """Of the samples of one epoch, in the order of the dataset."""
    hooks = [*config.custom_hooks, dict(type='NoteSamples')]
    NoteSamples.captions.clear()
    config.work_dir += '_'
    train(config, **{'train_cfg.max_epochs': 1, 'custom_hooks': hooks}, **changes)
    return dict(sorted(NoteSamples.captions.items()))


def test_the_seed_of_a_run_reaches_the_choice_of_captions_unless_the_dataset_has_its_own(
    tiny_config,
):
    tiny_config.model.heads = dict(itc=dict(type='ITCHead'))  # whatever is learned of them
    one = chosen_captions(tiny_config, **{'randomness.seed': 1})
    assert chosen_captions(tiny_config, **{'randomness.seed': 1}) == one
    assert chosen_captions(tiny_config, **{'randomness.seed': 2}) != one
    own = {'randomness.seed': 2, 'train_dataloader.dataset.seed': 1}
    assert chosen_captions(tiny_config, **own) == one
    whole_epochs = {'train_dataloader.num_batch_per_epoch': 4}  # all of its 32 samples
    assert chosen_captions(tiny_config, **whole_epochs, **{'randomness.seed': 1}) == one


SCHEDULES = {
    'LinearLR': dict(end=5),
    'CosineAnnealingLR': dict(T_max=5),
    'MultiStepLR': dict(milestones=[2, 4]),
    'OneCycleLR': dict(eta_max=1.0, total_steps=9),
    'CosineRestartLR': dict(periods=[2, 3], restart_weights=[1, 0.5], eta_min=0.0),
    'ReduceOnPlateauLR': dict(monitor='loss', patience=1, cooldown=2),
}


@pytest.mark.parametrize('name', SCHEDULES)
def test_where_a_schedule_is_has_nothing_to_do_with_its_values(name):
    def built():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
        return getattr(scheduler, name)(optimizer, **SCHEDULES[name])

    moved = built()
    for _ in range(4):
        moved.optimizer.step()
        moved.step(*[{'loss': 1.0}] * (name == 'ReduceOnPlateauLR'))
    assert list(_wrong_schedules([to_plain(moved.state_dict())], [built()])) == []


class CountingLR(scheduler.ConstantLR):
    """A schedule of a plug-in that counts what it has done."""

    calls = 0

    def _get_value(self):
        self.calls += 1
        return super()._get_value()


@pytest.mark.parametrize(('factor', 'wrong'), [(0.5, False), (0.25, True)])
def test_what_a_schedule_of_a_plug_in_counts_is_not_among_its_values(factor, wrong):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    moved = CountingLR(optimizer, factor=0.5, end=5)
    optimizer.step()
    moved.step()
    now = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    found = _wrong_schedules([to_plain(moved.state_dict())], [CountingLR(now, factor, end=5)])
    expected = 'its schedules have other values (CountingLR.factor is 0.5 there and 0.25 here)'
    assert list(found) == [expected] * wrong


@pytest.mark.parametrize('batch', [4, 16])
def test_a_run_does_not_go_on_with_epochs_of_another_length(trained, tiny_config, batch):
    changes = {'train_dataloader.global_batch_size': batch, 'train_cfg.max_epochs': 3}
    now = 32 // batch
    with pytest.raises(ValueError, match=rf'4 iterations in an epoch, and an epoch now has {now}:'):
        train(tiny_config, resume=True, **changes)


def test_a_resumed_run_takes_the_newest_whole_checkpoint(trained, tiny_config, capsys):
    (trained.parent / 'last_checkpoint').write_bytes(b'\0\0')
    assert train(tiny_config, resume=True).iter == 8
    assert 'Taking epoch_1.pth' in capsys.readouterr().err


def test_a_resumed_run_repairs_last_checkpoint(trained, tiny_config, tmp_path):
    pointer = trained.parent / 'last_checkpoint'
    pointer.write_bytes(b'\0\0')
    train(tiny_config, resume=True, **{'train_cfg.max_epochs': 1})  # there is nothing left to save
    assert pointer.read_text() == str(trained)
    other = tmp_path / 'other'
    train(tiny_config, resume=True, load_from=str(trained), work_dir=str(other))
    assert pointer.read_text() == str(trained)
    assert (other / 'last_checkpoint').read_text() == str(other / 'epoch_2.pth')


def validations(config, end, **changes):
    """The epochs that a run validates, until one validation of them ends it."""
    epochs = []

    def validate(loop):
        epochs.append(loop.runner.epoch)
        if epochs[-1] == end:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('xmodal.engine.loops.RetrievalLoop.run', validate)
        with pytest.raises(KeyboardInterrupt) if end else nullcontext():
            train(config, **changes)
    return epochs


def test_a_validation_that_was_interrupted_is_made_up_for(tiny_config):
    tiny_config.train_cfg.update(max_epochs=3, val_interval=2)
    tiny_config.train_dataloader.num_batch_per_epoch = 1
    assert validations(tiny_config, end=2) == [2]
    assert validations(tiny_config, end=3, resume=True) == [2, 3]
    assert validations(tiny_config, end=None, resume=True) == [3]
    content = Path(tiny_config.work_dir, 'last_checkpoint')
    content.write_text(content.read_text().replace('epoch_3', 'epoch_1'))
    # After the first epoch none is due.
    assert validations(tiny_config, end=None, resume=True) == [2, 3]


def test_a_best_checkpoint_that_has_its_metrics_is_not_validated_again(tiny_config):
    tiny_config.train_cfg.update(max_epochs=1, val_interval=1)
    tiny_config.train_dataloader.num_batch_per_epoch = 1
    tiny_config.default_hooks.checkpoint.update(save_best='mean_recall', rule='greater')
    runner = train(tiny_config)
    resumed = train(tiny_config, resume=True)
    for run in (runner, resumed):
        history, _ = run.message_hub.log_scalars['val/mean_recall'].data
        assert len(history) == 1


def start(config, name, **changes):
    """A runner whose weights are those that its training would begin with, and its log."""
    config = config.copy()
    config.merge_from_dict(changes)
    config.update(experiment_name=name, work_dir=f'{config.work_dir}/{name}')
    runner = build_runner(config)
    before = {key: value.clone() for key, value in runner.model.state_dict().items()}
    runner.load_or_resume()
    (log,) = Path(runner.log_dir).glob('*.log')
    return before, runner.model.state_dict(), log.read_text()


def test_a_new_run_says_how_many_tensors_it_takes(trained, tiny_config):
    content = load(trained)
    expected = content['state_dict'].keys()
    queue = [key for key in expected if key.startswith('queue.')]
    taken = len(expected) - len(queue)
    _, _, log = start(tiny_config, 'whole', load_from=str(trained))
    assert f"{taken} of the model's {len(expected)} tensors are from {trained}; " in log
    assert f'; {len(queue)} start anew: queue.' in log

    del content['state_dict']['heads.itc.temperature.log']
    content['state_dict']['heads.mine'] = torch.ones(1)
    write_checkpoint(trained, content)
    _, _, log = start(tiny_config, 'part', load_from=str(trained))
    assert f"{taken - 1} of the model's" in log and 'heads.itc.temperature.log' in log
    assert '; 1 of the file are not used: heads.mine' in log


def test_a_new_run_takes_no_tensor_of_another_shape_unless_it_is_told(trained, tiny_config):
    content = load(trained)
    for name in (MATRIX, TEACHERS):
        content['state_dict'][name] = content['state_dict'][name][:1]
    write_checkpoint(trained, content)
    with pytest.raises(ValueError, match=rf'{MATRIX} is \[1, \d+\] there .*load_from_ignore'):
        start(tiny_config, 'refused', load_from=str(trained))

    both = [MATRIX, TEACHERS]
    for name, ignored in (('both', both), ('named', [MATRIX]), ('module', [MATRIX[:-7]])):
        options = dict(load_from=str(trained), load_from_ignore=ignored)
        before, after, _ = start(tiny_config, name, **options)
        assert torch.equal(after[MATRIX], before[MATRIX])
        assert torch.equal(after[TEACHERS], before[MATRIX])  # also where it is not named
        other = 'backbone.text_proj.weight'
        assert torch.equal(after[other], content['state_dict'][other])
        assert not torch.equal(after[other], before[other])


def test_what_is_ignored_must_exist(trained, tiny_config):
    options = dict(load_from=str(trained), load_from_ignore=['backbone.image_pro'])
    with pytest.raises(ConfigError, match=r"names 'backbone\.image_pro', and neither the model"):
        start(tiny_config, 'unknown', **options)


def test_the_hook_names_the_last_checkpoint_at_once(runner, monkeypatch):
    hook = next(hook for hook in runner.hooks if type(hook).__name__ == 'ExactCheckpointHook')
    sync, calls = os.fsync, []

    def crash_at_the_second(file):
        calls.append(sync(file))
        if len(calls) == 2:  # after the checkpoint, the file that names it
            raise OSError(5, 'crashed')

    monkeypatch.setattr(os, 'fsync', crash_at_the_second)
    with pytest.raises(OSError, match='crashed'):
        hook._save_checkpoint_with_step(runner, 2, dict(epoch=2, iter=8))
    folder = Path(runner.work_dir)
    assert (folder / 'epoch_2.pth').is_file()
    assert (folder / 'last_checkpoint').read_text() == str(folder / 'epoch_1.pth')


def test_without_a_sampler_that_skips_the_batches_that_were_seen_are_loaded_again():
    loop = object.__new__(ResumableEpochTrainLoop)
    loop._runner = MagicMock()
    loop.dataloader = DataLoader(torch.arange(10), batch_size=3)
    loop._iter, loop._epoch, seen = 2, 0, []
    loop.run_iter = lambda index, batch: seen.append((index, batch.tolist()))
    loop.run_epoch()
    assert seen == [(2, [6, 7, 8]), (3, [9])]


def test_a_run_goes_on_between_steps_alone_and_no_gradient_is_said_to_be_lost(monkeypatch):
    said = []
    place = 'mmengine.optim.optimizer.optimizer_wrapper.print_log'
    monkeypatch.setattr(place, lambda text, **_: said.append(text))
    loop, model = object.__new__(ResumableEpochTrainLoop), nn.Linear(1, 1)
    wrapper = SafeAmpOptimWrapper(
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0), accumulative_counts=3
    )
    loop._runner = MagicMock(model=model, optim_wrapper=wrapper)
    loop.dataloader, seen = DataLoader(torch.arange(4)), []
    loop.run_iter = lambda index, batch: seen.append((index, wrapper.inner_count))
    # Steps of an epoch are after its third batch, and after its last one, the fourth.
    for iteration, epoch in ((4, 0), (3, 0), (4, 1), (7, 1), (8, 1)):
        loop._iter, loop._epoch = iteration, epoch
        wrapper.initialize_count_status(model, iteration, 8)  # as MMEngine's runner does
        loop.run_epoch()
    first = [(0, 0), (1, 0), (2, 0), (3, 0)]  # the batch, and those before it
    assert seen == [(3, 3), *first, (3, 3)] and not said
    for loop._iter, loop._epoch in ((2, 0), (5, 1)):
        with pytest.raises(ValueError, match=f'iteration {loop._iter % 4 or 4} of an epoch, where'):
            loop.run_epoch()


@pytest.mark.parametrize('scales', [(True, True), (True, False), (False, True)])
def test_a_run_goes_on_in_another_precision(scales):
    """From float16 to bfloat16 and back; the scale of float16 is kept if there is one."""
    wrappers = []
    for is_scaled, scale in zip(scales, (4.0, 8.0), strict=True):
        optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
        wrappers.append(SafeAmpOptimWrapper(optimizer=optimizer))
        if is_scaled:
            wrappers[-1].scaler = torch.amp.GradScaler('cpu', init_scale=scale)
            wrappers[-1].scaler.scale(torch.ones(1))  # makes its state
    before, after = wrappers
    after.load_state_dict(before.state_dict())
    assert after.scaler.get_scale() == {(True, True): 4.0, (True, False): 1.0}.get(scales, 8.0)


@pytest.mark.parametrize('in_batches', [False, True])
@pytest.mark.parametrize('sampler', [DefaultSampler, EpochSampler, WithEpochs])
@pytest.mark.parametrize('dataset', [SampleDataset, list])
def test_a_sampler_says_the_epoch_to_a_dataset_that_draws_by_it(
    sampler, dataset, in_batches, monkeypatch
):
    monkeypatch.setattr(SampleDataset, '__len__', lambda self: 3)
    loader = dict(sampler=sampler([1, 2, 3]))
    if in_batches:
        loader = dict(batch_sampler=BatchSampler(loader['sampler'], 2, drop_last=True))
    loop = object.__new__(ResumableEpochTrainLoop)
    loop.dataloader = DataLoader(dataset(), **loader)
    refuses = sampler is DefaultSampler and dataset is SampleDataset
    expected = pytest.raises(ConfigError, match='train_dataloader.sampler gives indices alone')
    with expected if refuses else nullcontext():
        loop._require_epoch_of_samples()
