"""Training steps of SAF and SGR on random inputs."""

import tempfile

import torch
from torch.optim import Optimizer

from xmodal.benchmark.script import write_placeholder_words
from xmodal.benchmark.sgraf_costs import REGIONS, caption_lengths
from xmodal.engine.launch import read_config
from xmodal.models.sgraf import ImageTextMatcher
from xmodal.registry import MODELS
from xmodal.structures import ImageTextBatch, Regions
from xmodal.vocabulary import SPECIAL_WORDS

WORDS, FEATURES = 8000, 2048  # of the vocabulary, of a region


def build_model(file: str, width: int, **sketch: int) -> ImageTextMatcher:
    """Builds the model of a config with random weights and a vocabulary of placeholders.

    Args:
        file: config file.
        width: of the tokens, in the place of the config's.
        **sketch: arguments of T-EMDE in the place of the config's.
    """
    config = read_config(file).model
    if sketch:
        config.similarity.global_pooling.pooling.update(sketch)
    config.image_encoder.embed_dims = config.text_encoder.embed_dims = width
    with tempfile.TemporaryDirectory() as folder:
        config.data_preprocessor.tokenizer.vocabulary = write_placeholder_words(folder, WORDS)
        return MODELS.build(config)


def random_batch(data: str, size: int, device: str) -> ImageTextBatch:
    """Makes a batch of random regions and words.

    Args:
        data: 'f30k' or 'coco', whose captions' lengths the captions have.
        size: number of images, with a caption each.
        device: of the tensors.
    """
    lengths = torch.tensor(caption_lengths(data, size), device=device)
    with torch.device(device):
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        words = torch.randint(len(SPECIAL_WORDS), WORDS, mask.shape).masked_fill(~mask, 0)
        features, ids = torch.randn(size, REGIONS, FEATURES), torch.arange(size)
    regions = Regions(features, torch.ones_like(features[..., 0], dtype=torch.bool))
    return ImageTextBatch(regions, words, mask, image_ids=ids, text_ids=ids, text_image_ids=ids)


def train_step(model: ImageTextMatcher, optimizer: Optimizer, batch: ImageTextBatch) -> None:
    """Takes a training step."""
    optimizer.zero_grad()
    model.loss(batch)['loss_triplet'].backward()
    optimizer.step()
