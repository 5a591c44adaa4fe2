"""From a config and a checkpoint to answers about one's own pictures."""

from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from torch import Tensor, nn

from xmodal.datasets.collate import stack_images
from xmodal.datasets.transforms.image_text import build_pipeline
from xmodal.engine.checkpoint import load_weights
from xmodal.engine.launch import read_config
from xmodal.registry import MODELS, register_all
from xmodal.structures import Encoded


def load_model(
    config: str | Path | Config, checkpoint: str | Path, device: str = 'cpu'
) -> nn.Module:
    """Builds a config's model with a checkpoint's weights, ready for evaluation.

    Args:
        config: a config, or its file.
        checkpoint: a checkpoint of a run, or converted weights.
        device: where the model goes.

    Raises:
        FileNotFoundError: when a file is missing.
        ValueError: when the checkpoint's weights do not belong to the config's model.
    """
    register_all()
    config = config if isinstance(config, Config) else read_config(config)
    model = MODELS.build(config.model)
    load_weights(model, checkpoint)
    return model.to(device).eval()


class Inferencer:
    """Encodes and compares pictures and texts, with a config's own test transforms.

    Example:
        >>> inferencer = Inferencer('configs/acerpe/pretrain_shapes.py', 'epoch_9.pth')
        >>> inferencer.similarity(['a.png', 'b.png'], ['a red ring above a blue disc'])

    Args:
        config: a config, or its file; its test data set says how pictures are prepared.
        checkpoint: a checkpoint file.
        device: where to compute.
    """

    def __init__(
        self, config: str | Path | Config, checkpoint: str | Path, device: str = 'cpu'
    ) -> None:
        config = config if isinstance(config, Config) else read_config(config)
        self.model = load_model(config, checkpoint, device)
        self.pipeline = build_pipeline(config.test_dataloader.dataset.pipeline)

    @torch.no_grad()
    def encode(self, images: Sequence[str | Path], texts: Sequence[str]) -> tuple[Encoded, Encoded]:
        """Picture files to B encoded images, and texts to T encoded texts.

        Raises:
            BrokenImageError: when a picture can't be read.
        """
        # The texts travel with the first picture: in test mode a picture has any number of them.
        samples = [
            self.pipeline(
                {
                    'img_path': str(path),
                    'image_id': index,
                    'text': list(texts) if index == 0 else [],
                    'sample_index': index,
                }
            )
            for index, path in enumerate(images)
        ]
        batch = self.model.data_preprocessor(stack_images(samples), False)['inputs']
        image = self.model.encode_image(batch.images)
        return image, self.model.encode_text(batch.input_ids, batch.attention_mask)

    def similarity(self, images: Sequence[str | Path], texts: Sequence[str]) -> Tensor:
        """Cosine of every picture with every text, (B, T)."""
        image, text = self.encode(images, texts)
        return image.vector @ text.vector.T

    @torch.no_grad()
    def match(self, images: Sequence[str | Path], texts: Sequence[str]) -> Tensor:
        """Probability that each picture and each text match, by the fusion encoder, (B, T)."""
        image, text = self.encode(images, texts)
        shape = len(images), len(texts)
        pairs = torch.ones(shape, device=image.vector.device).nonzero()
        return self.model.match(image.tokens, text.tokens, pairs).sigmoid().view(shape)
