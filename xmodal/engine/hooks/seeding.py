"""The random numbers of each iteration."""

import random

import numpy as np
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.datasets.seeding import derive_seed, seed_torch
from xmodal.registry import HOOKS

# Values of a log variable that are kept: MMEngine copies all of them at every update.
HISTORY = 10_000


@HOOKS.register_module()
class IterationSeedHook(Hook):
    """Seeds every iteration from the run's seed, the iteration and the rank.

    The random numbers of an iteration then do not depend on earlier iterations, so a resumed run
    equals an uninterrupted one: each checkpoint holds the seed and the iteration.
    """

    priority = 'VERY_HIGH'

    def before_train_iter(self, runner: Runner, *_, **__) -> None:
        """Seeds Python's, NumPy's and torch's generators."""
        seed = derive_seed(runner.seed, runner.iter, get_rank())
        random.seed(seed)
        np.random.seed(seed % 2**32)
        seed_torch(seed)
        if runner.iter % 100 == 0:
            for buffer in runner.message_hub.log_scalars.values():
                buffer.max_length = HISTORY
