"""From regions and captions to the tensors a matching model takes."""

import torch
from mmengine.model import BaseDataPreprocessor
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from xmodal.models.base.preprocessor import build_tokenizer, text_identity
from xmodal.registry import MODELS
from xmodal.structures import DataSample, RegionTextBatch
from xmodal.vocabulary import Vocabulary


@MODELS.register_module()
class RegionTextPreprocessor(BaseDataPreprocessor):
    """Moves regions to the device and numbers the words of captions.

    A checkpoint remembers the words that it was trained with; another vocabulary is refused when it
    is loaded.

    Args:
        tokenizer: ``vocabulary``: a file of words (:class:`xmodal.vocabulary.Vocabulary`); or else
            arguments of :func:`xmodal.models.base.preprocessor.build_tokenizer`, for BERT.
        max_length: longest text, special words included; longer ones are cut. None cuts none.

    Attributes:
        vocab_size: number of words, or of word pieces.

    Raises:
        FileNotFoundError: when the vocabulary is not there.
        ValueError: when it is of another layout.
    """

    def __init__(self, tokenizer: dict, max_length: int | None = None) -> None:
        super().__init__(non_blocking=True)
        self.vocabulary_file = tokenizer.get('vocabulary', tokenizer.get('pretrained'))
        self.vocabulary = self.tokenizer = None
        if 'vocabulary' in tokenizer:
            self.vocabulary = Vocabulary.read(tokenizer['vocabulary'])
        else:
            self.tokenizer = build_tokenizer(**tokenizer)
        self.max_length = max_length
        self.vocab_size = len(self.vocabulary or self.tokenizer)

    def forward(self, data: dict, training: bool = False) -> dict:
        """Turns ``dict(inputs, data_samples)``, regions and a list, into a model's arguments.

        In test mode a sample's text is a list: all its captions stand one after another in the
        text rows, and ``text_image_ids`` says whose they are.
        """
        samples: list[DataSample] = data['data_samples']
        captions = [[s.text] if isinstance(s.text, str) else s.text for s in samples]
        texts = [text for own in captions for text in own]
        owners = [s.image_id for s, own in zip(samples, captions, strict=True) for _ in own]
        input_ids, attention_mask = self.tokenize(texts)
        batch = RegionTextBatch(
            regions=self.cast_data(data['inputs']),
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_ids=self._ids([s.image_id for s in samples]),
            text_ids=self._ids([text_identity(text) for text in texts]),
            text_image_ids=self._ids(owners),
        )
        return {'inputs': batch, 'data_samples': samples}

    def tokenize(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Texts to ``input_ids``, (T, N) int64, and ``attention_mask``, (T, N) bool."""
        if self.vocabulary:
            numbers = [self._cut(self.vocabulary.encode(text)) for text in texts]
        else:
            numbers = self.tokenizer(
                texts, truncation=self.max_length is not None, max_length=self.max_length
            )['input_ids']
        lengths = torch.tensor([len(own) for own in numbers])
        ids = pad_sequence([torch.tensor(own) for own in numbers], batch_first=True)
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        return self._move(ids), self._move(mask)

    def words(self, input_ids: Tensor) -> list[str]:
        """The words, or word pieces, of numbers (L,)."""
        if self.vocabulary:
            return [self.vocabulary.words[number] for number in input_ids.tolist()]
        return self.tokenizer.convert_ids_to_tokens(input_ids.tolist())

    def get_extra_state(self) -> Tensor:
        """The vocabulary's fingerprint, for the checkpoint; 0 for BERT's."""
        return torch.tensor(self.vocabulary.fingerprint if self.vocabulary else 0)

    def set_extra_state(self, state: Tensor) -> None:
        """Compares a checkpoint's vocabulary with this one.

        Raises:
            ValueError: when words have other numbers there.
        """
        if int(state) != int(self.get_extra_state()):
            raise ValueError(
                f'the checkpoint was trained with another vocabulary than {self.vocabulary_file} '
                '(data_preprocessor.tokenizer): the words would get vectors of other words. Give '
                'the file that it was trained with'
            )

    def _cut(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """At most ``max_length`` words, the last one <end>."""
        if self.max_length is None or len(numbers) <= self.max_length:
            return numbers
        return (*numbers[: self.max_length - 1], numbers[-1])

    def _move(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    def _ids(self, numbers: list[int]) -> Tensor:
        return self._move(torch.tensor(numbers, dtype=torch.int64))
