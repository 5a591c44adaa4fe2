"""What a detector finds in one image."""

from typing import NamedTuple

import numpy as np

from xmodal.datasets.boxes import find_invalid_box
from xmodal.structures import ObjectLabels

_MARGIN = 1e-5  # how far a box may leave the image, as a share of it: rounding, as LXMERT


class DetectedImage(NamedTuple):
    """A detector's output for one image with R regions.

    Attributes:
        image_id: id of the image, usually the stem of its file name.
        width, height: size of the image, in the unit of the boxes.
        features: (R, F).
        boxes: x1, y1, x2, y2 in pixels, (R, 4); None when unknown.
        labels: :class:`ObjectLabels` of arrays (R,); None when unknown.
    """

    image_id: str
    width: int
    height: int
    features: np.ndarray
    boxes: np.ndarray | None = None
    labels: ObjectLabels | None = None

    def check(self) -> None:
        """Checks that all fields match.

        Raises:
            ValueError: says what is wrong.
        """
        num_regions = len(self.features)
        if not self.image_id or not num_regions or self.width < 1 or self.height < 1:
            raise ValueError(
                f'image {self.image_id!r} of {self.width} × {self.height} has {num_regions} '
                'regions: expected an id, a size and at least one region'
            )
        arrays = {'features': self.features, 'boxes': self.boxes}
        arrays |= {} if self.labels is None else self.labels._asdict()
        for name, array in arrays.items():
            if array is None:
                continue
            if len(array) != num_regions:
                raise ValueError(f'{len(array)} {name} for {num_regions} regions')
            if not np.isfinite(array).all():
                raise ValueError(f'{name} of image {self.image_id} contain NaN or infinity')
        if self.boxes is not None:
            self._check_boxes()
        if self.labels is not None:
            for name, array in self.labels._asdict().items():
                low, high = array.min(), array.max()
                if low < 0 or (name.endswith('confidences') and high > 1 + _MARGIN):
                    raise ValueError(
                        f'{name} of image {self.image_id} range from {low} to {high}, expected '
                        'values from 0, and confidences up to 1'
                    )

    def _check_boxes(self) -> None:
        shares = self.boxes / np.tile((self.width, self.height), 2)
        if (invalid := find_invalid_box(shares, _MARGIN)) is not None:
            raise ValueError(
                f'box {invalid} of image {self.image_id} is {self.boxes[invalid].tolist()}, '
                f'expected x1, y1, x2, y2 in an image of {self.width} × {self.height}'
            )
