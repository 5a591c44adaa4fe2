"""FSDP: parameters, gradients and optimizer state sharded over the ranks.

Checkpoints are whole, as without FSDP, so a run can resume with another number of ranks and any
other program can read them.
"""

from collections.abc import Iterable

from mmengine.optim import OptimWrapper
from mmengine.runner import BaseLoop
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from xmodal.engine.layers import find_modules

# Loops that call the sharded model, in which all ranks take part. Loops of xmodal gather it.
_LOOPS_WITH_SHARDED_MODEL = ('ValLoop', 'TestLoop')


def equalize_batches(loop: BaseLoop | dict, dataloader: DataLoader | dict) -> DataLoader | dict:
    """Gives all ranks the same number of batches if a loop evaluates the sharded model.

    Two ranks may then see the same sample; the metrics of tasks count it once.

    Args:
        loop: config of a loop, or the loop.
        dataloader: config of its data loader, or the loader.
    """
    are_configs = isinstance(loop, dict) and isinstance(dataloader, dict)
    if not are_configs or loop['type'] not in _LOOPS_WITH_SHARDED_MODEL:
        return dataloader
    return {**dataloader, 'sampler': {**dataloader['sampler'], 'round_up': True}}


class ShardedModel:
    """A model that is sharded over all ranks, with the conversion to whole tensors and back.

    Args:
        model: with the same weights on every rank; changed in place.
        class_names: classes of modules that are gathered one at a time, while they run:
            ``['Block', 'BertLayer', 'FusionLayer']``. Everything else stays gathered for a step.

    Raises:
        ConfigError: if the model has no module of a class.
    """

    def __init__(self, model: nn.Module, class_names: Iterable[str]) -> None:
        units = find_modules('fsdp.units', model, class_names)
        self.model = model
        # FSDP shards along the first axis, so a 0-d parameter (a temperature) gets one.
        self.scalars = {name for name, value in model.named_parameters() if not value.ndim}
        for name in self.scalars:
            path, _, attribute = name.rpartition('.')
            value = model.get_parameter(name)
            vector = nn.Parameter(value.detach().reshape(1), value.requires_grad)
            setattr(model.get_submodule(path), attribute, vector)
        for unit in units:
            fully_shard(unit)
        fully_shard(model)
        for module in model.modules():
            # After the module's own hooks, which see whole tensors (and may resample them).
            module._register_load_state_dict_pre_hook(_shard_weights, with_module=True)

    def gather_weights(self) -> dict[str, Tensor]:
        """Returns the whole state dict on the CPU; every rank must call this."""
        return {
            name: _gather(value, name in self.scalars)
            for name, value in self.model.state_dict().items()
        }

    def gather_optimizer(self, optim_wrapper: OptimWrapper) -> dict:
        """Returns the optimizer's state dict with whole tensors; every rank must call this."""
        state = optim_wrapper.state_dict()
        names = {value: name for name, value in self.model.named_parameters()}
        whole = {}
        for index, parameter in enumerate(_parameters(optim_wrapper.optimizer)):
            is_scalar = names[parameter] in self.scalars
            values = state['state'].get(index, {})
            whole[index] = {key: _gather(value, is_scalar) for key, value in values.items()}
        return {**state, 'state': whole}

    def scatter_optimizer(self, optim_wrapper: OptimWrapper, state: dict) -> dict:
        """Returns this rank's shards of a whole optimizer state dict."""
        shards = {}
        for index, parameter in enumerate(_parameters(optim_wrapper.optimizer)):
            values = state['state'].get(index, {})
            shards[index] = {
                key: value if key == 'step' else _shard(value, parameter)
                for key, value in values.items()
            }
        return {**state, 'state': shards}


def _shard_weights(module: nn.Module, state: dict[str, Tensor], prefix: str, *_) -> None:
    """Replaces the whole tensors of a module's direct parameters by this rank's shards."""
    for name, value in module.named_parameters(recurse=False):
        if prefix + name in state:
            state[prefix + name] = _shard(state[prefix + name], value)


def _parameters(optimizer: Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group['params']]


def _gather(value: object, is_scalar: bool) -> object:
    if not isinstance(value, DTensor):
        return value
    value = value.full_tensor().cpu()
    return value.reshape(()) if is_scalar else value


def _shard(value: Tensor, parameter: Tensor | None) -> Tensor:
    """Shards ``value`` as ``parameter`` is sharded; every rank has it, so nothing is sent."""
    if not isinstance(parameter, DTensor) or value.numel() != parameter.numel():
        return value
    whole = value.reshape(parameter.shape).to(parameter.device)
    return distribute_tensor(whole, parameter.device_mesh, parameter.placements, src_data_rank=None)
