"""Loading region features in place of pixels."""

from collections.abc import Sequence
from pathlib import Path

from mmcv.transforms import BaseTransform

from xmodal.datasets.image_file import BrokenImageError
from xmodal.datasets.region_store import open_stores
from xmodal.registry import TRANSFORMS
from xmodal.structures import Regions


@TRANSFORMS.register_module()
class LoadRegions(BaseTransform):
    """Adds ``regions`` for ``img_path``, or for each of ``img_paths``.

    The stem of the file name is the image's id in the store; the image file itself is not needed.
    So the reader of any benchmark's files can be used with region features as well.

    Args:
        store: folder, or folders, of :class:`xmodal.datasets.region_store.RegionStore`.
    """

    def __init__(self, store: str | Sequence[str]) -> None:
        self.stores = open_stores(store)

    def has(self, path: str | Path) -> bool:
        """Whether there are regions of an image."""
        return any(Path(path).stem in store for store in self.stores)

    def transform(self, results: dict) -> dict:
        """Adds ``regions``: those of the image, or a list for a sample of several images.

        Raises:
            BrokenImageError: when no store has an image.
        """
        if 'img_paths' in results:
            results['regions'] = [self._load(path) for path in results['img_paths']]
        else:
            results['regions'] = self._load(results['img_path'])
        return results

    def _load(self, path: str) -> Regions:
        image_id = Path(path).stem
        for store in self.stores:
            if image_id in store:
                return store[image_id]
        folders = ', '.join(str(store.folder) for store in self.stores)
        raise BrokenImageError(f'{image_id}: no regions of this image in {folders}')
