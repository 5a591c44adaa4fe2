"""A device that is not the CPU, on any machine.

Its tensors say that they are on ``meta``, and are computed on the CPU. As on a GPU, an operation on
tensors of both devices is an error (but for CPU tensors without axes, and for indices), and so is
NumPy's view of one.
"""

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

OTHER = torch.device('meta')
# Copies from device to device; indices and lengths, which may or must be on the CPU.
MIXED = {'copy_', '_to_copy', 'index', 'index_put_', '_index_put_impl_', '_pack_padded_sequence'}


class OtherTensor(torch.Tensor):
    """A tensor of the other device; ``inner`` has the values."""

    @staticmethod
    def __new__(cls, inner):
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=OTHER,
            requires_grad=inner.requires_grad,
        )
        tensor.inner = inner
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})

    def tolist(self):
        return self.inner.tolist()

    def numpy(self):
        raise TypeError("can't convert a tensor of another device to numpy: use .cpu() first")

    __array__ = numpy


class OtherDevice(TorchDispatchMode):
    """Lets tensors be made on the other device, and moved there."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})


def compute(operation, args, kwargs):
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    others = [x for x in tensors if isinstance(x, OtherTensor)]
    on_cpu = [x for x in tensors if not isinstance(x, OtherTensor) and x.ndim]
    name = operation._schema.name.removeprefix('aten::')
    if others and on_cpu and name not in MIXED:
        shapes = [[tuple(x.shape) for x in group] for group in (others, on_cpu)]
        raise RuntimeError(f'{name} of tensors on two devices, {shapes[0]} and {shapes[1]}')
    device = kwargs.get('device')
    args, kwargs = tree_map_only(OtherTensor, lambda x: x.inner, (args, dict(kwargs)))
    if device is not None:
        kwargs['device'] = torch.device('cpu')
    result = operation(*args, **kwargs)
    if operation._schema.is_mutable and name.endswith('_'):
        return next(x for x in tensors)  # what it changes comes first
    if name == '_pack_padded_sequence':
        return OtherTensor(result[0]), result[1]
    if torch.device(device) == OTHER if device is not None else others:
        return tree_map_only(torch.Tensor, OtherTensor, result)
    return result


def move(model):
    """Puts a model on the other device; ``Module.to`` would only move the shell."""
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                moved = nn.Parameter(OtherTensor(value.data), requires_grad=value.requires_grad)
                module._parameters[name] = moved
        for name, value in module._buffers.items():
            module._buffers[name] = None if value is None else OtherTensor(value)
        if hasattr(module, '_device'):  # of MMEngine's preprocessors
            module._device = OTHER


def patch(monkeypatch):
    """Answers for PyTorch, which makes no tensors with values there and has no autocast for it."""
    make, start = torch.tensor, torch.autocast.__init__

    def tensor(data, *args, device=None, **kwargs):
        return make(data, *args, **kwargs).to(device or 'cpu')

    def autocast(self, device_type, *args, **kwargs):
        start(self, _known(device_type), *args, **kwargs)

    monkeypatch.setattr(torch, 'tensor', tensor)
    monkeypatch.setattr(torch.autocast, '__init__', autocast)
    for name in ('get_autocast_dtype', 'is_autocast_enabled'):
        ask = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *device, ask=ask: ask(*map(_known, device)))


def _known(device_type):
    return 'cpu' if device_type == OTHER.type else device_type
