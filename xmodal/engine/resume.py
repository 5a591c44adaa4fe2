"""Whether a checkpoint is all of a run: weights, optimizer, schedules, and where it was."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from mmengine.config import Config
from mmengine.logging import print_log
from mmengine.optim import OptimWrapper, _ParamScheduler
from torch import Tensor
from torch.utils.data import DataLoader

from xmodal.arguments import accepted_parameters
from xmodal.config_text import ABSENT, changed_values, read_values
from xmodal.datasets.seeding import set_run_seed
from xmodal.engine.checkpoint import listed, to_plain
from xmodal.engine.keys import TOP_LEVEL_KEYS
from xmodal.errors import shortened

_PARTS = ('state_dict', 'optimizer', 'message_hub', 'meta')
_POSITION = ('epoch', 'iter', 'seed')
# What an optimizer remembers of every element of a parameter: Adam, SGD, BertAdam.
_MOMENTS = ('exp_avg', 'exp_avg_sq', 'momentum_buffer', 'mean', 'square')
# Of a group of parameters: how its step is computed, but not which.
_NOT_SETTINGS = {'params', 'foreach', 'fused', 'capturable', 'differentiable'}
# What a schedule says of where it is; the rest is from the config, base_values the learning rates.
_MOVING = {
    *('last_step', '_global_step', '_last_value', 'verbose'),
    *('best', 'num_bad_epochs', 'cooldown_counter'),  # of ReduceOnPlateauLR
}
# Sections of a config that say nothing of what a run learns, or where it is. The seed is that of
# the checkpoint, and MMEngine says so.
_LEARNED_BY = TOP_LEVEL_KEYS - {
    *('default_hooks', 'env_cfg', 'experiment_name', 'launcher', 'load_from', 'load_from_ignore'),
    *('log_level', 'log_processor', 'randomness', 'resume', 'visualizer', 'work_dir'),
}


def change_seed(dataloader: DataLoader, old: int, new: int) -> None:
    """Gives the order of samples and their random choices the seed of the run that is resumed.

    Args:
        dataloader: that of the training.
        old: the seed that its sampler has if the config gives it none.
        new: that of the checkpoint.
    """
    if getattr(dataloader.sampler, 'seed', None) == old:
        dataloader.sampler.seed = new
    set_run_seed(dataloader.dataset, new)


def warn_of_changes(meta: dict, config: Config, file: str | Path) -> None:
    """Names what a config has other than that of the checkpoint from which its run goes on.

    Options of a command line that are not given again would change a run without a word.

    Args:
        meta: of the checkpoint. One without a config of values alone is compared with nothing.
        config: of the run.
        file: the checkpoint.
    """
    try:
        before, now = (
            {key: x for key, x in to_plain(read_values(text)).items() if key in _LEARNED_BY}
            for text in (meta['cfg'], config.pretty_text)
        )
    except (KeyError, TypeError, SyntaxError, ValueError, RecursionError):
        return
    if differing := [_told(*change) for change in changed_values(before, now)]:
        print_log(
            f'{file} was made with another config: {listed(differing, 8)}. The run goes on with '
            'what is here; if that is not meant, give the options of the first command again',
            'current',
            logging.WARNING,
        )


def _told(key: str, before: object, now: object) -> str:
    if before is ABSENT:
        return f'{key}={shortened(now)} is here alone'
    if now is ABSENT:
        return f'{key}={shortened(before)} is there alone'
    return f'{key} is {shortened(before)} there and {shortened(now)} here'


def require_whole_run(
    checkpoint: dict,
    file: str | Path,
    weights: dict[str, Tensor],
    optim_wrapper: OptimWrapper,
    schedules: list[_ParamScheduler],
) -> None:
    """Refuses to resume a run from a checkpoint that lacks a part of it, or has one that is other.

    Args:
        checkpoint: with the current names of weights.
        file: where it comes from.
        weights: the state dict of the model.
        optim_wrapper: the optimizer, as it was built.
        schedules: of the learning rate, as they were built.

    Raises:
        ValueError: lists all that does not fit.
    """
    wrong = list(_wrong_parts(checkpoint))
    if not wrong:
        wrong = [
            *_wrong_weights(checkpoint['state_dict'], weights),
            *_wrong_optimizer(checkpoint['optimizer'], optim_wrapper, schedules),
            *_wrong_schedules(checkpoint.get('param_schedulers', []), schedules),
        ]
    if wrong:
        raise ValueError(
            f'{file} cannot be resumed: {"; ".join(wrong)}. Resume a whole checkpoint with the '
            'config that it was made with, or give its weights to a new run by load_from'
        )


def _wrong_parts(checkpoint: dict) -> Iterator[str]:
    for name in _PARTS:
        if name not in checkpoint:
            yield f'it has no {name}'
        elif not isinstance(checkpoint[name], dict):
            yield f'its {name} is a {type(checkpoint[name]).__name__}, expected a dict'
    meta = checkpoint.get('meta')
    if isinstance(meta, dict):
        for name in _POSITION:
            if not isinstance(meta.get(name), int):
                yield f'its meta has no number {name}'


def _wrong_weights(found: dict[str, Tensor], expected: dict[str, Tensor]) -> Iterator[str]:
    if missing := [name for name in expected if name not in found]:
        yield f'it lacks {len(missing)} of {len(expected)} tensors of the model ({listed(missing)})'
    if others := [name for name in found if name not in expected]:
        yield f'it has {len(others)} tensors that the model lacks ({listed(others)})'
    differing = [
        f'{name} is {_size(found[name])} there and {_size(value)} here'
        for name, value in expected.items()
        if name in found and _size(found[name]) != _size(value)
    ]
    if differing:
        yield f'{len(differing)} tensors have another shape ({listed(differing)})'


def _size(value: object) -> list[int] | str:
    """The shape, [1] for a scalar: where the model is sharded, a scalar has an axis."""
    return (list(value.shape) or [1]) if isinstance(value, Tensor) else type(value).__name__


def _wrong_optimizer(
    found: dict, wrapper: OptimWrapper, schedules: list[_ParamScheduler]
) -> Iterator[str]:
    groups, saved = wrapper.optimizer.param_groups, found.get('param_groups')
    if not isinstance(saved, list) or not isinstance(found.get('state'), dict):
        yield 'its optimizer has no param_groups and state'
        return
    counts, expected = ([len(group['params']) for group in part] for part in (saved, groups))
    if counts != expected:
        yield f'its optimizer has groups of {counts} parameters, expected {expected}'
        return
    if not all(_is_same_kind(*pair) for pair in zip(saved, groups, strict=True)):
        yield 'its optimizer is of another kind'
    else:
        yield from _wrong_settings(saved, groups, schedules)
    values = [value for group in groups for value in group['params']]
    indices = [index for group in saved for index in group['params']]
    for index, value in zip(indices, values, strict=True):
        state = found['state'].get(index, {})
        for name in _MOMENTS:
            if isinstance(state.get(name), Tensor) and _size(state[name]) != _size(value):
                yield f"its optimizer's {name} of parameter {index} has another shape"
                return


def _wrong_settings(
    saved: list[dict], groups: list[dict], schedules: list[_ParamScheduler]
) -> Iterator[str]:
    """The optimizer would take the checkpoint's, whatever the config says."""
    scheduled = {f'{start}{s.param_name}' for s in schedules for start in ('', 'initial_')}
    differing = {  # each once, of however many groups
        f'{key} is {shortened(before[key])} there and {shortened(group[key])} here'
        for before, group in zip(to_plain(saved), to_plain(groups), strict=True)
        for key in before.keys() & group.keys() - _NOT_SETTINGS - scheduled
        if before[key] != group[key]
    }
    if differing:
        yield f'its optimizer has other settings ({listed(sorted(differing))})'


