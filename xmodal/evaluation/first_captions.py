"""Images of a test set, each with its first caption, encoded batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.data import Dataset
from tqdm import tqdm

from xmodal.structures import DataSample, ImageTextBatch, Tokens

BATCH = 50


class EncodedCaptions(NamedTuple):
    """Images, each with one caption, and what the encoders return for them.

    Attributes:
        batch: the images and captions.
        samples: their data samples.
        image: of the image encoder.
        text: of the text encoder.
    """

    batch: ImageTextBatch
    samples: list[DataSample]
    image: Tokens
    text: Tokens


@torch.no_grad()
def encode_first_captions(
    model: nn.Module,
    dataset: Dataset,
    rows: Sequence[int],
    collate: Callable,
    title: str | None = None,
) -> Iterator[EncodedCaptions]:
    """Encodes images of a test set, each with the first of its captions, batch by batch.

    Batches are of about equal size: a last one of a single image would have no mismatched pair.

    Args:
        model: in eval mode.
        dataset: images with their captions.
        rows: indices of the samples.
        collate: makes a batch of samples.
        title: of the progress bar; None for no bar.
    """
    parts = torch.tensor(rows).tensor_split(-(-len(rows) // BATCH))
    for part in tqdm(parts, title, disable=title is None):
        items = [dataset[row] for row in part.tolist()]
        for sample in (item['data_samples'] for item in items):
            sample.text = [sample.text] if isinstance(sample.text, str) else sample.text[:1]
        prepared = model.data_preprocessor(collate(items), False)
        batch, samples = prepared['inputs'], prepared['data_samples']
        image = model.encode_image(batch.images).tokens
        text = model.encode_text(batch.input_ids, batch.attention_mask).tokens
        yield EncodedCaptions(batch, samples, image, text)
