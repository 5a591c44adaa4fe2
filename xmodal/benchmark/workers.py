"""Variants in processes of their own."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch
from mmengine.logging import MMLogger
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from xmodal.benchmark.memory import memory_in_use, peak_memory_of, return_memory_at_once
from xmodal.benchmark.timing import cpu_seconds_of, seconds_of


class TrainingStep(ABC):
    """A training step that a :class:`Worker` can measure; no gradient may stay after it."""

    @abstractmethod
    def __call__(self) -> None:
        """Takes a step."""

    def seconds(self) -> float:
        """Takes a step and returns its seconds."""
        return seconds_of(self)

    def own_seconds(self) -> float:
        """Takes a step; returns its seconds on a GPU, or its CPU seconds.

        Other work on the machine does not add to the latter.
        """
        return (seconds_of if torch.cuda.is_available() else cpu_seconds_of)(self)

    def memory(self) -> float:
        """Takes two steps; returns the GiB that one needs beyond what rests between them.

        Weights, teacher and the optimizer's moments rest. On a CPU call it before any other step
        (:func:`call_alone`): gaps that these leave between tensors would count, and later steps are
        slower.
        """
        if not torch.cuda.is_available():
            return_memory_at_once()
        self()
        return peak_memory_of(self) / 2**10

    def at_rest(self) -> float:
        """The GiB that are held between steps, on a GPU; what is free, other processes get."""
        torch.cuda.empty_cache()
        return memory_in_use() / 2**10

    def flops(self) -> int:
        """Takes a step and returns its FLOPs."""
        # Attention as plain matrix products, which the counter knows on every device. It sees
        # nothing of compiled programs.
        with (
            torch.compiler.set_stance('force_eager'),
            sdpa_kernel(SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
        ):
            self()
        return counter.get_total_flops()


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
        self.begin(method)
        return self.result()

    def begin(self, method: str) -> None:
        """Calls a method without arguments, whose :meth:`result` is to be fetched."""
        self._pipe.send(method)

    def result(self) -> float:
        """Waits for the result of the method that was called.

        Raises:
            RuntimeError: if the process has ended.
        """
        try:
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):  # the latter if it has not read the call
            self._process.join()
            raise RuntimeError(
                'a process of the benchmark has ended, see above; where nothing is said, memory '
                f'may have been short (exit code {self._process.exitcode})'
            ) from None

    def close(self) -> None:
        """Ends the process."""
        self._pipe.send(None)
        self._process.join()


def call_alone(method: str, build: Callable, *args: object) -> float:
    """The result of a method of an object in a process of its own, which calls no other.

    Args:
        method: its name.
        build: makes the object.
        args: of ``build``.
    """
    worker = Worker(build, *args)
    result = worker.call(method)
    worker.close()
    return result


def close_and_measure(worker: Worker, build: Callable, *args: object) -> float:
    """Ends a worker; returns the GiB that its step needs, on a CPU by :func:`call_alone`.

    A GPU's allocator tells tensors from gaps, so that the worker itself can measure there.

    Args:
        worker: that has taken steps.
        build: has made its :class:`TrainingStep`.
        args: of ``build``.
    """
    memory = worker.call('memory') if torch.cuda.is_available() else None
    worker.close()
    return call_alone('memory', build, *args) if memory is None else memory


def compile_together(workers: Collection[Worker]) -> None:
    """Lets all take a first step at once, for programs that take minutes to compile."""
    for worker in workers:
        worker.begin('seconds')
    for worker in workers:
        worker.result()


def _serve(pipe: Connection, build: Callable, args: tuple) -> None:
    MMLogger.get_instance('benchmark', log_level='ERROR')
    instance = build(*args)
    while (method := pipe.recv()) is not None:
        pipe.send(getattr(instance, method)())
