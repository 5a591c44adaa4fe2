"""SAF and SGR as a plain loop over captions and images, from the description of SGRAF.

In float64, one pair at a time, with the weights of the similarity under test. Nothing is
precomputed, merged, split, padded or bucketed.
"""

import torch
from torch import nn


def l2norm(x):
    norm = x.pow(2).sum(-1, keepdim=True).sqrt()
    return torch.where(norm > 0, x / (norm + 1e-8), 0.0)


def dense(layer, x):
    bias = 0 if layer.bias is None else layer.bias.double()
    return x @ layer.weight.double().T + bias


def batch_norm(bn, x, training=False):
    """x is (rows, channels) or (rows, channels, length); moves the statistics when training."""
    mean, variance = bn.running_mean.double(), bn.running_var.double()
    weight, bias = bn.weight.double(), bn.bias.double()
    x = nn.functional.batch_norm(x, mean, variance, weight, bias, training, bn.momentum, bn.eps)
    if training:
        bn.running_mean.copy_(mean)
        bn.running_var.copy_(variance)
    return x


def local_vectors(module, regions, words):
    """(L, S) of one pair."""
    scores = regions @ words.T  # (R, L)
    scores = torch.where(scores > 0, scores, 0.1 * scores)
    scores = l2norm(scores)  # over the words, region by region
    vectors = []
    for word in range(len(words)):
        weights = torch.softmax(9 * scores[:, word], 0)
        context = l2norm((weights[:, None] * regions).sum(0))
        vectors.append(l2norm(dense(module.local.linear, (context - words[word]) ** 2)))
    return torch.stack(vectors)


def self_attention(pooling, tokens):
    """(D,) of one token set, in evaluation mode."""
    local, mean = dense(pooling.local, tokens), dense(pooling.mean, tokens.mean(0))
    if isinstance(pooling.local_norm, nn.BatchNorm1d):
        local = batch_norm(pooling.local_norm, local[None])[0]
        mean = batch_norm(pooling.mean_norm, mean[None])[0]
    weights = torch.softmax(dense(pooling.gate, local.tanh() * mean.tanh()), 0)
    return l2norm((weights * tokens).sum(0))


def sketch(pooling, tokens):
    """(N · K,) of one token set by Listing 1, in evaluation mode."""
    x = batch_norm(pooling.bn1, dense(pooling.l1, tokens))
    distance = (x - pooling.centroids.double()) ** 2
    distance = distance.view(-1, pooling.partitions, pooling.regions, pooling.inner_dims).sum(-1)
    assigned = torch.softmax(-distance * pooling.temp.double(), -1)
    return l2norm(assigned.sum(0)).flatten()


def global_vector(pooling, regions, words):
    """(S,) of one pair."""
    if hasattr(pooling, 'regions'):
        difference = self_attention(pooling.image, regions) - self_attention(pooling.text, words)
        return l2norm(dense(pooling.linear, difference**2))
    both = torch.cat([sketch(pooling.text, words), sketch(pooling.image, regions)])
    vector = torch.relu(dense(pooling.linear, both))
    return vector if pooling.scale is None else pooling.scale.gamma.double() * l2norm(vector)


def nodes_of_pair(module, regions, words):
    """(1 + L, S), or (L, S) without a global pooling."""
    nodes = local_vectors(module, regions, words)
    if module.global_pooling is None:
        return nodes
    return torch.cat([global_vector(module.global_pooling, regions, words)[None], nodes])


def reason_by_graph(module, nodes):
    """SGR: node 0 after all steps."""
    for step in module.reasoning.steps:
        edges = torch.softmax(dense(step.query, nodes) @ dense(step.key, nodes).T, -1)
        nodes = torch.relu(dense(step.linear, edges @ nodes))
    return nodes[0]


def filter_caption(module, nodes, training=False):
    """SAF of one caption with all images, (I, N, S) to (I, S)."""
    relevance = dense(module.reasoning.relevance, nodes).transpose(1, 2)  # (I, 1, N)
    weights = torch.sigmoid(batch_norm(module.reasoning.bn, relevance, training))
    weights = weights / (weights.abs().sum(-1, keepdim=True) + 1e-8)
    return l2norm((weights @ nodes).squeeze(1))


def literal_logits(module, images, captions, training=False):
    """(I, T) float64; ``images`` and ``captions`` are lists of (R, D) and (L, D)."""
    columns = []
    for words in captions:
        nodes = [nodes_of_pair(module, regions.double(), words.double()) for regions in images]
        if hasattr(module.reasoning, 'steps'):
            vectors = torch.stack([reason_by_graph(module, of_pair) for of_pair in nodes])
        else:
            vectors = filter_caption(module, torch.stack(nodes), training)
        columns.append(dense(module.output, vectors)[:, 0])
    return torch.stack(columns, 1)
