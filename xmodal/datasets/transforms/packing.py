"""Building a pipeline of transforms, and packing its results into a sample."""

from collections.abc import Callable, Iterable, Sequence

from mmcv.transforms import BaseTransform, Compose

from xmodal.errors import ConfigError
from xmodal.registry import TRANSFORMS
from xmodal.structures import DataSample


def build_pipeline(transforms: Iterable[dict | Callable]) -> Compose:
    """Composes transforms, each a config of ``TRANSFORMS`` or any callable."""
    built = [TRANSFORMS.build(t) if isinstance(t, dict) else t for t in transforms]
    return Compose(built)


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
            ConfigError: when a sample lacks one of the fields.
        """
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
        return {'inputs': results[self.source], 'data_samples': sample}


@TRANSFORMS.register_module()
class PackRegionText(PackImageText):
    """The last transform of a pipeline of regions, as :class:`PackImageText` for pixels."""

    source = 'regions'
