"""A similarity with random tokens, and the implementations to score and to train it."""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from xmodal.benchmark.sgraf_costs import DIM, REGIONS, WIDTH, ScoringCost, caption_lengths
from xmodal.benchmark.sgraf_loop import LiteralLoop
from xmodal.benchmark.sgraf_tiled import TiledScoring
from xmodal.benchmark.timing import seconds_of
from xmodal.benchmark.workers import TrainingStep
from xmodal.engine.allocator import keep_freed_memory
from xmodal.models.sgraf import SGRAFSimilarity
from xmodal.registry import MODELS, register_all
from xmodal.structures import Tokens

SHARD = LiteralLoop.shard
# Without dropout, so that gradients can be compared.
POOLINGS = {
    'self-attention': dict(type='SelfAttentionGlobal', regions=REGIONS, dropout=0.0),
    'T-EMDE': dict(type='SketchGlobal', pooling=dict(type='TEMDE', partitions=20, centroids=8)),
}
# Implementations and their number formats; None for the peer: public SGRAF or the literal loop.
DTYPES = {'peer': None, 'ours': torch.float32, 'ours, bf16': torch.bfloat16}


class SimilarityBenchmark:
    """A similarity with random tokens, and the implementations to score and to train it.

    Args:
        reasoning: 'SAF' or 'SGR'.
        pooling: a key of ``POOLINGS``.
        args: command line.
        peer: makes what ours is compared with, with the weights of the similarity.
    """

    def __init__(
        self,
        reasoning: str,
        pooling: str,
        args: argparse.Namespace,
        peer: Callable[[SGRAFSimilarity], nn.Module],
    ) -> None:
        self.args, self.reasoning, self.pooling = args, reasoning, pooling
        config = dict(
            type='SGRAFSimilarity',
            embed_dims=WIDTH,
            dim=DIM,
            reasoning=dict(type=reasoning),
            global_pooling=POOLINGS[pooling],
        )
        self.module = MODELS.build(config).to(args.device).eval()
        images = torch.randn(args.images, REGIONS, WIDTH, device=args.device)
        self.images, self.captions = normalize(images, dim=-1), self.random_captions(args.captions)
        self.peer = peer(self.module)

    def random_captions(self, count: int) -> list[Tensor]:
        """Words of unit norm, (L, D) each; L are lengths of COCO's captions."""
        device = self.args.device
        lengths = caption_lengths('coco', count)
        return [normalize(torch.randn(n, WIDTH, device=device), dim=-1) for n in lengths]

    @torch.no_grad()
    def score(self, dtype: torch.dtype | None) -> Tensor:
        """Computes the logits of all pairs, or with the peer (None) of the first shard."""
        if dtype is None:
            return self.peer.score(self.images[:SHARD], self.captions[:SHARD])
        return self._ours(dtype).score(self.images, self.captions)

    def _ours(self, dtype: torch.dtype) -> TiledScoring:
        return TiledScoring(self.module, dtype, self.args.compile)

    def cost(self, dtype: torch.dtype | None, seconds: list[float]) -> ScoringCost:
        """Returns the cost of scoring, given the seconds of each round."""
        limit = SHARD if dtype is None else None
        per_image, per_caption = (0.0, 0.0) if dtype is None else self._precomputation(dtype)
        return ScoringCost(
            self.reasoning,
            self.pooling,
            dtype,
            len(self.images[:limit]),
            [len(words) for words in self.captions[:limit]],
            seconds,
            per_image,
            per_caption,
        )

    @torch.no_grad()
    def _precomputation(self, dtype: torch.dtype) -> tuple[float, float]:
        """Returns the seconds of what is computed once per image and per caption, for all."""
        ours = self._ours(dtype)
        return (
            seconds_of(ours.pool_images, self.images),
            seconds_of(ours.pool_captions, self.captions),
        )


class SimilarityStep(TrainingStep):
    """A training step of one implementation; all have the same weights and tokens.

    It covers all pairs of a batch, the hardest-negative loss and its gradients.

    Args:
        build: makes the benchmark of the similarity.
        name: a key of ``DTYPES``.
    """

    def __init__(self, build: Callable[[], SimilarityBenchmark], name: str) -> None:
        register_all()
        torch.manual_seed(0)
        benchmark = build()
        torch.manual_seed(1)  # the batch is the same whatever else was drawn
        batch, self.device = benchmark.args.batch, benchmark.args.device
        self.dtype = DTYPES[name]
        self.model = (benchmark.peer if self.dtype is None else benchmark.module).train()
        self.images = normalize(torch.randn(batch, REGIONS, WIDTH, device=self.device), dim=-1)
        captions = benchmark.random_captions(batch)
        lengths = torch.tensor([len(words) for words in captions], device=self.device)
        self.words = pad_sequence(captions, batch_first=True)
        self.mask = torch.arange(self.words.shape[1], device=self.device) < lengths[:, None]
        self.positives = torch.eye(batch, dtype=torch.bool, device=self.device)
        self.loss = MODELS.build(dict(type='TripletLoss'))
        if self.dtype is not None:
            keep_freed_memory()  # as tools/train.py does

    def __call__(self) -> None:
        """Takes a step."""
        self.gradient()

    def gradient(self) -> Tensor:
        """Takes a step and returns the gradient of the regions, (B, R, D)."""
        images, words = (x.detach().requires_grad_() for x in (self.images, self.words))
        tokens = Tokens(images), Tokens(words, self.mask)
        if self.dtype is None:
            logits = self.model(*tokens)
        else:
            needed = partial(self.loss.needed_pairs, positives=self.positives)
            with torch.autocast(self.device, self.dtype, enabled=self.dtype != torch.float32):
                logits = self.model(*tokens, needed)
        scores = self.model.to_scores(logits)
        self.loss(scores, self.positives)['loss_triplet'].backward()
        self.model.zero_grad()
        return images.grad


class SimilarityAgreement:
    """Whether a step of ours in float32 has the gradients of the peer's.

    Args:
        build: makes the benchmark of the similarity.
    """

    def __init__(self, build: Callable[[], SimilarityBenchmark]) -> None:
        self.ours, self.peer = (SimilarityStep(build, name) for name in ('ours', 'peer'))

    def error(self) -> float:
        """The norm of the difference of the regions' gradients, as a share of that of the peer."""
        expected = self.peer.gradient()
        return float((self.ours.gradient() - expected).norm() / expected.norm())
