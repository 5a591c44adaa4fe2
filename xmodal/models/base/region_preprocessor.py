"""Preprocessing of region features and texts."""

import torch
from torch import Tensor

from xmodal.models.base.preprocessor import CrossModalPreprocessor
from xmodal.models.base.tokenizer import pad_ids
from xmodal.registry import MODELS
from xmodal.structures import Regions
from xmodal.vocabulary import PAD, UNKNOWN, Vocabulary


@MODELS.register_module()
class RegionTextPreprocessor(CrossModalPreprocessor):
    """Moves regions to the device and tokenises texts.

    A checkpoint holds a fingerprint of the vocabulary that it was trained with; loading it with
    another vocabulary is an error.

    Args:
        tokenizer: ``vocabulary``: a file of words (:class:`xmodal.vocabulary.Vocabulary`); or else
            arguments of :func:`xmodal.models.base.tokenizer.build_tokenizer`, for BERT.
        max_length: longest text, special words included; longer ones are cut. None cuts none.
        only: the one modality that the model sees, 'image' or 'text', in training and test alike:
            each text becomes the empty one, [CLS] and [SEP], or each image one region, which covers
            it and has features of zeros. None for both.

    Raises:
        FileNotFoundError: when the vocabulary does not exist.
        ValueError: when it is of another layout, or ``only`` has another value.
    """

    def __init__(
        self, tokenizer: dict, max_length: int | None = None, only: str | None = None
    ) -> None:
        has_words = 'vocabulary' in tokenizer
        super().__init__(max_length, None if has_words else tokenizer)
        if only not in (None, 'image', 'text'):
            raise ValueError(f"data_preprocessor.only={only!r}, expected 'image', 'text' or None")
        self.only = only
        self.vocabulary_file = tokenizer.get('vocabulary', tokenizer.get('pretrained'))
        self.vocabulary = None
        if has_words:
            self.vocabulary = Vocabulary.read(tokenizer['vocabulary'])
            self.vocab_size = len(self.vocabulary)

    def prepare_images(self, inputs: Regions) -> Regions:
        """The regions, on the model's device."""
        return self.cast_data(inputs.hidden() if self.only == 'text' else inputs)

    def tokenize(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Texts to ``input_ids`` int64 and ``attention_mask`` bool, both (T, N)."""
        if self.only == 'image':
            texts = [''] * len(texts)
        if not self.vocabulary:
            return super().tokenize(texts)
        ids = [self._truncate(self.vocabulary.encode(text)) for text in texts]
        input_ids, mask = pad_ids(ids, PAD)
        self._warn_of_unknown_words(texts, input_ids)
        return self._move(input_ids), self._move(mask)

    def unknown_words(self, texts: list[str], input_ids: Tensor) -> list[str]:
        """The words of texts that the vocabulary lacks, in their order."""
        if not self.vocabulary:
            return super().unknown_words(texts, input_ids)
        rows = (input_ids == UNKNOWN).any(1).nonzero().flatten().tolist()
        return [word for row in rows for word in self.vocabulary.unknown_words(texts[row])]

    def words(self, input_ids: Tensor) -> list[str]:
        """The words, or word pieces, of ids (L,)."""
        if not self.vocabulary:
            return super().words(input_ids)
        return [self.vocabulary.words[word_id] for word_id in input_ids.tolist()]

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

    def _truncate(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """At most ``max_length`` words, the last one <end>."""
        if self.max_length is None or len(ids) <= self.max_length:
            return ids
        return (*ids[: self.max_length - 1], ids[-1])
