"""Loading region features in place of pixels, or computing them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import torch
from mmcv.transforms import BaseTransform
from torch import nn

from xmodal.datasets.image_file import BrokenImageError, image_stem
from xmodal.datasets.region_store import RegionStore, open_stores
from xmodal.datasets.transforms.geometry import ResizeImage
from xmodal.datasets.transforms.loading import LoadImage
from xmodal.registry import MODELS, TRANSFORMS
from xmodal.structures import ObjectLabels, Regions


@TRANSFORMS.register_module()
class LoadRegions(BaseTransform):
    """Adds ``regions`` for ``img_path``, or for each of ``img_paths``.

    The name of the file without its suffix is the image's id in the store; the file itself is not
    needed. So the reader of any benchmark's files can be used with region features as well.

    Args:
        store: folder, or folders, of :class:`xmodal.datasets.region_store.RegionStore`.
        extractor: config of what computed the store, such as
            :class:`xmodal.models.GridExtractor`; it computes the regions of an image file that no
            store has. None: such an image counts as broken.
        views: K, for training: the regions of the image or of one of its K - 1 random crops, drawn
            anew each time. The store then has them (``extract_regions.py --views K``).

    Raises:
        ValueError: when a store was computed by another extractor, has fewer views, or has an id of
            another store.
    """

    def __init__(
        self, store: str | Sequence[str], extractor: dict | None = None, views: int = 1
    ) -> None:
        self.views = views
        self.stores = open_stores(store)
        self.extractor_config = None if extractor is None else dict(extractor)
        if extractor is not None:
            for opened in self.stores:
                _require_extractor(opened, self.extractor_config)
        for opened in self.stores:
            if opened.views < views:
                raise ValueError(
                    f'LoadRegions.views={views}, and {opened.folder} has {opened.views} of each '
                    f'image: make it by extract_regions.py --views {views}, or lower views'
                )

    def has(self, path: str | Path) -> bool:
        """Whether there are regions of an image, or a file to compute them from."""
        return self.has_stored(path) or (self.extractor_config is not None and Path(path).is_file())

    def has_stored(self, path: str | Path) -> bool:
        """Whether a store has the regions of an image."""
        return any(image_stem(path) in store for store in self.stores)

    def transform(self, results: dict) -> dict:
        """Adds ``regions``: those of the image, or a list for a sample of several images.

        Raises:
            BrokenImageError: when no store has an image.
        """
        if 'img_paths' in results:
            paths = results['img_paths']
            contents = results.get('imgs_bytes') or [None] * len(paths)
            results['regions'] = [self._load(*pair) for pair in zip(paths, contents, strict=True)]
        else:
            results['regions'] = self._load(results['img_path'], results.get('img_bytes'))
        return results

    def _load(self, path: str, content: bytes | None) -> Regions:
        view = int(torch.randint(self.views, ())) if self.views > 1 else 0
        image_id = view_id(image_stem(path), view)
        for store in self.stores:
            with suppress(KeyError):
                return store[image_id]
        if self.extractor_config is None:
            folders = ', '.join(str(store.folder) for store in self.stores)
            raise BrokenImageError(f'{image_id}: no regions of this image in {folders}')
        return self._extract(path, content)

    def _extract(self, path: str, content: bytes | None) -> Regions:
        results = LoadImage()({'img_path': path, 'img_bytes': content})
        if self.extractor.image_size is not None:
            results = ResizeImage(self.extractor.image_size)(results)
        (regions,) = self.extractor.extract([results['img']], [image_stem(path)])
        return regions

    @cached_property
    def extractor(self) -> nn.Module:
        """The extractor, built when the first image needs it: most data sets need none."""
        return MODELS.build(self.extractor_config)


@TRANSFORMS.register_module()
class SplitRegions(BaseTransform):
    """Splits the regions of a sample's only image by the windows of :class:`SplitImage`, K lists.

    A region belongs to the window that holds its centre, and its box becomes a share of the window.
    Regions between the windows are left out.

    Args:
        parts: K.
        share: width of a window as a share of the image's width.
        only: index of the one window whose regions stay, not as a list; None for all windows.
    """

    def __init__(self, parts: int, share: float, only: int | None = None) -> None:
        self.starts = torch.linspace(0, 1 - share, parts)
        self.share, self.only = share, only

    def transform(self, results: dict) -> dict:
        """Changes ``regions``.

        Raises:
            ValueError: when a window has no region, or the regions have no boxes.
        """
        regions = results['regions']
        if isinstance(regions, list):  # of a sample with a list of images
            (regions,) = regions
        if regions.boxes is None:
            raise ValueError(
                f'{results["img_path"]}: its regions have no boxes, and SplitRegions puts each '
                'into the window that holds its centre: make a store with boxes'
            )
        centres = regions.boxes[:, [0, 2]].mean(1)
        windows = []
        for index, start in enumerate(self.starts):
            inside = (centres >= start) & (centres <= start + self.share)
            if not inside.any():
                raise ValueError(
                    f'{results["img_path"]}: window {index} of {len(self.starts)} has no region, '
                    'expected at least one: give each window a box of its own'
                )
            boxes = regions.boxes[inside]
            boxes[:, [0, 2]] = (boxes[:, [0, 2]] - start) / self.share
            labels = regions.labels and ObjectLabels(*(x[inside] for x in regions.labels))
            windows.append(Regions(regions.features[inside], inside[inside], boxes, labels))
        results['regions'] = windows if self.only is None else windows[self.only]
        return results


def view_id(image_id: str, view: int) -> str:
    """The id of a view in a store; view 0 is the image itself."""
    return f'{image_id}#{view}' if view else image_id


def is_crop(store: RegionStore, image_id: str) -> bool:
    """Whether an id of a store is that of a view which is a crop of another image."""
    original, _, view = image_id.rpartition('#')
    return store.views > 1 and view.isdecimal() and original in store


def _require_extractor(store: RegionStore, expected: dict) -> None:
    """Refuses a store that another extractor computed."""
    found = store.sources.get('extractor') if isinstance(store.sources, dict) else None
    if found != json.loads(json.dumps(expected)):  # a store has lists in the place of tuples
        raise ValueError(
            f'{store.folder} was computed by {found or "an unknown extractor"}, and the extractor '
            f'in the config is {expected}: compute a store for it (`xmodal extract-regions CONFIG '
            'IMAGES`), or name the other one'
        )
