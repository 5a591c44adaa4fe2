"""SGRAF's similarities: local and global similarity vectors, reasoned upon."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from xmodal.models.layers import xavier_linear
from xmodal.models.sgraf.fused import can_fuse, fused_logits, fused_nodes
from xmodal.models.sgraf.local import LocalSimilarity, PrecomputedImages
from xmodal.models.sgraf.pairwise import PairwiseSimilarity, drop_idle_mask, take
from xmodal.models.sgraf.tiles import (
    CPU_SCORING_BYTES,
    CPU_TRAINING_BYTES,
    caption_tiles,
    pair_budget,
    score_captions,
    words_at_once,
)
from xmodal.products import fastest_dtype, product
from xmodal.registry import MODELS
from xmodal.structures import Tokens


class PrecomputedTexts(NamedTuple):
    """What pairs need of captions.

    Attributes:
        words: in the type of the products, (T, L, D).
        vectors: of the global pooling, (T, …), or None.
    """

    words: Tensor
    vectors: Tensor | None


@MODELS.register_module()
class SGRAFSimilarity(PairwiseSimilarity):
    """SAF or SGR, with self-attention, T-EMDE or nothing for the global node.

    Args:
        embed_dims: D, width of regions and words.
        dim: S, width of a similarity vector.
        smooth: λ of the attention of words to regions.
        global_pooling: config of the global node, ``SelfAttentionGlobal`` or ``SketchGlobal``; None
            for none.
        reasoning: config of ``SAF`` or ``SGR``.
    """

    def __init__(
        self,
        embed_dims: int,
        reasoning: dict,
        dim: int = 256,
        smooth: float = 9.0,
        global_pooling: dict | None = None,
    ) -> None:
        super().__init__()
        self.local = LocalSimilarity(embed_dims, dim, smooth)
        self.global_pooling = None
        if global_pooling is not None:
            self.global_pooling = MODELS.build(
                {**global_pooling, 'embed_dims': embed_dims, 'dim': dim}
            )
        self.reasoning = MODELS.build({**reasoning, 'dim': dim})
        self.output = xavier_linear(dim, 1)

    def precompute_images(self, images: Tokens, dtype: torch.dtype) -> PrecomputedImages:
        """Regions, their Gram matrix and the global pooling's vectors."""
        regions, mask = images.embeddings.float(), images.attention_mask
        vectors = None
        if self.global_pooling is not None:
            vectors = self.global_pooling.pool_images(regions, mask).float()
        return PrecomputedImages(regions.to(dtype), _gram(regions), vectors, mask)

    def precompute_texts(self, texts: Tokens, dtype: torch.dtype) -> PrecomputedTexts:
        """Words and the global pooling's vectors."""
        words, vectors = texts.embeddings.float(), None
        if self.global_pooling is not None:
            vectors = self.global_pooling.pool_texts(words, texts.attention_mask).float()
        return PrecomputedTexts(words.to(dtype), vectors)

    def precompute_weights(self, dtype: torch.dtype) -> list:
        """The bilinear maps of SGR."""
        return self.reasoning.precompute(dtype)

    def score(self, images: PrecomputedImages, texts: PrecomputedTexts, weights: list) -> Tensor:
        """Logits of one tile, (B, T).

        Args:
            images: B images.
            texts: T captions of one length for all images, or other ones for each: B rows of T.
            weights: precomputed.
        """
        if can_fuse(self.reasoning, self.local, images.regions, texts.words):
            nodes = fused_nodes(self.local, self.global_pooling, images, *texts)
            return fused_logits(self.reasoning, self.output, nodes, weights)
        return self._logits(self.reasoning(self.nodes(images, texts), weights))

    def nodes(self, images: PrecomputedImages, texts: PrecomputedTexts) -> Tensor:
        """The similarity vectors of a tile, the global one first, (B, T, N, S) float32."""
        return self._with_global(images, texts, self.local(images, texts.words))

    def _with_global(
        self, images: PrecomputedImages, texts: PrecomputedTexts, local: Tensor
    ) -> Tensor:
        if self.global_pooling is None:
            return local
        dtype = texts.words.dtype
        node = self.global_pooling.compare(images.vectors, texts.vectors, dtype)
        return torch.cat([node[:, :, None], local], 2)

    def word_bytes(self, dtype: torch.dtype) -> int:
        """A difference of width D, and some vectors of width S."""
        dim, embed_dims = self.local.linear.weight.shape
        return embed_dims * dtype.itemsize + 6 * dim * 4

    def to_scores(self, logits: Tensor) -> Tensor:
        """The sigmoid, in (0, 1)."""
        return logits.sigmoid()

    def forward(
        self,
        images: Tokens,
        texts: Tokens,
        needed: Callable[[Tensor], Tensor | None] | None = None,
    ) -> Tensor:
        """Logits of all pairs, with gradients, (I, T).

        Where pairs don't depend on each other, all are scored without gradients and only those that
        the loss needs are computed again with them; where it needs all, tiles are computed again in
        the backward pass. While SAF normalises over pairs, the nodes of all are kept.
        """
        device = images.embeddings.device.type
        dtype = torch.float32
        if torch.is_autocast_enabled(device):
            dtype = fastest_dtype(torch.get_autocast_dtype(device), images.embeddings.device)
        images = drop_idle_mask(images)
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            precomputed = self.precompute_images(images, dtype), self.precompute_texts(texts, dtype)
        lengths = texts.full_mask().sum(1).cpu()
        with torch.autocast(device, enabled=False):
            weights = self.precompute_weights(dtype)
            if needed is not None and self.reasoning.separable:
                logits = self._score_without_graph(*precomputed, weights, lengths)
                chosen = needed(self.to_scores(logits))
                if chosen is not None:
                    return self._score_some(*precomputed, weights, lengths, chosen)
            return self._score_all(*precomputed, weights, lengths)

    @torch.no_grad()
    def _score_without_graph(
        self, images: PrecomputedImages, texts: PrecomputedTexts, weights: list, lengths: Tensor
    ) -> Tensor:
        """Logits of all pairs, (I, T)."""
        device, dtype = texts.words.device, texts.words.dtype
        budget = pair_budget(self, device, dtype, CPU_SCORING_BYTES)
        columns = caption_tiles(lengths, words_at_once(device))
        parts = []
        for tile_columns in columns:
            tile = _cut(texts, tile_columns, lengths)
            rows = max(1, budget // tile.words[..., 0].numel())
            parts.append(score_captions(self.score, images, tile, weights, rows))
        return _in_order(parts, columns)

    def _score_all(
        self, images: PrecomputedImages, texts: PrecomputedTexts, weights: list, lengths: Tensor
    ) -> Tensor:
        """Logits of all pairs, in the graph, (I, T); a tile has all images."""
        words = texts.words
        budget = pair_budget(self, words.device, words.dtype, CPU_TRAINING_BYTES)
        columns = caption_tiles(lengths, budget // len(images.regions))
        tiles = [_cut(texts, tile_columns, lengths) for tile_columns in columns]
        if self.reasoning.separable:
            options = dict(use_reentrant=False, preserve_rng_state=False)
            parts = [checkpoint(self.score, images, tile, weights, **options) for tile in tiles]
        else:
            local = self.local.jointly(images, [tile.words for tile in tiles])
            pairs = zip(tiles, local, strict=True)
            nodes = [self._with_global(images, tile, vectors) for tile, vectors in pairs]
            parts = [self._logits(x) for x in self.reasoning.filter_jointly(nodes, columns)]
        return _in_order(parts, columns)

    def _score_some(
        self,
        images: PrecomputedImages,
        texts: PrecomputedTexts,
        weights: list,
        lengths: Tensor,
        chosen: Tensor,
    ) -> Tensor:
        """Logits of the chosen pairs, in the graph, the others −inf, (I, T)."""
        rows, columns = chosen.nonzero(as_tuple=True)
        own_lengths = lengths.to(columns.device)[columns]
        logits = images.gram.new_full(chosen.shape, -torch.inf)
        for length in own_lengths.unique().tolist():
            image, text = rows[own_lengths == length], columns[own_lengths == length]
            captions = take(_cut(texts, text, lengths), (slice(None), None))  # one for each image
            part = self.score(take(images, image), captions, weights)
            logits = logits.index_put((image, text), part.squeeze(1))
        return logits

    def _logits(self, vectors: Tensor) -> Tensor:
        return product(vectors, self.output.weight, self.output.bias).squeeze(-1)


def _gram(regions: Tensor) -> Tensor:
    with torch.autocast(regions.device.type, enabled=False):
        return regions @ regions.mT


def _cut(texts: PrecomputedTexts, rows: Tensor, lengths: Tensor) -> PrecomputedTexts:
    """Captions of one length, without padding."""
    chosen = take(texts, rows.to(texts.words.device))
    return chosen._replace(words=chosen.words[:, : int(lengths[rows[0]])])


def _in_order(parts: list[Tensor], columns: list[Tensor]) -> Tensor:
    """Restores the order of the captions of all tiles."""
    return torch.cat(parts, 1)[:, torch.cat(columns).argsort().to(parts[0].device)]
