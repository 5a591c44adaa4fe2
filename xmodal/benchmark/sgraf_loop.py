"""SAF and SGR as a literal loop over captions: what public implementations of SGRAF compute.

Each caption is repeated for all images of a shard, and Listing 1 of T-EMDE is called for each. The
weights are those of the similarity under test.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from xmodal.models.sgraf import SGRAFSimilarity


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


def score_shard(module: SGRAFSimilarity, images: Tensor, captions: list[Tensor]) -> Tensor:
    """Computes the logits of one shard, (I, T).

    Args:
        module: the similarity whose weights are used.
        images: region tokens, (I, R, D).
        captions: T texts of (L, D).
    """
    pooling, has_attention = module.global_pooling, hasattr(module.global_pooling, 'regions')
    pool = self_attention if has_attention else sketch
    image_global = pool(pooling.image, images)
    columns = []
    for words in captions:
        text_global = pool(pooling.text, words[None])
        words = words.repeat(len(images), 1, 1)
        local = l2norm(module.local.linear((attend_to_regions(words, images) - words) ** 2))
        if has_attention:
            node = l2norm(pooling.linear((image_global - text_global) ** 2))
        else:
            both = torch.cat([text_global.expand(len(images), -1), image_global], 1)
            node = pooling.linear(both).relu()
        nodes = torch.cat([node[:, None], local], 1)
        reason = reason_over_graph if hasattr(module.reasoning, 'steps') else filter_nodes
        columns.append(module.output(reason(module.reasoning, nodes)))
    return torch.cat(columns, 1)
