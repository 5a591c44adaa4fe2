"""What a step of pre-training sends and holds on many GPUs, by calculation."""

from collections.abc import Iterable
from typing import NamedTuple

from torch import nn

EMBEDDINGS, IDS = 2, 2  # of a pair that the queue gets: of image and text
FLOAT, INT = 4, 8  # bytes


class Gpu(NamedTuple):
    """A GPU and its connections, as their makers give them.

    Attributes:
        flops: of dense matrix products in bfloat16, a second.
        node: GPUs of a node.
        inside: bytes a second that a GPU sends to the others of its node.
        outside: bytes a second that a GPU sends to other nodes.
    """

    flops: float
    node: int
    inside: float
    outside: float


GPUS = {
    'a100': Gpu(312e12, 8, 300e9, 25e9),  # NVLink 3, InfiniBand HDR, 200 Gbit/s a GPU
    'h200': Gpu(989e12, 8, 450e9, 50e9),  # NVLink 4, InfiniBand NDR, 400 Gbit/s a GPU
}


class Training(NamedTuple):
    """A pre-training.

    Attributes:
        parameters: that are trained.
        teacher: parameters of the momentum teacher; 0 without one.
        largest: parameters of the largest unit that FSDP gathers at once.
        width: d of the embeddings, which are gathered with and without a queue.
        flops: of a pair, forward and backward.
        batch: pairs of a GPU.
    """

    parameters: int
    teacher: int
    largest: int
    width: int
    flops: float
    batch: int


def count_parameters(module: nn.Module | None) -> int:
    """Number of parameters; 0 of None."""
    return sum(p.numel() for p in module.parameters()) if module else 0


def describe_training(
    model: nn.Module, units: Iterable[nn.Module], flops: float, batch: int
) -> Training:
    """Counts what a step of a pre-trainer depends on.

    Args:
        model: a pre-trainer; it may be on the meta device.
        units: its modules that FSDP gathers one at a time.
        flops: of a pair, forward and backward.
        batch: pairs of a GPU.
    """
    teacher = count_parameters(model.teacher)
    own = count_parameters(model) - teacher
    largest = max(map(count_parameters, units))
    return Training(own, teacher, largest, model.backbone.proj_dims, flops, batch)


def gradient_bytes(parameters: int, processes: int) -> float:
    """That a process sends to sum the gradients in a ring: 2 (n − 1) / n of all, in float32."""
    return 2 * (processes - 1) / processes * parameters * FLOAT


def gathered_bytes(training: Training, processes: int) -> float:
    """That a process receives: the embeddings and identities of the pairs of all others."""
    return float(queue_bytes(training, (processes - 1) * training.batch))


def queue_bytes(training: Training, length: int) -> int:
    """Of a queue of so many pairs, which every process holds."""
    return length * (EMBEDDINGS * training.width * FLOAT + IDS * INT)


def state_bytes(training: Training, processes: int, sharded: bool) -> float:
    """Weights, gradients and AdamW's two moments, and the teacher's weights, of a process.

    FSDP divides them among the processes, and gathers the weights of one unit at a time.
    """
    whole = training.parameters * 4 * FLOAT + training.teacher * FLOAT
    return whole / processes + training.largest * FLOAT if sharded else float(whole)


def step_seconds(training: Training, gpu: Gpu, processes: int, mfu: float) -> tuple[float, float]:
    """Seconds of computing, and of waiting for others.

    The sum of the gradients hides behind the backward pass, two thirds of the computing, but for
    what takes longer; embeddings are waited for.
    """
    computing = training.batch * training.flops / (gpu.flops * mfu)
    rate = gpu.inside if processes <= gpu.node else gpu.outside
    gradients = gradient_bytes(training.parameters, processes) / rate
    waiting = max(0.0, gradients - 2 / 3 * computing)
    return computing, waiting + gathered_bytes(training, processes) / rate


def efficiency(training: Training, gpu: Gpu, processes: int, mfu: float) -> float:
    """Pairs a second of a GPU among so many, of those of one alone (weak scaling)."""
    computing, waiting = step_seconds(training, gpu, processes, mfu)
    return computing / (computing + waiting)


def training_flops(parts: dict[str, int], heads: set[str], teacher: bool) -> float:
    """FLOPs of a pair, forward and backward, from those of the forward parts.

    A backward pass takes twice the forward pass; the teacher has none. ITC or the anchor loss
    encode both modalities; ITM fuses the pair and two negatives; MLM encodes and fuses a masked
    text, MIM a masked image. The outputs of the heads themselves are left out.

    Args:
        parts: of :func:`xmodal.benchmark.flops.count_parts`.
        heads: of the model, by name.
        teacher: whether there is a momentum teacher.
    """
    image, text = parts['image encoder'], parts['text encoder']
    fusion = parts['fusion encoder'] + parts['position']
    passes = 3 + teacher
    total = passes * (image + text)
    if 'itm' in heads:
        total += 3 * 3 * fusion
    if 'mlm' in heads:
        total += passes * (text + fusion)
    if 'mim' in heads:
        total += 3 * (image + fusion)
    return float(total)
