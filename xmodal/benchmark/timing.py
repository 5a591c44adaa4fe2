"""Timing of variants in alternating rounds, and the speed of the machine."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from tqdm import tqdm

from xmodal.products import product

WARM_UP = 2


def synchronize() -> None:
    """Waits for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(function: Callable, *args: object) -> tuple[float, object]:
    """Returns the seconds of a call, including work on the GPU, and its result."""
    synchronize()
    start = time.perf_counter()
    result = function(*args)
    synchronize()
    return time.perf_counter() - start, result


def seconds_of(function: Callable, *args: object) -> float:
    """Returns the seconds of a call."""
    return timed(function, *args)[0]


def cpu_seconds_of(function: Callable, *args: object) -> float:
    """Returns the CPU seconds of a call in this process, of all threads together.

    Other processes that share the core do not add to them.
    """
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def alternate(
    timers: Mapping[str, Callable[[], float]],
    repeats: int,
    warm_up: int = WARM_UP,
    desc: str = 'rounds',
) -> dict[str, list[float]]:
    """Measures several variants in alternating rounds.

    Args:
        timers: by name of a variant, a function that runs it and returns its seconds.
        repeats: number of rounds that count.
        warm_up: number of rounds before them.
        desc: label of the progress bar.

    Returns:
        The seconds of each variant in each round that counts.
    """
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for index in tqdm(range(warm_up + repeats), desc=desc):
        # Every other round runs in reverse order, so that no variant is always the first.
        for name in list(timers) if index % 2 else reversed(timers):
            seconds[name].append(timers[name]())
    return {name: values[warm_up:] for name, values in seconds.items()}


def ratios_by_round(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Returns the ratio of two variants in each round."""
    pairs = zip(numerators, denominators, strict=True)
    return [numerator / denominator for numerator, denominator in pairs]


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Returns the median of the ratios of two variants, round by round."""
    return statistics.median(ratios_by_round(numerators, denominators))


def matmul_rate(device: str, dtype: torch.dtype, size: int, repeats: int) -> float:
    """Returns the FLOP/s of square matrices' product, PyTorch's or ours: the best of all."""
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    calls = [partial(multiply, a, b) for multiply in (torch.matmul, product)]
    with torch.no_grad():
        best = min(seconds_of(call) for _ in range(repeats) for call in calls)
    return 2 * size**3 / best
