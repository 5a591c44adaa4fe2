"""Visual question answering by vectors: of the image, the question and the answers."""

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, softplus

from xmodal.models.albef.model import AlbefModel
from xmodal.models.base import set_answers
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch


@MODELS.register_module()
class AlbefVectorVQA(AlbefModel):
    """Chooses an answer from a table, by the vectors of a pre-trained dual encoder.

    The score of an answer is the sum of two: that of a head above the vectors of image and
    question, and the similarity of the image with the answer as a text, which a question lets
    through by its gate ("what animal" more than "how many"). Nothing is fused: for some hundred
    questions :class:`AlbefVQA` has too many weights.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        head: config of the :class:`AnswerTableHead`, without its width.
        temperature: of the similarity.
        dropout: of the vectors before the head.
        report: answers reported for each question, the best first.

    Raises:
        ValueError: when the config trains the text encoder or its projection.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        backbone: dict,
        head: dict,
        temperature: float = 0.07,
        dropout: float = 0.3,
        report: int = 5,
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        width = self.backbone.proj_dims
        head = MODELS.build({**head, 'embed_dims': 2 * width})
        self.heads = nn.ModuleDict({'answers': head})
        self.gate = nn.Linear(width, 1)
        self.temperature, self.report = temperature, report
        self.dropout = nn.Dropout(dropout)
        ids, mask = self.data_preprocessor.tokenize(head.table.answers)
        self.register_buffer('listed_ids', ids, persistent=False)
        self.register_buffer('listed_mask', mask, persistent=False)
        self._answers: Tensor | None = None
        self.register_load_state_dict_post_hook(lambda model, _: model.forget_answers())
        parts = ('text_encoder', 'text_pooling', 'text_proj', 'token_type')
        of_text = {name: getattr(self.backbone, name) for name in parts}
        trained = [
            name
            for name, part in of_text.items()
            if part is not None and any(weight.requires_grad for weight in part.parameters())
        ]
        if trained:
            raise ValueError(
                f'model.backbone.frozen lacks {trained}: AlbefVectorVQA encodes the answers once '
                'an epoch, so that what encodes them must not change'
            )

    def train(self, mode: bool = True) -> 'AlbefVectorVQA':
        """Sets the mode, and forgets the vectors of the answers."""
        self.forget_answers()
        return super().train(mode)

    def forget_answers(self) -> None:
        """Forgets the vectors of the answers, which other weights would encode otherwise."""
        self._answers = None

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_answers`` and the accuracy; samples have ``answers`` and ``answer_weights``."""
        return self.heads['answers'].question_loss(self.tensor(batch), samples)

    def predict(self, batch: ImageTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``predicted``, and ``top_answers``: the best, each with its probability."""
        return set_answers(samples, self.heads['answers'].best(self.tensor(batch), self.report))

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, A)."""
        image = self.backbone.encode_image(batch.images, need_tokens=False).embedding
        question = self._encode_text(batch.input_ids, batch.attention_mask)
        if self._answers is None:
            with torch.no_grad():
                self._answers = self._encode_text(self.listed_ids, self.listed_mask)
        similarity = image @ self._answers.T / self.temperature
        image, question = (layer_norm(x, x.shape[-1:]) for x in (image, question))
        gate = softplus(self.gate(question))
        logits = self.heads['answers'](self.dropout(torch.cat([image, question], 1)))
        return logits + gate * similarity

    def _encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.backbone.encode_text(input_ids, attention_mask, need_tokens=False).embedding
