"""The encoded images and texts of a retrieval test set."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from mmengine.dist import all_gather_object, get_world_size
from torch import Tensor

from xmodal.errors import ConfigError
from xmodal.structures import DataSample, PackedTexts, Tokens
from xmodal.structures.texts import run_indices


class EncodedGallery(NamedTuple):
    """Encoded images with their texts: of a batch, of the share of one rank, or of a test set.

    The texts of an image are adjacent, and in the order of the images.

    Attributes:
        image_tokens: (K, L, D) of the images in ``image_rows``; None where embeddings are enough.
        texts: word pieces or word embeddings of all texts; None where embeddings are enough.
        image_embeddings: for ITC, (I, d) float32; None where a scorer does not need them.
        text_embeddings: for ITC, (T, d) float32; None where a scorer does not need them.
        text_counts: number of texts of each image, (I,) int64.
        sample_indices: index of each image in the data set, (I,) int64.
        image_ids: of each image.
        image_names: of each image, its file or, where there are only features, its id.
        captions: all texts as strings.
        image_rows: rows of the images whose tokens this rank holds, (K,) int64; None for all.
    """

    image_tokens: Tokens | None
    texts: PackedTexts | None
    image_embeddings: Tensor | None
    text_embeddings: Tensor | None
    text_counts: Tensor
    sample_indices: Tensor
    image_ids: list[int]
    image_names: list[str]
    captions: list[str]
    image_rows: Tensor | None = None

    @classmethod
    def from_samples(
        cls,
        data_samples: Sequence[DataSample],
        image_names: list[str],
        image_tokens: Tokens | None,
        texts: PackedTexts | None,
        image_embeddings: Tensor | None = None,
        text_embeddings: Tensor | None = None,
    ) -> 'EncodedGallery':
        """The encoded images and texts of a batch, with what its data samples say about them.

        Raises:
            ConfigError: when a sample has one caption, and not all of its image.
        """
        if any(isinstance(sample.text, str) for sample in data_samples):
            raise ConfigError(
                'retrieval needs all captions of an image in one sample, and got one caption: set '
                'test_mode=True in the dataset of val_dataloader and test_dataloader'
            )
        return cls(
            image_tokens,
            texts,
            image_embeddings,
            text_embeddings,
            text_counts=torch.tensor([len(sample.text) for sample in data_samples]),
            sample_indices=torch.tensor([sample.sample_index for sample in data_samples]),
            image_ids=[sample.image_id for sample in data_samples],
            image_names=image_names,
            captions=[caption for sample in data_samples for caption in sample.text],
        )

    @classmethod
    def join(cls, parts: list['EncodedGallery']) -> 'EncodedGallery':
        """The images and texts of all parts, one part after the other."""
        image_tokens, texts, *arrays, ids, names, captions, _ = zip(*parts, strict=True)
        return cls(
            None if image_tokens[0] is None else Tokens.join(image_tokens),
            None if texts[0] is None else PackedTexts.join(texts),
            *(None if array[0] is None else torch.cat(array) for array in arrays),
            *([item for items in lists for item in items] for lists in (ids, names, captions)),
        )

    @property
    def text_to_image(self) -> Tensor:
        """Row of the image that each text describes, (T,) int64."""
        return torch.repeat_interleave(torch.arange(len(self.text_counts)), self.text_counts)

    def select(self, rows: Tensor) -> 'EncodedGallery':
        """The images of the given rows, (K,) int64, with their texts."""
        texts = run_indices(self.text_counts, rows)
        return EncodedGallery(
            None if self.image_tokens is None else self.image_tokens.select(rows),
            None if self.texts is None else self.texts.select(texts),
            None if self.image_embeddings is None else self.image_embeddings[rows],
            None if self.text_embeddings is None else self.text_embeddings[texts],
            self.text_counts[rows],
            self.sample_indices[rows],
            [self.image_ids[row] for row in rows.tolist()],
            [self.image_names[row] for row in rows.tolist()],
            [self.captions[text] for text in texts.tolist()],
        )

    def in_dataset_order(self) -> 'EncodedGallery':
        """The same in the order of the data set; without a copy where it is in order already."""
        order = self.sample_indices.argsort()
        return self if order.equal(torch.arange(len(order))) else self.select(order)

    def gather(self, with_image_tokens: bool) -> 'EncodedGallery':
        """The whole test set from the shares of all ranks, in the order of the data set.

        Args:
            with_image_tokens: every rank gets the tokens of all images, on the CPU; otherwise the
                tokens stay on the rank that encoded them, and ``image_rows`` says which these are.
        """
        if get_world_size() == 1 and with_image_tokens:
            return self.in_dataset_order()
        tokens = self.image_tokens.to('cpu') if with_image_tokens else None
        texts = None if self.texts is None else self.texts.to('cpu')
        share = self._replace(image_tokens=tokens, texts=texts)
        whole = EncodedGallery.join(all_gather_object(share)).in_dataset_order()
        if with_image_tokens:
            return whole
        rows = torch.searchsorted(whole.sample_indices, self.sample_indices)
        return whole._replace(image_tokens=self.image_tokens, image_rows=rows)
