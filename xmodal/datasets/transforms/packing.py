"""Building a pipeline of transforms, and packing its results into a sample."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral

import torch
from mmcv.transforms import BaseTransform, Compose
from torch import Tensor

from xmodal.errors import ConfigError, shortened
from xmodal.registry import TRANSFORMS
from xmodal.structures import DataSample

# What a data set gives of each sample, and whether it is a number.
_GIVEN = {'img_path': False, 'text': False, 'image_id': True, 'sample_index': True}


def build_pipeline(transforms: Iterable[dict | Callable]) -> Compose:
    """Composes transforms, each a config of ``TRANSFORMS`` or any callable."""
    built = [TRANSFORMS.build(t) if isinstance(t, dict) else t for t in transforms]
    return _Pipeline(built)


class _Pipeline(Compose):
    """mmcv's, in which a transform that returns None drops the sample: here it forgot to return."""

    def transform(self, results: dict) -> dict:
        for transform in self.transforms:
            results = transform(results)
            if results is None:
                name = getattr(transform, '__name__', type(transform).__name__)
                raise ConfigError(f'{name} of a pipeline returns None, expected the results')
        return results


@TRANSFORMS.register_module()
class PackImageText(BaseTransform):
    """The last transform of a pipeline: packs ``inputs`` and ``data_samples``.

    Args:
        fields: further results that the data sample holds, ``('label',)``.
    """

    source = 'img'  # the result that becomes ``inputs``

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self.fields = ('image_id', 'text', *fields)

    def transform(self, results: dict) -> dict:
        """``dict(inputs=uint8 (3, H, W), data_samples=DataSample)``.

        Raises:
            ConfigError: when a sample lacks what all of them have, or one of the fields, or ``img``
                is no uint8 tensor.
        """
        _require_given(results)
        sample = DataSample(
            metainfo={
                'image_path': results['img_path'],
                'sample_index': results['sample_index'],
                'skipped': results.get('skipped', []),
            }
        )
        for field in self.fields:
            if field not in results:
                raise ConfigError(
                    f"{type(self).__name__}.fields names '{field}', which the samples of the data "
                    f'set do not have; they have {sorted(results)}'
                )
            sample.set_field(results[field], field)
        if self.source == 'img':
            _require_pixels(results['img'])
        return {'inputs': results[self.source], 'data_samples': sample}


def _require_given(results: dict) -> None:
    """Refuses a sample that lacks what a data set gives, or has a text for a number."""
    for name, is_number in _GIVEN.items():
        if name not in results or (is_number and not isinstance(results[name], Integral)):
            found = f'{name}={shortened(results[name])}' if name in results else f"no '{name}'"
            raise ConfigError(
                f'a sample has {found}: get_data_info of a data set gives img_path, text, and the '
                'whole numbers image_id and sample_index, which is the index that it gets'
            )


def _require_pixels(image: object) -> None:
    is_uint8 = isinstance(image, Tensor) and image.dtype == torch.uint8
    if not is_uint8 or image.dim() < 3 or image.shape[-3] != 3:
        kind = f'{type(image).__name__} {getattr(image, "dtype", "")}'.strip()
        raise ConfigError(
            f'PackImageText: img is a {kind} of shape {tuple(getattr(image, "shape", ()))}, '
            'expected a uint8 tensor (…, 3, H, W), RGB, as LoadImage gives it. Image transforms of '
            'mmcv are for arrays (H, W, 3): a transform of your own has to convert them'
        )


@TRANSFORMS.register_module()
class PackRegionText(PackImageText):
    """The last transform of a pipeline of regions, as :class:`PackImageText` for pixels."""

    source = 'regions'
