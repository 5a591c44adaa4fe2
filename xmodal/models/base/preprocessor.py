"""From data samples to the tensors of a batch: what pixels and regions have in common."""

import logging
from abc import ABC, abstractmethod

import torch
from mmengine.logging import print_log
from mmengine.model import BaseDataPreprocessor
from torch import Tensor

from xmodal.arguments import checked
from xmodal.hashing import hash_text
from xmodal.models.base.tokenizer import build_tokenizer, pad_ids, piece_names
from xmodal.structures import DataSample, ImageTextBatch, Regions

_MANY = 0.2  # unknown words of a run's first texts
_NAMED = 20  # words of a warning


class CrossModalPreprocessor(BaseDataPreprocessor, ABC):
    """Prepares images, tokenises texts and numbers both by their identity.

    A subclass says how images are prepared, and how texts are tokenised if not by a tokenizer of
    ``transformers``.

    Args:
        max_length: longest text, special words included; longer ones are cut. None cuts none.
        tokenizer: arguments of :func:`xmodal.models.base.tokenizer.build_tokenizer`; None for none.

    Attributes:
        vocab_size: number of words, or of word pieces.
        mask_id: id of [MASK]; of a tokenizer.
        special_ids: ids of the special word pieces, (S,) int64; of a tokenizer.
        names_unknown_words: warn of every word that the vocabulary lacks, as an inferencer does; a
            run is warned once, when it lacks many of its first texts.
    """

    vocab_size: int
    names_unknown_words = False
    _is_first = True

    def __init__(self, max_length: int | None, tokenizer: dict | None = None) -> None:
        super().__init__(non_blocking=True)
        self.max_length, self.tokenizer = max_length, None
        if tokenizer is not None:
            given = checked(build_tokenizer, tokenizer, 'data_preprocessor.tokenizer')
            self.tokenizer = build_tokenizer(**given)
            self.vocab_size, self.mask_id = len(self.tokenizer), self.tokenizer.mask_token_id
            special_ids = torch.tensor(self.tokenizer.all_special_ids)
            self.register_buffer('special_ids', special_ids, persistent=False)

    @abstractmethod
    def prepare_images(self, inputs: Tensor | Regions) -> Tensor | Regions:
        """What the data loader collates, as the model takes it and on its device."""

    def tokenize(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Texts to ``input_ids`` int64 and ``attention_mask`` bool, both (T, N)."""
        cut = self.max_length is not None
        ids = self.tokenizer(texts, truncation=cut, max_length=self.max_length)['input_ids']
        # Some tokenizers have no token for padding, which the mask tells.
        input_ids, mask = pad_ids(ids, self.tokenizer.pad_token_id or 0)
        self._warn_of_unknown_words(texts, input_ids)
        return self._move(input_ids), self._move(mask)

    def words(self, input_ids: Tensor) -> list[str]:
        """The words, or word pieces, of ids (L,)."""
        return piece_names(self.tokenizer, input_ids.tolist())

    def unknown_words(self, texts: list[str], input_ids: Tensor) -> list[str]:
        """The words of texts that became [UNK], in their order.

        Byte pairs know all words. A tokenizer in Python, which does not tell where its pieces are
        from, names none.

        Args:
            texts: T texts.
            input_ids: what :meth:`tokenize` made of them, (T, N).
        """
        unknown = self.tokenizer.unk_token_id
        has_unknown = unknown not in (None, self.tokenizer.eos_token_id)  # CLIP's is the latter
        if not (has_unknown and self.tokenizer.is_fast):
            return []
        words = []
        for row in (input_ids == unknown).any(1).nonzero().flatten().tolist():
            places = self.tokenizer(texts[row], return_offsets_mapping=True)['offset_mapping']
            pieces = zip(input_ids[row].tolist(), places, strict=False)  # padded, or cut
            words += [texts[row][start:end] for piece, (start, end) in pieces if piece == unknown]
        return words

    # MMEngine compiles a whole step. A program for these texts fits no other batch.
    @torch.compiler.disable
    def forward(self, data: dict, training: bool = False) -> dict:
        """Turns ``dict(inputs, data_samples)`` into a model's arguments.

        In test mode a sample's text is a list: the captions of all images are consecutive rows of
        the texts, and ``text_image_ids`` names their images.
        """
        samples: list[DataSample] = data['data_samples']
        captions = [[s.text] if isinstance(s.text, str) else s.text for s in samples]
        texts = [text for of_image in captions for text in of_image]
        text_image_ids = [
            sample.image_id
            for sample, of_image in zip(samples, captions, strict=True)
            for _ in of_image
        ]
        input_ids, attention_mask = self.tokenize(texts)
        batch = ImageTextBatch(
            images=self.prepare_images(data['inputs']),
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_ids=self._ids([sample.image_id for sample in samples]),
            text_ids=self._ids([hash_text(text) for text in texts]),
            text_image_ids=self._ids(text_image_ids),
        )
        return {'inputs': batch, 'data_samples': samples}

    def _warn_of_unknown_words(self, texts: list[str], input_ids: Tensor) -> None:
        """Many unknown words in the first texts mean that the vocabulary belongs to others."""
        is_first, self._is_first = self._is_first, False
        if not (is_first or self.names_unknown_words):
            return
        words = self.unknown_words(texts, input_ids)
        share = len(words) / max(sum(len(text.split()) for text in texts), 1)
        distinct = list(dict.fromkeys(words))
        names = ', '.join(distinct[:_NAMED]) + ', …' * (len(distinct) > _NAMED)
        if words and self.names_unknown_words:
            warning = f'not in the vocabulary of this model: {names}'
        elif share > _MANY:
            warning = (
                f'{share:.0%} of the words of the first {len(texts)} texts are unknown to the '
                f'tokenizer ({names}): does data_preprocessor.tokenizer name their vocabulary?'
            )
        else:
            return
        # MMEngine shows equal warnings once, as those of a text that is encoded again.
        print_log(warning, 'current', level=logging.WARNING)

    def _move(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    def _ids(self, ids: list[int]) -> Tensor:
        return self._move(torch.tensor(ids, dtype=torch.int64))
