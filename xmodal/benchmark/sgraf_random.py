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
from xmodal.models.sgraf import SGRAFSimilarity
from xmodal.registry import MODELS
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
        self.images, self.captions = normalize(images, dim=-1), self._captions(args.captions)
        self.peer = peer(self.module)

    def _captions(self, count: int) -> list[Tensor]:
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

    def training_steps(self) -> dict[str, Callable[[], Tensor]]:
        """Returns a training step of each implementation, all with the same tokens.

        Each returns the gradient of the images.
        """
        batch, device = self.args.batch, self.args.device
        self.module.train()
        self.peer.train()
        images = normalize(torch.randn(batch, REGIONS, WIDTH, device=device), dim=-1)
        captions = self._captions(batch)
        lengths = torch.tensor([len(words) for words in captions], device=device)
        padded = pad_sequence(captions, batch_first=True)
        mask = torch.arange(padded.shape[1], device=device) < lengths[:, None]
        images.requires_grad_()
        padded.requires_grad_()
        positives = torch.eye(batch, dtype=torch.bool, device=device)
        loss_module = MODELS.build(dict(type='TripletLoss'))

        def step(dtype: torch.dtype | None) -> Tensor:
            images.grad = padded.grad = None
            if dtype is None:
                logits = self.peer(Tokens(images), Tokens(padded, mask))
            else:
                with torch.autocast(device, dtype, enabled=dtype != torch.float32):
                    needed = partial(loss_module.needed_pairs, positives=positives)
                    logits = self.module(Tokens(images), Tokens(padded, mask), needed)
            loss = loss_module(self.module.to_scores(logits), positives)['loss_triplet']
            loss.backward()
            return images.grad

        return {name: partial(step, dtype) for name, dtype in DTYPES.items()}
