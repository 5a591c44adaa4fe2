"""SGRAF's public code (github.com/Paranioar/SGRAF) as it is, with the weights of a similarity."""

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from xmodal.benchmark.sgraf_loop import LiteralLoop
from xmodal.errors import ConfigError
from xmodal.models.sgraf import SGRAFSimilarity
from xmodal.structures import Tokens


def sgraf_peer(
    folder: Path | None, rename: Callable[[str], str | None]
) -> Callable[[SGRAFSimilarity], nn.Module]:
    """What a similarity is compared with: public SGRAF, or without a checkout a literal loop.

    Args:
        folder: see :class:`PublicSGRAF`; None for none.
        rename: see :class:`PublicSGRAF`.
    """
    return partial(PublicSGRAF, folder=folder, rename=rename) if folder else LiteralLoop


class PublicSGRAF(nn.Module):
    """Its ``EncoderSimilarity``, with the interface of :class:`LiteralLoop`.

    Its last sigmoid is left out, so that logits are compared.

    Args:
        similarity: whose weights are copied; its global pooling is self-attention.
        folder: a checkout of the public code.
        rename: from the public name of a weight to that of the model, None for one without effect.

    Raises:
        ConfigError: if the folder has no such code.
    """

    shard = LiteralLoop.shard

    def __init__(
        self, similarity: SGRAFSimilarity, folder: Path, rename: Callable[[str], str | None]
    ) -> None:
        super().__init__()
        self.to_scores = similarity.to_scores
        dim, width = similarity.local.linear.weight.shape
        reasoning = type(similarity.reasoning).__name__
        self.encoder = _load(folder).EncoderSimilarity(width, dim, reasoning)
        weights, theirs = similarity.state_dict(), self.encoder.state_dict()
        for name, value in theirs.items():
            ours = rename(name)
            value.copy_(weights[ours.removeprefix('similarity.')] if ours else 0 * value)
        self.encoder.load_state_dict(theirs)
        self.encoder.sigmoid = nn.Identity()
        for module in self.encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = similarity.global_pooling.text.dropout.p
        self.to(similarity.output.weight.device).eval()

    def forward(self, images: Tokens, texts: Tokens) -> Tensor:
        """Logits of all pairs, with gradients, (I, T)."""
        lengths = texts.full_mask().sum(1).tolist()
        return self.encoder(images.embeddings, texts.embeddings, lengths)

    @torch.no_grad()
    def score(self, images: Tensor, captions: list[Tensor]) -> Tensor:
        """The logits of one shard, (I, T), of regions (I, R, D) and T texts of (L, D)."""
        padded = pad_sequence(captions, batch_first=True)
        return self.encoder(images, padded, [len(words) for words in captions])


def _load(folder: Path) -> ModuleType:
    """Its module of models, under a name that meets no other."""
    file = folder / 'model.py'
    if not file.is_file() or 'class EncoderSimilarity' not in file.read_text(encoding='utf-8'):
        raise ConfigError(f'--peer {folder} has no model.py with EncoderSimilarity: expected SGRAF')
    spec = importlib.util.spec_from_file_location('public_sgraf', file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
