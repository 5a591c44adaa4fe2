"""Supervised pre-training of an image encoder: the labels of objects, without texts."""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from xmodal.models.base import CrossModalModel
from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch


@MODELS.register_module()
class MultiLabelClassifier(CrossModalModel):
    """Image encoder and a linear multi-label classifier, trained on mosaics of small images.

    ACE-RPE's image encoder starts from ImageNet's labels; this trains one for a world that has no
    such labels. T × T images form a mosaic, and each is classified from the mean of its patches. So
    the patches, which fusion reads, learn to describe their own content, next to other objects and
    anywhere in an image.

    Args:
        data_preprocessor: config of the preprocessor.
        image_encoder: config of an encoder of images T times as large as the small ones.
        num_tags: C.
        tiles: T.
    """

    def __init__(
        self, data_preprocessor: dict, image_encoder: dict, num_tags: int, tiles: int = 2
    ) -> None:
        super().__init__(data_preprocessor)
        self.image_encoder = MODELS.build(image_encoder)
        self.classifier = nn.Linear(self.image_encoder.embed_dims, num_tags)
        self.tiles = tiles

    def tensor(self, batch: ImageTextBatch, samples: list[DataSample] | None = None) -> Tensor:
        """Logits (B, C) of small images (B, 3, h, w).

        Raises:
            ValueError: when the images don't fill the last mosaic.
        """
        images, tiles = batch.images, self.tiles
        if len(images) % tiles**2:
            raise ValueError(
                f'{len(images)} images make no whole mosaics of {tiles} × {tiles}: set '
                f'train_dataloader.global_batch_size to a multiple of {tiles**2} on each rank'
            )
        mosaics = images.unflatten(0, (-1, tiles, tiles)).permute(0, 3, 1, 4, 2, 5)
        tokens = self.image_encoder(mosaics.flatten(4, 5).flatten(2, 3))
        rows, columns = tokens.grid_size
        patches = tokens.embeddings[:, 1:].unflatten(
            1, (tiles, rows // tiles, tiles, columns // tiles)
        )
        return self.classifier(patches.mean((2, 4)).flatten(0, 2))

    def loss(self, batch: ImageTextBatch, samples: list[DataSample]) -> dict[str, Tensor]:
        """``loss_tags``, cross-entropy summed over tags, and ``tags_found``, their recall.

        An image with k tags is predicted to have the k tags with the largest logits. Samples have
        ``tags``, their class numbers.
        """
        logits = self.tensor(batch).float()
        targets = torch.zeros(logits.shape)
        for row, sample in zip(targets, samples, strict=True):
            row[sample.tags] = 1
        targets = targets.to(logits.device)
        loss = binary_cross_entropy_with_logits(logits, targets, reduction='sum') / len(logits)
        ranks = logits.argsort(1, descending=True).argsort(1)
        is_top = ranks < targets.sum(1, keepdim=True)
        recall = (targets.bool() & is_top).sum() / targets.sum()
        return {'loss_tags': loss, 'tags_found': recall}
