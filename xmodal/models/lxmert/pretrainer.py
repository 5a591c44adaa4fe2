"""The five pre-training tasks of LXMERT."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from xmodal.models.heads.answer_table import UNKNOWN
from xmodal.models.heads.own import check_own_heads, own_losses
from xmodal.models.lxmert.backbone import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, Fused, RegionTextBatch, Tokens

HEADS = ('mlm', 'objects', 'matching', 'answers')


class Shown(NamedTuple):
    """What the model gets to see of a batch.

    Attributes:
        batch: texts replaced, words and regions hidden.
        matched: True where the text is the image's own, (B,) bool.
        input_ids: the texts shown, before words were hidden, (B, 1 + N).
        words: words to predict, (B, 1 + N) bool, or None.
        regions: regions to predict, (B, R) bool, or None.
    """

    batch: RegionTextBatch
    matched: Tensor
    input_ids: Tensor
    words: Tensor | None
    regions: Tensor | None


@MODELS.register_module()
class LxmertPretrainer(LxmertModel):
    """Masked words, masked objects, matching and answers in one pass (LXMERT, Sec. 3.1).

    Half of the texts are another image's, words and regions are hidden in all pairs, and the answer
    to a question counts where the question is the image's own. Losses are summed.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.
        heads: configs by name: ``mlm``, ``objects`` (RoI features and detected labels),
            ``matching``, ``answers``; None leaves out one that an inherited config has. Nothing is
            hidden or replaced for a head that is not there. A head of any other name is asked for
            its ``step_loss(model, fused, shown, batch, samples)``; ``batch`` hides nothing.

    Attributes:
        active_heads: names of the heads that are trained; a hook may let some begin later.

    Raises:
        ValueError: when there is no head, or one of another name has no ``step_loss``.
    """

    def __init__(
        self, data_preprocessor: dict, backbone: dict, heads: dict[str, dict | None]
    ) -> None:
        heads = {name: head for name, head in heads.items() if head is not None}
        if not heads:
            raise ValueError(f'model.heads is empty, expected some of {", ".join(HEADS)}')
        check_own_heads(heads, HEADS)
        super().__init__(data_preprocessor, backbone, heads)
        self.active_heads = frozenset(self.heads)
        tokenizer = self.data_preprocessor.tokenizer
        self.mask_id = tokenizer.mask_token_id
        special_ids = torch.tensor(tokenizer.all_special_ids)
        self.register_buffer('special_ids', special_ids, persistent=False)

    def tensor(self, batch: RegionTextBatch, samples: list[DataSample] | None = None) -> Fused:
        """Both modalities after fusion, nothing hidden."""
        return self.fuse(batch)

    def loss(self, batch: RegionTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """The losses of all heads, by name; entries without 'loss' in the name are only logged.

        Samples have ``answers`` and ``answer_weights``, empty where the text is no question.
        """
        heads = {name: self.heads[name] for name in self.heads if name in self.active_heads}
        shown = self._hide(batch, heads)
        of_text = {'mlm', 'matching', 'answers'}
        fused = self.fuse(shown.batch, need_image=not heads.keys() <= of_text)
        logs = self._shares(fused, shown)
        if 'mlm' in heads:
            vectors = self.backbone.text_encoder.word_embeddings
            logits = heads['mlm'](fused.text_tokens[shown.words], vectors)
            logs |= heads['mlm'].loss(logits, shown.input_ids[shown.words], None, 0.0)
        if 'objects' in heads:
            logs |= heads['objects'].loss(fused.image_tokens, batch.regions, shown.regions)
        pooled = self.backbone.pool(fused) if {'matching', 'answers'} & set(heads) else None
        if 'matching' in heads:
            logs |= heads['matching'].loss(heads['matching'](pooled), shown.matched)
        if 'answers' in heads:
            labels = heads['answers'].draw(
                [sample.answers for sample in samples], [s.answer_weights for s in samples]
            )
            labels = labels.to(shown.matched.device).masked_fill(~shown.matched, UNKNOWN)
            logs |= heads['answers'].label_loss(heads['answers'](pooled), labels)
        return logs | own_losses(self, HEADS, fused, shown, batch, samples)

    def _hide(self, batch: RegionTextBatch, heads: dict[str, nn.Module]) -> Shown:
        """Replaces texts and hides words and regions, each for the head that asks for it."""
        matched = torch.ones_like(batch.image_ids, dtype=torch.bool)
        input_ids, words, regions = batch.input_ids, None, None
        if 'matching' in heads:
            rows, matched = heads['matching'].draw(_same(batch))
            input_ids = input_ids[rows]
            batch = batch._replace(input_ids=input_ids, attention_mask=batch.attention_mask[rows])
        if 'mlm' in heads:
            hidden, words = heads['mlm'].mask(input_ids, self.special_ids, self.mask_id)
            batch = batch._replace(input_ids=hidden)
        if 'objects' in heads:
            hidden, regions = heads['objects'].mask(batch.regions)
            batch = batch._replace(regions=hidden)
        return Shown(batch, matched, input_ids, words, regions)

    def _shares(self, fused: Fused, shown: Shown) -> dict[str, Tensor]:
        """What the position tells of itself, matched and mismatched pairs apart."""
        position, batch = self.backbone.position, shown.batch
        if not hasattr(position, 'statistics'):
            return {}
        text = Tokens(fused.text_tokens, batch.attention_mask)
        shares = position.statistics(fused.relation, text, batch.regions.attention_mask)
        logs = {}
        for name, share in shares.items():
            for side, rows in (('matched', shown.matched), ('mismatched', ~shown.matched)):
                logs[f'{name}_{side}'] = (share * rows).sum() / rows.sum().clamp(min=1)
        return logs

    def head_sizes(self, name: str) -> dict[str, int]:
        """The arguments of a head that follow from the backbone."""
        if name == 'mlm':
            return dict(vocab_size=self.backbone.text_encoder.vocab_size)
        if name == 'objects':
            return dict(feature_dims=self.backbone.image_encoder.feature_dims)
        return {}


def _same(batch: RegionTextBatch) -> Tensor:
    """Texts that are no mismatch of an image, its own and equal ones, (B, B) bool."""
    same_image = batch.image_ids[:, None] == batch.image_ids
    return same_image | (batch.text_ids[:, None] == batch.text_ids)
