"""Schedules of a config: which act in a run, and the ratios of rates that they keep."""

from mmengine.logging import MMLogger
from mmengine.optim import _ParamScheduler
from mmengine.runner import BaseLoop
from torch.optim import Optimizer

from xmodal.arguments import accepted_parameters
from xmodal.build_functions import find_component
from xmodal.errors import ConfigError
from xmodal.registry import PARAM_SCHEDULERS

SCALE = 'lr_scale'  # of a parameter group, its share of the learning rate; timm's name


def acts(schedule: dict | _ParamScheduler, loop: BaseLoop, logger: MMLogger) -> bool:
    """Whether a schedule begins within a run, and has more than one step where it has an ``end``.

    The first step sets the rate to that of the begin, and without another one nothing leads to the
    end: a warm-up of a tenth of an epoch with a few batches would keep its rate for the whole run.

    Args:
        schedule: config, or a schedule that is built already, when a run is resumed.
        loop: of the training.
        logger: gets a warning for a schedule of a single step, or none, and for a warm-up that the
            run ends before.

    Raises:
        ConfigError: for a ``OneCycleLR`` whose ``total_steps`` the run exceeds, which would end it.
    """
    if isinstance(schedule, _ParamScheduler):
        return True
    begin, end = schedule.get('begin', 0), schedule.get('end')
    by_epoch = schedule.get('by_epoch', True)
    last, unit = (loop.max_epochs, 'epochs') if by_epoch else (loop.max_iters, 'iterations')
    if begin >= last:
        return False
    if schedule['type'] == 'LinearLR' and begin == 0 and end is not None and end > last:
        logger.warning(
            f'LinearLR, the warm-up, ends after {end:g} {unit}, and the run after {last}: the rate '
            'stays below that of the optimizer. Lower its end (param_scheduler), or train longer'
        )
    total, most = schedule.get('total_steps'), (last if end is None else min(last, end - 1)) - begin
    if total is not None and most > total:
        raise ConfigError(
            f'param_scheduler: {schedule["type"]}.total_steps={total}, and the run has {last} '
            f'{unit}: write total_steps={last}'
        )
    iterations = len(loop.dataloader)
    length = iterations if schedule.get('convert_to_iter_based') else 1
    if end is None or end * length // 1 - begin * length // 1 >= 2:
        return True
    logger.warning(
        f'{schedule["type"]} (begin={begin:g}, end={end:g}) is left out: with {iterations} '
        'iteration(s) in an epoch it has less than two steps'
    )
    return False


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
