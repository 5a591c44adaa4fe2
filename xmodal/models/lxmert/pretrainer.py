"""The five pre-training tasks of LXMERT."""

import torch
from torch import Tensor

from xmodal.models.heads import PretrainHeads
from xmodal.models.heads.match_statistics import by_match
from xmodal.models.lxmert.model import LxmertModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, Fused, ImageTextBatch, LxmertStep, Shown


@MODELS.register_module()
class LxmertPretrainer(LxmertModel):
    """Masked words, masked objects, matching and answers in one pass (LXMERT, Sec. 3.1).

    The heads first replace texts, then mask words and regions; the model sees the result once, and
    each head computes its losses from that pass.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`LxmertBackbone`.
        heads: configs of :class:`PretrainHead` by name, in the paper ``LxmertMLMHead``,
            ``ObjectHead`` (RoI features and detected labels), ``LxmertITMHead`` and
            ``AnswerTableHead``; None leaves out one of an inherited config. Nothing is masked or
            replaced for a head that is absent.

    Attributes:
        heads: the objectives; a hook may let some begin later.
    """

    def __init__(
        self, data_preprocessor: dict, backbone: dict, heads: dict[str, dict | None]
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        self.set_heads(PretrainHeads(heads, self.backbone.sizes))
        for head in self.heads.values():
            head.check(self)

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some."""
        self.heads.init_weights()
        super().init_weights()

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Fused:
        """Both modalities after fusion, with nothing masked."""
        return self.backbone.fuse_batch(batch)

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """Values of all active heads: those with 'loss' in the name are added up.

        Samples have ``answers`` and ``answer_weights``, empty where the text is no question.
        """
        shown = self.show(batch)
        need_image = any(head.reads_image_tokens for head in self.heads.active_heads())
        fused = self.backbone.fuse_batch(shown.batch, need_image=need_image)
        step = LxmertStep(batch, samples, shown, fused, self.backbone.pool(fused))
        masks = shown.batch.attention_mask, shown.batch.images.attention_mask
        figures = self.backbone.position.statistics(fused.relation, *masks)
        return {**by_match(figures, shown.matched), **self.heads.loss(self, step)}

    def show(self, batch: ImageTextBatch) -> Shown:
        """The batch with texts replaced, and then words and regions masked, for the heads."""
        matched = torch.ones_like(batch.image_ids, dtype=torch.bool)
        shown = Shown(batch, matched, batch.input_ids)
        heads = self.heads.active_heads()
        for head in heads:
            shown = head.replace_texts(self, shown)
        for head in heads:
            shown = head.mask(self, shown)
        return shown
