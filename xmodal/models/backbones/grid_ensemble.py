"""The grid features of several image models side by side."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from xmodal.models.backbones.timm_grid import GridExtractor
from xmodal.registry import MODELS
from xmodal.structures import Regions


@MODELS.register_module()
class GridEnsemble(nn.Module):
    """Each cell has the features of several image models, one after the other.

    Models of one family that were trained apart see different things: two small ones together may
    be worth more than a larger one.

    Args:
        image_size: height and width of the images, in pixels.
        members: arguments of each :class:`GridExtractor`, without ``image_size``.

    Attributes:
        feature_dims: F, the sum of the members' widths.

    Raises:
        ValueError: when the members have different numbers of cells.
    """

    def __init__(self, image_size: int, members: Sequence[dict]) -> None:
        super().__init__()
        self.image_size = image_size
        self.members = nn.ModuleList(
            GridExtractor(image_size=image_size, **member) for member in members
        )
        self.feature_dims = sum(member.feature_dims for member in self.members)
        blank = torch.zeros(3, image_size, image_size, dtype=torch.uint8)
        cells = [len(member.extract([blank], [''])[0].features) for member in self.members]
        if len(set(cells)) > 1:
            found = ', '.join(
                f'{count} of {member.arch}'
                for count, member in zip(cells, self.members, strict=True)
            )
            raise ValueError(
                f'extractor.members have grids of different sizes at image_size={image_size}: '
                f'{found}. Choose models, or a stage of them, with one stride'
            )

    def extract(self, images: Sequence[Tensor], image_ids: Sequence[str]) -> list[Regions]:
        """The regions of each image, uint8 (3, H, W) of ``image_size``: features (M, F)."""
        of_members = [member.extract(images, image_ids) for member in self.members]
        return [
            found[0]._replace(features=torch.cat([regions.features for regions in found], -1))
            for found in zip(*of_members, strict=True)
        ]
