"""Which schedules of a config act in a run."""

from mmengine.logging import MMLogger
from mmengine.optim import _ParamScheduler
from mmengine.runner import BaseLoop


def acts(schedule: dict | _ParamScheduler, loop: BaseLoop, logger: MMLogger) -> bool:
    """Whether a schedule begins within a run, and has more than one step where it has an ``end``.

    The first step sets the rate to that of the begin, and without another one nothing leads to the
    end: a warm-up of a tenth of an epoch with a few batches would keep its rate for the whole run.

    Args:
        schedule: config, or a schedule that is built already, when a run is resumed.
        loop: of the training.
        logger: gets a warning for a schedule of a single step, or none.
    """
    if isinstance(schedule, _ParamScheduler):
        return True
    begin, end = schedule.get('begin', 0), schedule.get('end')
    if begin >= (loop.max_epochs if schedule.get('by_epoch', True) else loop.max_iters):
        return False
    iterations = len(loop.dataloader)
    length = iterations if schedule.get('convert_to_iter_based') else 1
    if end is None or end * length // 1 - begin * length // 1 >= 2:
        return True
    logger.warning(
        f'{schedule["type"]} (begin={begin:g}, end={end:g}) is left out: with {iterations} '
        'iteration(s) in an epoch it has less than two steps'
    )
    return False
