"""One pre-training step: what its objectives share, computed once."""

from typing import NamedTuple

from torch import Tensor

from xmodal.structures.batch import ImageTextBatch
from xmodal.structures.data_sample import DataSample
from xmodal.structures.encoded import Encoded, Fused
from xmodal.structures.keys import Keys


class PretrainStep(NamedTuple):
    """A step of the ALBEF family: both modalities encoded, and the momentum teacher's answers.

    Attributes:
        batch: images and texts.
        samples: the data samples of the batch, for objectives that read more of them.
        image: encoded images.
        text: encoded texts.
        teacher_image: images as the momentum teacher encodes them; without a teacher, ``image``.
        teacher_text: texts as the momentum teacher encodes them; without a teacher, ``text``.
        batch_keys: the teacher's embeddings of this batch, B of them.
        keys: the teacher's embeddings to contrast with: of all ranks' batches, then the queue's.
        distillation_weight: α, the share of the teacher's soft targets; 0 without a teacher.
    """

    batch: ImageTextBatch
    samples: list[DataSample] | None
    image: Encoded
    text: Encoded
    teacher_image: Encoded
    teacher_text: Encoded
    batch_keys: Keys
    keys: Keys
    distillation_weight: float

    @property
    def positives(self) -> Tensor:
        """Keys that share the image or the text with a pair of the batch, (B, K) bool."""
        return self.batch.identities.positives(self.keys.identities)


class Shown(NamedTuple):
    """A batch as LXMERT gets to see it.

    Attributes:
        batch: some texts replaced, some words and regions masked.
        matched: True where the text belongs to the image, (B,) bool.
        input_ids: the texts before words were masked, (B, 1 + N).
        masked_words: words to predict, (B, 1 + N) bool, or None.
        masked_regions: regions to predict, (B, R) bool, or None.
    """

    batch: ImageTextBatch
    matched: Tensor
    input_ids: Tensor
    masked_words: Tensor | None = None
    masked_regions: Tensor | None = None


class LxmertStep(NamedTuple):
    """A step of LXMERT: one pass, whose result all objectives read.

    Attributes:
        batch: images and texts as they are.
        samples: the data samples of the batch.
        shown: the batch as the model got to see it.
        fused: both modalities of ``shown`` after fusion.
        pooled: the cross-modality output, (B, D).
    """

    batch: ImageTextBatch
    samples: list[DataSample]
    shown: Shown
    fused: Fused
    pooled: Tensor
