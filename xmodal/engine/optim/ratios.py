"""Schedules keep the ratios between the learning rates of parameter groups."""

from torch.optim import Optimizer

from xmodal.arguments import accepted_parameters
from xmodal.build_functions import find_component
from xmodal.errors import ConfigError
from xmodal.registry import PARAM_SCHEDULERS

SCALE = 'lr_scale'  # of a parameter group, its share of the learning rate; timm's name


def keep_ratios(schedule: dict, optimizer: Optimizer) -> dict:
    """A schedule whose lowest rate is a share of each group's rate, if groups have shares.

    ``eta_min=1e-6`` for all groups would end with one rate for all, and raise small ones. The
    ``eta_max`` of ``OneCycleLR`` takes the place of all their rates from the first step on.

    Args:
        schedule: config.
        optimizer: optimizer, or its wrapper.

    Raises:
        ConfigError: for a schedule with one rate for all groups that cannot be a share.
    """
    groups = optimizer.param_groups
    given = [key for key in ('eta_min', 'eta_max') if schedule.get(key)]
    if not given or not any(SCALE in group for group in groups):
        return schedule
    kind = find_component(schedule['type'], PARAM_SCHEDULERS)
    if 'eta_min_ratio' in accepted_parameters(kind)[0]:
        rate = groups[0].get('initial_lr', groups[0]['lr']) / groups[0].get(SCALE, 1.0)
        changed = {key: value for key, value in schedule.items() if key != 'eta_min'}
        return {**changed, 'eta_min_ratio': schedule['eta_min'] / rate}
    if kind.__name__ == 'AlbefLR':  # it has shares itself
        return schedule
    advice = "take type='LinearLR' and type='CosineAnnealingLR', which keep their ratios"
    if given == ['eta_min']:
        advice = f'set eta_min=0, or {advice}'
    raise ConfigError(
        f'param_scheduler: {kind.__name__} has one {given[0]} for all parameters, whose rates '
        f'optim_wrapper.paramwise_cfg sets apart: {advice}'
    )
