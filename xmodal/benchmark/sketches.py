"""Training step and scoring of SAF or SGR with T-EMDE, by the size of their sketches."""

from collections.abc import Mapping

import torch
from torch.nn.functional import normalize
from torch.optim import Adam

from xmodal.benchmark.script import default_device
from xmodal.benchmark.sgraf_costs import REGIONS, WIDTH, caption_lengths
from xmodal.benchmark.sgraf_tiled import TiledScoring
from xmodal.benchmark.sgraf_training import build_model, random_batch, train_step
from xmodal.benchmark.workers import TrainingStep
from xmodal.registry import register_all

DATA = 'f30k'  # whose captions' lengths the captions have


class SketchTraining(TrainingStep):
    """A training step with random regions and words.

    Args:
        config: file of a config with T-EMDE.
        sizes: 'batch', images with a caption each, and arguments of T-EMDE.
    """

    def __init__(self, config: str, sizes: Mapping[str, int]) -> None:
        register_all()
        torch.manual_seed(0)
        self.size, self.device = sizes['batch'], default_device()
        sketch = {key: value for key, value in sizes.items() if key != 'batch'}
        self.model = build_model(config, WIDTH, **sketch).to(self.device)
        self.prepare()

    def prepare(self) -> None:
        """Makes what a call needs beside the model."""
        self.optimizer = Adam(self.model.train().parameters(), lr=2e-4)
        self.batch = random_batch(DATA, self.size, self.device)

    def __call__(self) -> None:
        train_step(self.model, self.optimizer, self.batch)
        self.optimizer.zero_grad()


class SketchScoring(SketchTraining):
    """The scoring of all pairs of a batch, from random tokens on."""

    def prepare(self) -> None:
        """Makes tokens of unit norm."""
        self.scoring = TiledScoring(self.model.eval().similarity)
        lengths = caption_lengths(DATA, self.size)
        with torch.device(self.device):
            self.images = normalize(torch.randn(self.size, REGIONS, WIDTH), dim=-1)
            self.captions = [normalize(torch.randn(n, WIDTH), dim=-1) for n in lengths]

    @torch.no_grad()
    def __call__(self) -> None:
        self.scoring.score(self.images, self.captions)
