"""Bytes that a process sends in a step, from what it hands to torch.distributed."""

from collections import Counter

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# By operator: what it carries, which of its arguments that is, and what a process sends of it in a
# ring of n. Parts of all go around once, or twice to be summed and handed on.
_OPERATORS = {
    'allreduce_': ('sums', 0, lambda n: 2 * (n - 1) / n),
    '_reduce_scatter_base_': ('sums', 1, lambda n: (n - 1) / n),
    'allgather_': ('vectors', 1, lambda n: n - 1),
    '_allgather_base_': ('weights', 1, lambda n: n - 1),
}
KINDS = ('sums', 'vectors', 'weights')


class Traffic(TorchDispatchMode):
    """Counts the bytes that a process sends, as a ring sends them.

    DDP sums gradients, FSDP sums a part of them in each process and gathers weights, the model
    gathers vectors. The norm of sharded gradients, a few numbers, is left out.

    Args:
        processes: that take part, n.

    Attributes:
        sent: bytes by kind, those of ``KINDS``.
    """

    def __init__(self, processes: int) -> None:
        super().__init__()
        self.processes, self.sent = processes, Counter(dict.fromkeys(KINDS, 0.0))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> object:
        """Counts a collective, and lets every operator do what it does."""
        name = func.overloadpacket.__name__
        if func.namespace == 'c10d' and name in _OPERATORS:
            kind, place, share = _OPERATORS[name]
            handed = sum(tensor.nbytes for tensor in tree_leaves(args[place]))
            self.sent[kind] += share(self.processes) * handed
        return func(*args, **(kwargs or {}))