def _wrong_schedules(found: list[dict], schedules: list[_ParamScheduler]) -> Iterator[str]:
    if not isinstance(found, list) or len(found) != len(schedules):
        yield f'it has {len(found)} schedules, and this run {len(schedules)}'
        return
    for state, schedule in zip(found, schedules, strict=True):
        expected = to_plain(schedule.state_dict())
        if not _is_same_kind(state, expected):
            yield 'its schedules are of another kind'
            return
        # The checkpoint's would be taken, whatever the config says.
        differing = [
            f'{type(schedule).__name__}.{key} is {shortened(state[key])} there and '
            f'{shortened(expected[key])} here'
            for key in state.keys() & expected.keys() & _fixed(schedule)
            if state[key] != expected[key]
        ]
        if differing:
            yield f'its schedules have other values ({listed(sorted(differing))})'
            return


def _fixed(schedule: _ParamScheduler) -> set[str]:
    """What a schedule has from the config. A plug-in's may count under any other name."""
    kind = type(schedule)
    if kind.__module__.startswith('mmengine.'):
        return vars(schedule).keys() - _MOVING
    return {*accepted_parameters(kind)[0], 'base_values'} - _MOVING


def _is_same_kind(found: Iterable[str], expected: Iterable[str]) -> bool:
    """Whether one has the keys of the other; a version of PyTorch or MMEngine may add some."""
    return set(found) <= set(expected) or set(expected) <= set(found)
