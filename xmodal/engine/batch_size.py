"""The batch of one process and one iteration, and the batches of an epoch."""

from mmengine.dist import get_world_size
from mmengine.logging import MMLogger, print_log
from mmengine.runner.utils import _get_batch_size
from torch import nn
from torch.utils.data import DataLoader

from xmodal.errors import ConfigError
from xmodal.registry import DATASETS


def divide_batch(
    dataloader: dict, num_processes: int, accumulated_steps: int, logger: MMLogger
) -> dict:
    """Replaces ``global_batch_size`` in the config of a data loader by ``batch_size``.

    Args:
        dataloader: config; returned as it is if it has no ``global_batch_size``.
        num_processes: number of ranks.
        accumulated_steps: backward passes in one optimizer step.
        logger: gets the sizes.

    Raises:
        ConfigError: if the config has both sizes, or the division leaves a remainder.
    """
    dataloader = dict(dataloader)
    total = dataloader.pop('global_batch_size', None)
    if total is None:
        return dataloader
    if 'batch_size' in dataloader:
        raise ConfigError(
            'train_dataloader has both global_batch_size (of all processes) and batch_size (of '
            'one): remove one of them'
        )
    parts = num_processes * accumulated_steps
    factors = f'{num_processes} process(es) x {accumulated_steps} accumulated step(s)'
    if total % parts:
        raise ConfigError(
            f'train_dataloader.global_batch_size={total} is not a multiple of {factors}: change '
            'one of the three'
        )
    dataloader['batch_size'] = batch_size = total // parts
    if parts > 1:
        logger.info(
            f'global_batch_size={total} is {factors} x {batch_size}: a loss that compares the '
            f'samples of a batch (the negatives of matching) compares {batch_size}'
        )
    return dataloader


def leave_out_excess(dataloader: dict) -> dict:
    """Leaves out a ``num_batch_per_epoch`` that is more than all batches of the data set.

    MMEngine cuts a data set at any number, and would ask it for samples that it does not have.

    Args:
        dataloader: config, returned as it is if it has no such number.
    """
    if not (batches := dataloader.get('num_batch_per_epoch')):
        return dataloader
    dataloader = dict(dataloader)
    if isinstance(dataloader['dataset'], dict):
        dataloader['dataset'] = DATASETS.build(dataloader['dataset'])
    samples, count = batches * _get_batch_size(dataloader), len(dataloader['dataset'])
    if samples * get_world_size() > count:
        del dataloader['num_batch_per_epoch']
        print_log(
            f'num_batch_per_epoch={batches} is left out: {count} samples have no more batches',
            'current',
        )
    return dataloader


def require_batch(loader: DataLoader, num_processes: int, model: nn.Module) -> None:
    """Refuses training data that do not fill a batch, and batches too small for the losses.

    Args:
        loader: of the training data of one process.
        num_processes: number of ranks.
        model: without a wrapper.

    Raises:
        ConfigError: says how many samples there are, or which loss has too few in a batch.
    """
    if not len(loader):
        raise ConfigError(
            f'train_dataloader has no whole batch: {len(loader.dataset)} samples for '
            f'{num_processes} process(es) x {loader.batch_size}: lower '
            'train_dataloader.global_batch_size'
        )
    if loader.batch_size is not None:  # which a batch sampler chooses
        _require_negatives(model, loader.batch_size, num_processes)


def _require_negatives(model: nn.Module, batch_size: int, num_processes: int) -> None:
    """Refuses batches in which a pair has nothing to be compared with.

    The loss would be constant, or its head would learn that everything matches.

    Args:
        model: its parts say what they need by ``min_batch`` and ``min_keys``, see
            :class:`xmodal.models.heads.PretrainHead`.
        batch_size: of one process and one iteration.
        num_processes: number of ranks.

    Raises:
        ConfigError: names the part that has too few.
    """
    queue_length = getattr(getattr(model, 'queue', None), 'length', 0)
    counts = {
        'min_batch': (batch_size, 'in the batch of a process'),
        'min_keys': (batch_size * num_processes + queue_length, 'of all processes and the queue'),
    }
    for name, part in model.named_modules():
        for key, (count, where) in counts.items():
            if count < (needed := getattr(part, key, 1)):
                raise ConfigError(
                    f'{type(part).__name__} ({".".join(filter(None, ("model", name)))}) compares '
                    f'at least {needed} pairs with each other, and there are {count} {where}: '
                    'raise train_dataloader.global_batch_size (batches of accumulated steps are '
                    'not compared), or train without it'
                )
