"""Variants in processes of their own."""

import resource
from abc import ABC, abstractmethod
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch
from mmengine.logging import MMLogger

from xmodal.benchmark.timing import seconds_of


class TrainingStep(ABC):
    """A training step that a :class:`Worker` can measure."""

    @abstractmethod
    def __call__(self) -> None:
        """Takes a step."""

    def seconds(self) -> float:
        """Takes a step and returns its seconds."""
        return seconds_of(self)

    def peak_memory(self) -> float:
        """Returns the peak memory so far in GiB, of the GPU if there is one or of this process."""
        if torch.cuda.is_available():
            return torch.cuda.max_memory_allocated() / 2**30
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Worker:
    """An object in a process of its own, whose methods are called from here.

    So its memory is not mixed with that of other variants.

    Args:
        build: makes the object; a class or a function of a module.
        args: of ``build``.
    """

    def __init__(self, build: Callable, *args: object) -> None:
        context = get_context('spawn')
        self._pipe, end = context.Pipe()
        self._process = context.Process(target=_serve, args=(end, build, args), daemon=True)
        self._process.start()

    def call(self, method: str) -> float:
        """Calls a method without arguments and waits for its result."""
        self._pipe.send(method)
        return self._pipe.recv()

    def close(self) -> None:
        """Ends the process."""
        self._pipe.send(None)
        self._process.join()


def _serve(pipe: Connection, build: Callable, args: tuple) -> None:
    MMLogger.get_instance('benchmark', log_level='ERROR')
    instance = build(*args)
    while (method := pipe.recv()) is not None:
        pipe.send(getattr(instance, method)())
