"""ALBEF's learning rate, iteration by iteration."""

import math

import pytest
import torch
from mmengine.config import Config
from runs import assert_same_end, call_at, stop, train

from xmodal.engine.optim import albef_lr
from xmodal.errors import ConfigError
from xmodal.registry import PARAM_SCHEDULERS


class Reference:
    """The rates of a run, as ALBEF's scripts set them: a value that is written now and then."""

    def __init__(self, lr, warmup_lr, warmup_epochs, min_lr, epochs):
        self.lr, self.warmup_lr, self.min_lr = lr, warmup_lr, min_lr
        self.warmup_epochs, self.epochs = warmup_epochs, epochs
        self.now = warmup_lr  # before the first step

    def set(self, t):
        if t < self.warmup_epochs:
            self.now = self.warmup_lr + t * (self.lr - self.warmup_lr) / self.warmup_epochs
        else:
            angle = math.pi * (t - self.warmup_epochs) / self.epochs
            self.now = self.min_lr + 0.5 * (self.lr - self.min_lr) * (1 + math.cos(angle))

    def run(self, epoch_length, step_size=100):
        used = []
        for epoch in range(self.epochs):
            if epoch > 0:
                self.set(epoch + self.warmup_epochs)
            for i in range(epoch_length):
                used.append(self.now)
                is_warm_up = epoch == 0 and i <= self.warmup_epochs * step_size
                if is_warm_up and i % step_size == 0:
                    self.set(i // step_size)
        return used


def schedule_of(optimizer, epochs, epoch_length, **options):
    config = dict(type='AlbefLR', end=epochs, convert_to_iter_based=True, **options)
    return PARAM_SCHEDULERS.build(
        config, default_args=dict(optimizer=optimizer, epoch_length=epoch_length)
    )


def rates_of(lr, epochs, epoch_length, **options):
    """The rate that each step of a run takes."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedule = schedule_of(optimizer, epochs, epoch_length, **options)
    used = []
    for _ in range(epochs * epoch_length):
        used.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        schedule.step()
    return used


@pytest.mark.parametrize('epoch_length', [1, 30, 100, 101, 102, 401, 450, 2500])
@pytest.mark.parametrize(
    'recipe',
    [
        dict(lr=1e-4, warmup_lr=1e-5, warmup_epochs=20, min_lr=1e-5, epochs=4),
        dict(lr=2e-5, warmup_lr=1e-5, warmup_epochs=4, min_lr=1e-6, epochs=3),
        dict(lr=2e-5, warmup_lr=1e-5, warmup_epochs=1, min_lr=1e-5, epochs=1),
        dict(lr=1e-5, warmup_lr=1e-5, warmup_epochs=1, min_lr=1e-6, epochs=5),
    ],
)
def test_every_iteration_has_the_rate_of_the_reference(recipe, epoch_length):
    expected = Reference(**recipe).run(epoch_length)
    actual = rates_of(
        recipe['lr'], recipe['epochs'], epoch_length, warmup_lr=recipe['warmup_lr'],
        warmup_steps=recipe['warmup_epochs'], eta_min=recipe['min_lr'],
    )  # fmt: skip
    assert actual == pytest.approx(expected, rel=1e-12)


def test_the_rate_jumps_where_the_first_epoch_is_shorter_than_the_warm_up():
    rates = rates_of(1e-4, 30, 250, warmup_lr=1e-5, warmup_steps=20, eta_min=1e-5)
    assert rates[249] == pytest.approx(1e-5 + 2 * 9e-5 / 20)
    assert rates[250] == rates[499] == pytest.approx(1e-5 + 9e-5 * (1 + math.cos(math.pi / 30)) / 2)


def test_each_parameter_group_has_a_rate_of_its_own():
    groups = [dict(params=[torch.zeros(1, requires_grad=True)], lr=lr) for lr in (1.0, 3.0)]
    optimizer = torch.optim.SGD(groups)
    schedule = schedule_of(optimizer, 2, 2, warmup_lr=0.5, warmup_steps=0, eta_min=0.0)
    seen = [[group['lr'] for group in optimizer.param_groups]]
    for _ in range(3):
        optimizer.step()
        schedule.step()
        seen.append([group['lr'] for group in optimizer.param_groups])
    assert seen == [[1, 3], [1, 3], [pytest.approx(0.5), pytest.approx(1.5)]] + seen[-1:]
    assert seen[2] == seen[3]


def test_a_schedule_that_is_not_converted_is_refused():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    config = dict(type='AlbefLR', end=2, warmup_lr=0.1, warmup_steps=1, eta_min=0.0)
    with pytest.raises(ConfigError, match='add it'):
        PARAM_SCHEDULERS.build(config, default_args=dict(optimizer=optimizer, epoch_length=4))


@pytest.fixture
def stepped_config(tiny_config):
    """Two epochs of four iterations."""
    schedule = dict(type='AlbefLR', warmup_lr=1e-5, warmup_steps=2, eta_min=1e-4)
    tiny_config.param_scheduler = [dict(schedule, convert_to_iter_based=True)]
    return tiny_config


def test_a_run_takes_the_rates_of_the_reference(stepped_config, monkeypatch):
    monkeypatch.setattr(albef_lr, '_ITERATIONS_A_STEP', 2)  # steps within four iterations
    used = []

    def note(runner):
        used.append(runner.optim_wrapper.optimizer.param_groups[0]['lr'])

    stepped_config.custom_hooks.extend(call_at(i, note) for i in range(8))
    train(stepped_config)
    lr = stepped_config.optim_wrapper.optimizer.lr
    expected = Reference(lr, 1e-5, 2, 1e-4, epochs=2).run(4, step_size=2)
    assert len(set(expected)) == 3 and used == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize('stopped_at', [3, 6])
def test_a_resumed_run_equals_the_uninterrupted_one(
    stepped_config, monkeypatch, tmp_path, stopped_at
):
    monkeypatch.setattr(albef_lr, '_ITERATIONS_A_STEP', 2)
    config = stepped_config
    config.default_hooks.checkpoint.update(by_epoch=False, interval=1)
    train(config, work_dir=str(tmp_path / 'whole'))
    with pytest.raises(KeyboardInterrupt):
        train(
            config,
            work_dir=str(tmp_path / 'cut'),
            custom_hooks=[*config.custom_hooks, call_at(stopped_at, stop)],
        )
    config.resume = True
    train(config, work_dir=str(tmp_path / 'cut'))
    assert_same_end(tmp_path / 'whole/iter_8.pth', tmp_path / 'cut/iter_8.pth')


@pytest.mark.parametrize(
    ('name', 'lr', 'warmup_steps', 'eta_min', 'epochs'),
    [
        ('albef_4m', 1e-4, 20, 1e-5, 30),  # Pretrain.yaml
        ('nlvr2_ta', 2e-5, 1, None, 1),  # NLVR_pretrain.yaml: of one epoch the rate does not fall
        ('nlvr2', 2e-5, 1, 1e-6, 10),  # NLVR.yaml
        ('snli_ve', 2e-5, 1, 1e-6, 5),  # VE.yaml
        ('vqa_v2', 2e-5, 4, 1e-6, 8),  # VQA.yaml
        ('retrieval_coco', 1e-5, 1, 1e-6, 5),  # Retrieval_coco.yaml
        ('retrieval_flickr30k', 1e-5, 1, 1e-6, 10),  # Retrieval_flickr.yaml
        ('grounding_refcoco_plus', 1e-5, 1, 1e-6, 5),  # Grounding.yaml
    ],
)
def test_the_recipes_of_albef_have_its_numbers(name, lr, warmup_steps, eta_min, epochs):
    config = Config.fromfile(f'configs/acerpe/{name}.py')
    (schedule,) = config.param_scheduler
    assert schedule.type == 'AlbefLR' and schedule.warmup_lr == 1e-5
    assert schedule.warmup_steps == warmup_steps
    assert eta_min in (None, schedule.eta_min)
    assert config.optim_wrapper.optimizer.lr == lr and config.train_cfg.max_epochs == epochs


def test_text_assignment_keeps_its_rate_after_the_warm_up():
    schedule = dict(Config.fromfile('configs/acerpe/nlvr2_ta.py').param_scheduler[0])
    options = {key: schedule[key] for key in ('warmup_lr', 'warmup_steps', 'eta_min')}
    assert rates_of(2e-5, 1, 300, **options) == [1e-5] * 101 + [2e-5] * 199


@pytest.mark.parametrize('name', ['pretrain_4m', 'pretrain_14m', 'pretrain_shapes'])
def test_ace_rpe_pre_trains_with_a_step_an_iteration(name):
    schedules = Config.fromfile(f'configs/acerpe/{name}.py').param_scheduler
    assert [schedule.type for schedule in schedules] == ['LinearLR', 'CosineAnnealingLR']
    assert schedules[-1].convert_to_iter_based
