"""Visual question answering by generating the answer."""

from typing import NamedTuple

import torch
from mmengine.dist import all_reduce
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from xmodal.datasets.answers import join_marks, read_answer_list
from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.albef.decoder_weights import fill_missing_decoder
from xmodal.models.albef.model import AlbefModel
from xmodal.models.base import set_answers
from xmodal.models.heads import AnswerDecoder
from xmodal.models.losses import distilled_cross_entropy
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, Tokens


class Answers(NamedTuple):
    """Answers in word pieces, [CLS] first and [SEP] last.

    Attributes:
        ids: (…, L) int64.
        mask: True for word pieces, False for padding, (…, L) bool.
    """

    ids: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> 'Answers':
        """Selects answers, without the columns that are padding in all of them."""
        ids, mask = self.ids[rows], self.mask[rows]
        length = int(mask.sum(-1).max())
        return Answers(ids[..., :length], mask[..., :length])


@MODELS.register_module()
class AlbefVQA(AlbefModel):
    """The backbone encodes image and question, a decoder generates the answer (ALBEF, Sec. 5).

    Trained on the distinct answers of each question, each weighted by the share of people who gave
    it. In a test the decoder ranks the answers of a closed list by their likelihood, or generates
    them where there is no list. A pre-trained model's weights start both backbone and decoder.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.
        momentum: m of the momentum teacher, whose logits are soft targets; None for no teacher.
        answer_list: JSON file with the list of answers to choose from; None generates answers.
        candidates: k, the number of answers ranked by likelihood, preselected by the likelihood of
                their first word piece.
        answer_batch: answers decoded at once in a test, of all questions together.
        report: answers reported for each question, the best first.
        max_answer_length: longest answer, in word pieces without [CLS] and [SEP]; longer ones are
            cut in training and an error in the list.

    Raises:
        FileNotFoundError: when ``answer_list`` does not exist.
        ValueError: when it is no list of answers, one of them is too long or empty, a number is
            below 1, or the decoder has fewer positions than the longest answer.
    """

    def __init__(
        self,
        data_preprocessor: dict,
        backbone: dict,
        momentum: float | None = 0.995,
        answer_list: str | None = None,
        candidates: int = 128,
        answer_batch: int = 1024,
        report: int = 5,
        max_answer_length: int = 10,
    ) -> None:
        super().__init__(data_preprocessor, backbone)
        self.decoder = AnswerDecoder(self.backbone.text_encoder, self.backbone.fusion)
        self.candidates, self.answer_batch, self.report = candidates, answer_batch, report
        self.max_answer_length = max_answer_length
        for name in ('candidates', 'report', 'max_answer_length'):
            if getattr(self, name) < 1:
                raise ValueError(f'model.{name}={getattr(self, name)}, expected at least 1')
        self.decoder.check_length(max_answer_length)
        self.answer_list: list[str] = []
        if answer_list is not None:
            self.answer_list = read_answer_list(answer_list, 'model.answer_list')
            listed = self._tokenize(self.answer_list, whole=True)
            self.register_buffer('listed_ids', listed.ids, persistent=False)
            self.register_buffer('listed_mask', listed.mask, persistent=False)
        self.register_load_state_dict_pre_hook(fill_missing_decoder)  # before the teacher's
        self.make_teacher(momentum)

    def momentum_modules(self) -> dict[str, str]:
        """The backbone and the decoder."""
        return super().momentum_modules() | {'decoder': 'decoder'}

    def init_weights(self) -> None:
        """Loads pretrained weights, copies them to the decoder, and makes the teacher equal."""
        self.backbone.init_weights()
        self.decoder.copy_from(self.backbone.text_encoder, self.backbone.fusion)
        if self.teacher:
            self.teacher.copy_from(self.online_modules())

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """Σ over answers of weight · Σ over word pieces of cross-entropy, mean over images."""
        answers, weights = self._gather_answers(samples)
        real = answers.mask[..., 1:]

        def predict(backbone: AlbefBackbone, decoder: AnswerDecoder) -> Tensor:
            tokens = decoder(answers.ids[..., :-1], _encode_question(backbone, batch))
            return decoder.logits(tokens[real])

        logits = predict(self.backbone, self.decoder)
        teacher_logits = None
        if self.distillation_weight:
            with torch.no_grad():
                teacher = self.teacher.module
                teacher_logits = predict(teacher['backbone'], teacher['decoder'])
        labels = answers.ids[..., 1:][real]
        losses = distilled_cross_entropy(
            logits, labels, teacher_logits, self.distillation_weight, reduction='none'
        )
        token_weights = weights[..., None].expand_as(real)[real]
        return {'loss_answer': (losses * token_weights).sum() / len(samples)}

    def predict(self, batch: ImageTextBatch, samples: list[DataSample]) -> list[DataSample]:
        """Sets ``predicted``, and ``top_answers``: the best, each with its probability."""
        question = _encode_question(self.backbone, batch)
        return set_answers(
            samples, self.rank(question) if self.answer_list else self.generate(question)
        )

    def rank(self, question: Tokens) -> list[list[tuple[str, float]]]:
        """The likeliest answers of the list for each question, with their probabilities."""
        rows = self._candidates(question)
        step = max(1, self.answer_batch // len(rows))
        scores = torch.cat([self._likelihood(question, part) for part in rows.split(step, 1)], 1)
        order = scores.argsort(dim=1, descending=True, stable=True)[:, : self.report]
        best, scores = rows.gather(1, order).tolist(), scores.gather(1, order).exp().tolist()
        return [
            [(self.answer_list[row], p) for row, p in zip(*of_question, strict=True)]
            for of_question in zip(best, scores, strict=True)
        ]

    def generate(self, question: Tokens) -> list[list[tuple[str, float]]]:
        """An answer for each question by greedy decoding."""
        tokenizer = self.data_preprocessor.tokenizer
        ids = self._starts(question)
        likelihood = torch.zeros(len(ids), device=ids.device)
        ended = torch.zeros_like(likelihood, dtype=torch.bool)
        for _ in range(self.max_answer_length + 1):
            logits = self.decoder.logits(self.decoder(ids, question)[:, 0, -1])
            best, words = logits.float().log_softmax(-1).max(-1)
            likelihood += best.masked_fill(ended, 0)
            words = words.masked_fill(ended, tokenizer.pad_token_id)
            ids = torch.cat([ids, words[:, None, None]], 2)
            ended |= words == tokenizer.sep_token_id
            if self._is_done(ended):
                break
        texts = map(join_marks, tokenizer.batch_decode(ids[:, 0], skip_special_tokens=True))
        return [[each] for each in zip(texts, likelihood.exp().tolist(), strict=True)]

    def _is_done(self, ended: Tensor) -> bool:
        """Whether all answers have ended: of all ranks, where these gather sharded layers."""
        done = ended.all().float()
        if isinstance(next(self.decoder.layers.parameters()), DTensor):
            all_reduce(done, 'min')
        return bool(done)

    def _candidates(self, question: Tokens) -> Tensor:
        """Rows of the list to rank, (B, k): those whose first word piece is likeliest.

        Answers with the same first word piece keep the order of the list.
        """
        count = len(self.answer_list)
        if self.candidates >= count:
            rows = torch.arange(count, device=question.embeddings.device)
            return rows.expand(len(question.embeddings), -1)
        starts = self.decoder(self._starts(question), question)[:, 0, 0]
        first = self.decoder.logits(starts)[:, self.listed_ids[:, 1]]  # (B, list)
        return first.argsort(dim=1, descending=True, stable=True)[:, : self.candidates]

    def _likelihood(self, question: Tokens, rows: Tensor) -> Tensor:
        """Log-probability of answers of the list, rows (B, K) to (B, K).

        All word pieces count once, [SEP] included.
        """
        answers = Answers(self.listed_ids, self.listed_mask).select(rows)
        real = answers.mask[..., 1:]
        logits = self.decoder.logits(self.decoder(answers.ids[..., :-1], question)[real])
        scores = torch.zeros(real.shape, device=logits.device)
        scores[real] = -cross_entropy(logits.float(), answers.ids[..., 1:][real], reduction='none')
        return scores.sum(-1)

    def _starts(self, question: Tokens) -> Tensor:
        """An answer of [CLS] alone for each question, (B, 1, 1)."""
        size = (len(question.embeddings), 1, 1)
        start = self.data_preprocessor.tokenizer.cls_token_id
        return torch.full(size, start, device=question.embeddings.device)

    def _gather_answers(self, samples: list[DataSample]) -> tuple[Answers, Tensor]:
        """Answers (B, K, L), padded to the most of a sample, and weights (B, K), 0 for padding.

        A question without answers gets one of weight 0: a whole batch may have none.
        """
        texts = [sample.answers or [''] for sample in samples]
        answers = self._tokenize([text for of_sample in texts for text in of_sample])
        counts = [len(of_sample) for of_sample in texts]
        ids, mask = (pad_sequence(x.split(counts), batch_first=True) for x in answers)
        weights = pad_sequence(
            [torch.tensor(sample.answer_weights or [0.0]) for sample in samples], batch_first=True
        )
        device = self.data_preprocessor.device
        return Answers(ids.to(device), mask.to(device)), weights.to(device)

    def _tokenize(self, texts: list[str], whole: bool = False) -> Answers:
        """Answers (A, L), on the CPU; long ones are cut, or refused if they must be ``whole``."""
        tokenizer = self.data_preprocessor.tokenizer
        rows = []
        for text, pieces in zip(
            texts, tokenizer(texts, add_special_tokens=False)['input_ids'], strict=True
        ):
            if whole and not 0 < len(pieces) <= self.max_answer_length:
                raise ValueError(
                    f'model.answer_list has {text!r}, of {len(pieces)} word pieces; expected 1 to '
                    f'model.max_answer_length={self.max_answer_length}'
                )
            pieces = pieces[: self.max_answer_length]
            rows.append(torch.tensor([tokenizer.cls_token_id, *pieces, tokenizer.sep_token_id]))
        mask = [torch.ones_like(row, dtype=torch.bool) for row in rows]
        ids = pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id)
        return Answers(ids, pad_sequence(mask, batch_first=True))


def _encode_question(backbone: AlbefBackbone, batch: ImageTextBatch) -> Tokens:
    """The words of the questions after fusion with the images."""
    image = backbone.encode_image(batch.images).tokens
    text = backbone.encode_text(batch.input_ids, batch.attention_mask).tokens
    fused = backbone.fuse(image, text, need_image=False)
    return Tokens(fused.text_tokens, batch.attention_mask)
