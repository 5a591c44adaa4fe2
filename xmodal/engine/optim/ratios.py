"""Schedules keep the ratios between the learning rates of parameter groups."""

from torch.optim import Optimizer

from xmodal.arguments import accepted_parameters
from xmodal.build_functions import find_component
from xmodal.errors import ConfigError
from xmodal.registry import PARAM_SCHEDULERS

SCALE = 'lr_scale'  # of a parameter group, its share of the learning rate; timm's name


def keep_ratios(schedule: dict, optimizer: Optimizer) -> dict:
    """A schedule whose lowest rate is a share of each group's rate, if groups have shares.

    ``eta_min=1e-6`` for all groups would end with one rate for all, and raise small ones.

    Args:
        schedule: config.
        optimizer: optimizer, or its wrapper.

    Raises:
        ConfigError: for a schedule with one lowest rate that cannot be a share.
    """
    groups = optimizer.param_groups
    if not schedule.get('eta_min') or not any(SCALE in group for group in groups):
        return schedule
    known = accepted_parameters(find_component(schedule['type'], PARAM_SCHEDULERS))[0]
    if 'eta_min_ratio' in known:
        rate = groups[0].get('initial_lr', groups[0]['lr']) / groups[0].get(SCALE, 1.0)
        changed = {key: value for key, value in schedule.items() if key != 'eta_min'}
        return {**changed, 'eta_min_ratio': schedule['eta_min'] / rate}
    if schedule['type'] == 'AlbefLR':  # it has shares itself
        return schedule
    raise ConfigError(
        f'param_scheduler: {schedule["type"]} has one eta_min for all parameters, whose rates '
        "optim_wrapper.paramwise_cfg sets apart: set eta_min=0, or take type='"
        "CosineAnnealingLR'"
    )
