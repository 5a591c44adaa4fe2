"""Image-text matching with a third kind of negative: texts with a word turned into its opposite."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from xmodal.models.fusion import FusionRequest
from xmodal.models.heads.itm import ITMHead
from xmodal.models.heads.words import word_ids
from xmodal.registry import MODELS
from xmodal.structures import Fused, PretrainStep, Tokens


@MODELS.register_module()
class WordSwapITMHead(ITMHead):
    """ITM that also sees each image with its own text, of which one word is turned around.

    Another image's text is told apart by the objects that it names. Only a text with the same words
    asks for more: 'the star left of the ring' against 'the star right of the ring'. Texts changed
    by hand-made rules as negatives are NegCLIP's idea (Yuksekgonul et al., ICLR 2023), which gives
    them to the contrast of vectors. Here only ITM has them.

    Args:
        embed_dims: D.
        opposites: pairs of words, either of which makes a true text false in place of the other.
        hardness: of the negatives from the batch, see :class:`ITMHead`.
        score: what pairs are ranked by, see :class:`ITMHead`.

    Raises:
        ValueError: without opposites.
    """

    min_batch = 1  # a text turned around is a negative of its own image

    def __init__(
        self,
        embed_dims: int,
        opposites: Sequence[tuple[str, str]],
        hardness: float = 1.0,
        score: str = 'yes',
    ) -> None:
        super().__init__(embed_dims, hardness, score)
        if not opposites:
            raise ValueError("heads.itm.opposites is empty: name pairs as ('left', 'right')")
        self.opposites = tuple(opposites)
        self.register_buffer('opposite_ids', torch.zeros(0, 2, dtype=torch.long), persistent=False)

    def check(self, model: nn.Module) -> None:
        """Finds the words in the model's vocabulary.

        Raises:
            ValueError: when a word is not one piece of the vocabulary, or occurs twice.
        """
        super().check(model)
        words = [word for pair in self.opposites for word in pair]
        if repeated := [word for word in words if words.count(word) > 1]:
            raise ValueError(
                f"heads.itm.opposites has '{repeated[0]}' twice: a word has one opposite, and a "
                'pair is given in one direction'
            )
        one_way = [word_ids(model, pair, 'heads.itm.opposites') for pair in self.opposites]
        both_ways = one_way + [[b, a] for a, b in one_way]
        self.opposite_ids = torch.tensor(both_ways, device=self.opposite_ids.device)

    def request_fusion(self, model: nn.Module, step: PretrainStep) -> FusionRequest:
        """The pairs of ITM, and below them images with their own texts turned around."""
        request = super().request_fusion(model, step)
        batch = step.batch
        input_ids, rows = self.swap(batch.input_ids)
        weight = 1.0
        if not len(rows):  # FSDP needs as many forward passes of all ranks: one that does not count
            input_ids, rows, weight = batch.input_ids[:1], rows.new_zeros(1), 0.0
        swapped = model.backbone.text_tokens(input_ids, batch.attention_mask[rows])
        below = len(batch.input_ids) + torch.arange(len(rows), device=rows.device)
        pairs = torch.cat([request.pairs, torch.stack([rows, below], 1)])
        labels, weights = request.drawn
        labels = torch.cat([labels, torch.zeros_like(rows)])
        weights = torch.cat([weights, weights.new_full((len(rows),), weight)])
        text = Tokens.join([request.text, swapped])
        return FusionRequest(request.image, text, pairs, self.words(pairs), (labels, weights))

    def swap(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Turns one word around in each text that has such a word, at random where it has several.

        Args:
            input_ids: (B, N) int64.

        Returns:
            The changed texts (S, N), and their rows (S,) int64.
        """
        words, opposites = self.opposite_ids.unbind(1)
        found = input_ids[..., None] == words  # (B, N, 2 · pairs)
        may_change = found.any(-1)
        rows = may_change.any(1).nonzero()[:, 0]
        position = may_change[rows].float().multinomial(1)  # (S, 1)
        changed = torch.where(found[rows], opposites, 0).amax(-1).gather(1, position)
        return input_ids[rows].scatter(1, position, changed), rows

    def fused_loss(
        self, model: nn.Module, step: PretrainStep, request: FusionRequest, fused: Fused
    ) -> dict[str, Tensor]:
        """As ITM's, and ``swap_accuracy`` over the texts turned around."""
        values = super().fused_loss(model, step, request, fused)
        _, weights = request.drawn
        swapped = (request.pairs[:, 1] >= len(step.batch.input_ids)) & (weights > 0)
        if swapped.any():
            no, yes = self(fused.text_tokens[swapped]).unbind(1)
            values['swap_accuracy'] = (no > yes).float().mean()
        return values
