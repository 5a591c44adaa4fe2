"""Schedules keep the ratios that layer-wise decay makes, step by step and when a run is resumed."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config, ConfigDict
from runs import assert_same_end, call_at, load, stop, train
from torch import nn

from xmodal.engine.optim import AlbefLR
from xmodal.engine.optim.schedules import acts, keep_ratios
from xmodal.errors import ConfigError
from xmodal.registry import PARAM_SCHEDULERS

ALBEF = [
    dict(
        type='AlbefLR', warmup_lr=1e-5, warmup_steps=1, eta_min=1e-5, end=2,
        convert_to_iter_based=True,
    )
]  # fmt: skip
COSINE = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2),
    dict(type='CosineAnnealingLR', eta_min=1e-5, convert_to_iter_based=True, T_max=2),
]


@pytest.mark.parametrize('schedules', [ALBEF, COSINE], ids=['albef', 'cosine'])
def test_ratios_are_kept_and_those_of_a_resumed_run_too(tiny_config, tmp_path, schedules):
    tiny_config.optim_wrapper.paramwise_cfg = dict(layer_decay=0.1)
    tiny_config.param_scheduler = [ConfigDict(schedule) for schedule in schedules]
    seen = []

    def note(runner):
        groups = runner.optim_wrapper.param_groups
        top = next(group['lr'] for group in groups if 'lr_scale' not in group)
        seen.append(top)
        for group in groups:
            assert group['lr'] == pytest.approx(top * group.get('lr_scale', 1.0), rel=1e-9)
        assert {round(group.get('lr_scale', 1.0), 6) for group in groups} >= {0.01, 0.1, 1.0}

    hooks = [*tiny_config.custom_hooks, *(call_at(i, note) for i in (0, 1, 4, 5, 7))]
    whole = Config(dict(tiny_config, custom_hooks=hooks, work_dir=str(tmp_path / 'whole')))
    train(whole)
    assert len(set(seen)) > 1
    parted = Config(dict(whole, work_dir=str(tmp_path / 'parted')))
    with pytest.raises(KeyboardInterrupt):
        train(parted, custom_hooks=[*tiny_config.custom_hooks, call_at(5, stop)])
    train(parted, resume=True)
    files = [tmp_path / name / 'epoch_2.pth' for name in ('whole', 'parted')]
    assert_same_end(*files)
    ends = [group['lr'] for group in load(files[0])['optimizer']['param_groups']]
    assert max(ends) / min(ends) > 40


@pytest.mark.parametrize('kind', ['AlbefLR', 'xmodal.AlbefLR', AlbefLR])
def test_a_schedule_with_shares_of_its_own_is_left_as_it_is(kind):
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1.0)
    optimizer.param_groups[0]['lr_scale'] = 0.5
    schedule = dict(type=kind, eta_min=0.1)
    assert keep_ratios(schedule, optimizer) == schedule


@pytest.mark.parametrize(
    ('schedule', 'sentence'),
    [
        (dict(type='PolyLR', eta_min=0.1), 'PolyLR has one eta_min .* set eta_min=0, or take'),
        (dict(type='OneCycleLR', eta_max=0.1, total_steps=9), 'has one eta_max .*: take'),
    ],
)
def test_a_schedule_with_one_rate_for_all_is_refused(schedule, sentence):
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1.0)
    assert keep_ratios(schedule, optimizer) == schedule
    optimizer.param_groups[0]['lr_scale'] = 0.5
    with pytest.raises(ConfigError, match=sentence):
        keep_ratios(schedule, optimizer)


@pytest.mark.parametrize(
    ('end', 'unit', 'short'),
    [
        (30, dict(by_epoch=False), True),
        (8, dict(by_epoch=False), False),
        (3, dict(convert_to_iter_based=True), True),
        (2, dict(convert_to_iter_based=True), False),
    ],
)
def test_a_run_that_ends_in_its_warm_up_is_warned_of(end, unit, short):
    loop, log = SimpleNamespace(max_epochs=2, max_iters=8, dataloader=range(4)), []
    schedule = dict(type='LinearLR', start_factor=0.1, end=end, **unit)
    assert acts(schedule, loop, SimpleNamespace(warning=log.append))
    assert [f'ends after {end} ' in sentence for sentence in log] == [True] * short


@pytest.mark.parametrize('others', [{}, {'begin': 2}, {'begin': 1, 'end': 7}, {'end': 6}])
@pytest.mark.parametrize('total', [5, 6, 7, 8, 9])
def test_a_one_cycle_that_would_end_a_run_with_an_error_is_refused(total, others):
    loop = SimpleNamespace(max_epochs=2, max_iters=8, dataloader=range(4))
    schedule = dict(type='OneCycleLR', eta_max=0.1, total_steps=total, by_epoch=False, **others)
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1.0)
    built, problem = PARAM_SCHEDULERS.build({**schedule, 'optimizer': optimizer}), None
    try:
        for _ in range(loop.max_iters):
            optimizer.step()
            built.step()
    except ValueError as error:
        problem = error
    if problem is None:
        assert acts(schedule, loop, None)
    else:
        with pytest.raises(ConfigError, match=f'total_steps={total}, and the run has 8 iter'):
            acts(schedule, loop, None)
