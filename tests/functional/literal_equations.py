"""Literal float64 implementations of the equations, and inputs for them."""

import math

import torch

DELTA, TAU = 0.05, 1e4
FORMATS = [torch.float64, torch.float32]


def tolerance(dtype):
    return 1e-12 if dtype == torch.float64 else 1e-5


def random_tokens(batch, length, width, dtype=torch.float64, seed=0):
    return torch.randn(
        batch, length, width, dtype=dtype, generator=torch.Generator().manual_seed(seed)
    )


def random_similarity(*shape, dtype=torch.float64, seed=0):
    """Random cosines, about half of them anchors."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.rand(*shape, dtype=torch.float64, generator=generator) - 1).to(dtype)


def padding(words, lengths):
    return torch.arange(words)[None] < torch.tensor(lengths)[:, None]


def literal_shrink(s, delta=DELTA, tau=TAU):
    return s if s >= delta else delta * math.exp(tau * (s - delta))


def literal_distance(s, delta=DELTA, tau=TAU):
    shrunk = literal_shrink(s, delta, tau)
    return 1 / shrunk if shrunk > 0 and 1 / shrunk <= 2 / delta else math.inf


def literal_path(distance, grid_size, mask, patch_window, token_window):
    """Eq. 7 by exhausting all anchors (i, j) of every pair (m, n)."""
    batch, patches, words, groups = distance.shape
    result = torch.full_like(distance, math.inf)
    for b in range(batch):
        for m in range(patches):
            for n in range(words):
                for g in range(groups):
                    paths = [
                        literal_step_patch(m, i, grid_size, patch_window)
                        + distance[b, i, j, g].item()
                        + literal_step_word(n, j, token_window)
                        for i in range(patches)
                        for j in range(words)
                        if mask[b, n] and mask[b, j]
                    ]
                    result[b, m, n, g] = min(paths, default=math.inf)
    return result


def literal_step_patch(m, i, grid_size, window):
    if m == 0 or i == 0:
        return 0 if m == i else math.inf
    (row, column), (other_row, other_column) = (divmod(k - 1, grid_size[1]) for k in (m, i))
    down, right = abs(row - other_row), abs(column - other_column)
    return math.hypot(down, right) if max(down, right) <= window // 2 else math.inf


def literal_step_word(n, j, window):
    if n == 0 or j == 0:
        return 0 if n == j else math.inf
    return abs(n - j) if abs(n - j) <= window // 2 else math.inf
