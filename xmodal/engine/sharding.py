"""FSDP: parameters, gradients and the optimizer's state shared out over the ranks.

Checkpoints are whole, the same as without it, so that a run can go on with another number of ranks
and anything else can read them.
"""

from collections.abc import Iterable

from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer

from xmodal.engine.memory import find_modules


class ShardedModel:
    """A model that is shared out over all ranks, and the way to whole tensors and back.

    Args:
        model: with its weights, the same on every rank; changed in place.
        class_names: classes of modules that are each gathered when they are called, and let go
            of after, ``['Block', 'BertLayer']``. What is in none of them is gathered for a step.

    Raises:
        ValueError: when the model has no module of a class.
    """

    def __init__(self, model: nn.Module, class_names: Iterable[str]) -> None:
        units = find_modules('fsdp.units', model, class_names)
        self.model = model
        # FSDP cuts along the first axis, so that a 0-d parameter (a temperature) gets one.
        self.scalars = {name for name, value in model.named_parameters() if not value.ndim}
        for name in self.scalars:
            path, _, own_name = name.rpartition('.')
            value = model.get_parameter(name)
            vector = nn.Parameter(value.detach().reshape(1), value.requires_grad)
            setattr(model.get_submodule(path), own_name, vector)
        for unit in units:
            fully_shard(unit)
        fully_shard(model)
        for module in model.modules():
            # After the module's own hooks, which see whole tensors (and may resample them).
            module._register_load_state_dict_pre_hook(_cut_own, with_module=True)

    def gather_weights(self) -> dict[str, Tensor]:
        """The whole state dict, on the CPU, as the model loads it; every rank must call this."""
        return {
            name: _whole(value, name in self.scalars)
            for name, value in self.model.state_dict().items()
        }

    def gather_optimizer(self, optimizer: Optimizer, state: dict) -> dict:
        """``state``, the optimizer's, with whole tensors; every rank must call this."""
        names = {value: name for name, value in self.model.named_parameters()}
        whole = {}
        for index, parameter in enumerate(_parameters(optimizer)):
            is_scalar = names[parameter] in self.scalars
            values = state['state'].get(index, {})
            whole[index] = {key: _whole(value, is_scalar) for key, value in values.items()}
        return {**state, 'state': whole}

    def scatter_optimizer(self, optimizer: Optimizer, state: dict) -> dict:
        """The inverse: this rank's part of a whole optimizer's state."""
        parts = {}
        for index, parameter in enumerate(_parameters(optimizer)):
            values = state['state'].get(index, {})
            parts[index] = {
                key: value if key == 'step' else _part(value, parameter)
                for key, value in values.items()
            }
        return {**state, 'state': parts}


def _cut_own(module: nn.Module, state: dict[str, Tensor], prefix: str, *_) -> None:
    """Puts this rank's part in the place of each whole tensor that the module itself has."""
    for name, value in module.named_parameters(recurse=False):
        if prefix + name in state:
            state[prefix + name] = _part(state[prefix + name], value)


def _parameters(optimizer: Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group['params']]


def _whole(value: object, is_scalar: bool) -> object:
    if not isinstance(value, DTensor):
        return value
    value = value.full_tensor().cpu()
    return value.reshape(()) if is_scalar else value


def _part(value: Tensor, own: Tensor | None) -> Tensor:
    """``value`` as ``own`` is cut; every rank has it, so that nothing is sent."""
    if not isinstance(own, DTensor) or value.numel() != own.numel():
        return value
    whole = value.reshape(own.shape).to(own.device)
    return distribute_tensor(whole, own.device_mesh, own.placements, src_data_rank=None)
