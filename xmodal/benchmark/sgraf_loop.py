"""SAF and SGR as a literal loop over captions: what public implementations of SGRAF compute.

Each caption is repeated for all images of a shard, and Listing 1 of T-EMDE is called for each. The
weights are those of the similarity under test.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from xmodal.models.sgraf import SGRAFSimilarity
from xmodal.structures import Tokens


def l2norm(x: Tensor, dim: int = -1) -> Tensor:
    """x / (‖x‖ + 1e-8)."""
    return x / (x.pow(2).sum(dim, keepdim=True).sqrt() + 1e-8)


def self_attention(pooling: nn.Module, tokens: Tensor) -> Tensor:
    """Self-attention pooling of SGRAF, (B, L, D) to (B, D)."""
    local = pooling.dropout(pooling.local_norm(pooling.local(tokens)).tanh())
    mean = pooling.dropout(pooling.mean_norm(pooling.mean(tokens.mean(1))).tanh())
    mean = mean[:, None].repeat(1, tokens.shape[1], 1)
    weights = pooling.gate(local * mean).softmax(1)
    return l2norm((weights * tokens).sum(1))


def sketch(pooling: nn.Module, tokens: Tensor) -> Tensor:
    """Listing 1 of T-EMDE, (B, L, D) to (B, N · K)."""
    x = pooling.bn1(pooling.l1(tokens.flatten(0, 1)))
    distance = (x - pooling.centroids) ** 2
    partitions, regions = pooling.partitions, pooling.regions
    distance = distance.view(-1, partitions * regions, pooling.inner_dims).sum(-1)
    assigned = torch.softmax(-distance.view(-1, partitions, regions) * pooling.temp, -1)
    return l2norm(assigned.unflatten(0, tokens.shape[:2]).sum(1)).flatten(1)


def attend_to_regions(words: Tensor, regions: Tensor) -> Tensor:
    """Attention of words (B, L, D) to regions (B, R, D), as in SCAN."""
    scores = leaky_relu(torch.bmm(regions, words.mT), 0.1)
    scores = l2norm(scores, 2).mT.contiguous()
    weights = (9 * scores).softmax(2).mT.contiguous()
    return l2norm(torch.bmm(regions.mT, weights).mT)


def reason_over_graph(reasoning: nn.Module, nodes: Tensor) -> Tensor:
    """Similarity graph reasoning (SGR)."""
    for step in reasoning.steps:
        edges = torch.bmm(step.query(nodes), step.key(nodes).mT).softmax(-1)
        nodes = step.linear(torch.bmm(edges, nodes)).relu()
    return nodes[:, 0]


def filter_nodes(reasoning: nn.Module, nodes: Tensor) -> Tensor:
    """Similarity attention filtration (SAF)."""
    weights = reasoning.bn(reasoning.relevance(nodes).mT).sigmoid()
    weights = weights / (weights.abs().sum(-1, keepdim=True) + 1e-8)
    return l2norm(torch.bmm(weights, nodes).squeeze(1))


class LiteralLoop(nn.Module):
    """A similarity by the literal loop, for the test and for training in its place.

    Args:
        similarity: whose weights are used.

    Attributes:
        shard: images and captions of a shard. The test takes one after another, and computes all
            that depends on an image or a caption anew in each.
    """

    shard = 100

    def __init__(self, similarity: SGRAFSimilarity) -> None:
        super().__init__()
        self.similarity = similarity

    def forward(self, images: Tokens, texts: Tokens, needed: object = None) -> Tensor:
        """Logits of all pairs, with gradients, (I, T); the loop has no use for ``needed``."""
        lengths = texts.full_mask().sum(1).tolist()
        captions = [words[:length] for words, length in zip(texts.embeddings, lengths, strict=True)]
        return self.score(images.embeddings, captions)

    def to_scores(self, logits: Tensor) -> Tensor:
        """As the similarity does."""
        return self.similarity.to_scores(logits)

    def score(self, images: Tensor, captions: list[Tensor]) -> Tensor:
        """Computes the logits of one shard, (I, T).

        Args:
            images: region tokens, (I, R, D).
            captions: T texts of (L, D).
        """
        module, pooling = self.similarity, self.similarity.global_pooling
        image_global = self.pool_images(images)
        columns = []
        for words in captions:
            text_global = self._pool(pooling.text, words[None])
            words = words.repeat(len(images), 1, 1)
            local = l2norm(module.local.linear((attend_to_regions(words, images) - words) ** 2))
            if self._has_attention:
                node = l2norm(pooling.linear((image_global - text_global) ** 2))
            else:
                both = torch.cat([text_global.expand(len(images), -1), image_global], 1)
                node = pooling.linear(both).relu()
                node = node if pooling.scale is None else pooling.scale(l2norm(node))
            nodes = torch.cat([node[:, None], local], 1)
            reason = reason_over_graph if hasattr(module.reasoning, 'steps') else filter_nodes
            columns.append(module.output(reason(module.reasoning, nodes)))
        return torch.cat(columns, 1)

    def pool_images(self, images: Tensor) -> Tensor:
        """The global vectors of the images of a shard, (I, …)."""
        return self._pool(self.similarity.global_pooling.image, images)

    def pool_captions(self, captions: list[Tensor]) -> list[Tensor]:
        """The global vectors of the captions of a shard, T of (1, …)."""
        return [self._pool(self.similarity.global_pooling.text, words[None]) for words in captions]

    @property
    def _has_attention(self) -> bool:
        return hasattr(self.similarity.global_pooling, 'regions')

    def _pool(self, pooling: nn.Module, tokens: Tensor) -> Tensor:
        return self_attention(pooling, tokens) if self._has_attention else sketch(pooling, tokens)
