"""Which schedules of a config act in a run."""

from mmengine.logging import MMLogger
from mmengine.optim import _ParamScheduler
from mmengine.runner import BaseLoop

from xmodal.errors import ConfigError


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
