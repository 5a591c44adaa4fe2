"""Readers of image-caption datasets: ALBEF's, Karpathy's and COCO's formats."""

import random
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from xmodal.arguments import is_plain
from xmodal.datasets.base import ImageFolder, SampleDataset, find_files
from xmodal.datasets.coco import image_names, known_image
from xmodal.datasets.index import Entry, identify, open_index
from xmodal.datasets.json_stream import stream_objects
from xmodal.datasets.text import clean_caption
from xmodal.fields import read_object
from xmodal.files import read_explained
from xmodal.registry import DATASETS


class CaptionDataset(SampleDataset):
    """Images with captions; a subclass implements ``read_entries``.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.
        pipeline: transforms, from ``img_path`` and ``text`` to ``inputs`` and ``data_samples``.
        captions: 'sample': an epoch shows every image once, with one of its captions at random;
            'each': it shows every caption once.
        test_mode: whether a sample is an image with all its captions, and nothing is random.
        max_words: captions are cleaned and truncated after so many words; None leaves them
            unchanged.
        seed: seed of all random choices; None for that of the run.

    Raises:
        FileNotFoundError: when an annotation file does not exist, or none of the images; in test
            mode when one image does not exist.
        ValueError: when the annotation file has another layout; in test mode when an image has two
            ids, or is in two files.
    """

    #: The layout of an annotation file, for error messages; set by subclasses.
    layout = 'a file that its read_entries can read'

    def __init__(
        self,
        ann_file: str | list[str],
        data_root: str = '',
        data_prefix: dict[str, str] | None = None,
        pipeline: list[dict | Callable] = (),
        captions: str = 'sample',
        test_mode: bool = False,
        max_words: int | None = 30,
        seed: int | None = None,
    ) -> None:
        if captions not in ('sample', 'each'):
            raise ValueError(f"dataset.captions='{captions}', expected 'sample' or 'each'")
        # What a reader has set by now, for its read_entries.
        own = {name: value for name, value in vars(self).items() if is_plain(value)}
        super().__init__(pipeline, test_mode, seed)
        self.image_root = ImageFolder(data_root, data_prefix)
        self.by_caption = captions == 'each' and not test_mode
        self.max_words = max_words
        files = find_files(self, ann_file, data_root)
        options = {
            'reader': identify(type(self), CaptionDataset),
            'max_words': max_words,
            'by_image': test_mode,
            **own,
            **self.index_options(),
        }
        self.index = open_index(files, options, self._read_file)
        if test_mode:
            self._require_each_image_once(files)
        names = self.items_to_check(self.index.images)
        self.check_images(names, files[0], self.image_root)

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """Yields the images of an annotation file with their captions."""
        raise NotImplementedError

    def index_options(self) -> dict:
        """Options that change the index, in addition to the files and the reader's own values."""
        return {}

    def image_paths(self) -> Iterable[str]:
        """The images of the index."""
        return self.image_root.paths(self.index.images)

    def __len__(self) -> int:
        return len(self.index.texts if self.by_caption else self.index.images)

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """An image with one caption, in test mode with all its captions."""
        if self.by_caption:
            image, text = self.index.image_of(index), self.index.texts[index]
        else:
            image, captions = index, self.index.captions(index)
            text = captions if self.test_mode else rng.choice(captions)
        return {
            'img_path': str(self.image_root / self.index.images[image]),
            'image_id': int(self.index.image_ids[image]),
            'text': text,
            'sample_index': index,
        }

    def _read_file(self, file: Path) -> Iterable[Entry]:
        """The entries of the index: those of the file, cleaned, in test mode one per image."""

        def read() -> Iterable[Entry]:
            return map(self._clean, self.read_entries(file))

        entries = read_explained(read, file, self.layout, type(self).__name__, 'images')
        return _merge_by_image(entries, file) if self.test_mode else entries

    def _require_each_image_once(self, files: list[Path]) -> None:
        """Refuses an image of two files: its equal would rank before it in a test.

        Images of one file are merged, and those of several have an id for each path.
        """
        ids, counts = np.unique(self.index.image_ids, return_counts=True)
        if repeated := ids[counts > 1].tolist():
            row = int(np.flatnonzero(self.index.image_ids == repeated[0])[0])
            raise ValueError(
                f'{", ".join(map(str, files))}: {len(repeated)} images are in two of them, for '
                f'instance {self.index.images[row]}, and a test has each image once: put the '
                'captions of an image into one file'
            )

    def _clean(self, entry: Entry) -> Entry:
        if not isinstance(entry, Entry):
            raise ValueError(
                f'read_entries yields {type(entry).__name__}, expected Entry(image, captions, '
                'image_id) of xmodal.datasets'
            )
        entry.check()
        captions = [clean_caption(text, self.max_words) for text in entry.captions]
        return entry._replace(captions=captions)


@DATASETS.register_module()
class AlbefJsonDataset(CaptionDataset):
    """ALBEF's format: a list of ``{image, caption, image_id?}``, the caption a string or a list."""

    layout = '[{"image": "path.jpg", "caption": "text" or ["text", …], "image_id": optional}, …]'

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """One entry per item of the list."""
        for item in stream_objects(file):
            captions = item.texts('caption', or_one=True)
            yield Entry(item.name('image'), captions, _as_int(item.id('image_id', None)))


@DATASETS.register_module()
class KarpathyDataset(CaptionDataset):
    """Karpathy's splits: ``dataset_coco.json``, ``dataset_flickr30k.json`` and similar files.

    Args:
        ann_file: the file.
        split: 'train', 'restval', 'val', 'test', or a list of them.
        **kwargs: see :class:`CaptionDataset`.
    """

    layout = '{"images": [{"filename", "filepath"?, "split", "sentences": [{"raw"}], …}, …]}'

    def __init__(self, ann_file: str, split: str | list[str], **kwargs) -> None:
        self.splits = [split] if isinstance(split, str) else list(split)
        super().__init__(ann_file, **kwargs)

    def index_options(self) -> dict:
        """The selected splits."""
        return {'splits': self.splits}

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """One entry per image of the splits."""
        return read_karpathy(file, self.splits)


@DATASETS.register_module()
class CocoCaptionDataset(CaptionDataset):
    """COCO's caption annotations: ``captions_train2017.json`` and similar files."""

    layout = '{"images": [{"id", "file_name"}, …], "annotations": [{"image_id", "caption"}, …]}'

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """One entry per image, in the order of the file."""
        content = read_object(file)
        names = image_names(content.objects('images'))
        captions: dict[int, list[str]] = {image_id: [] for image_id in names}
        for annotation in content.objects('annotations'):
            captions[known_image(annotation, names)].append(annotation.text('caption'))
        for image_id, name in _with_progress(names.items(), file):
            yield Entry(name, captions[image_id], image_id)


def read_karpathy(file: Path, splits: list[str]) -> Iterable[Entry]:
    """Yields the images of some splits of a file in Karpathy's layout.

    Raises:
        ValueError: when the file has no such split.
    """
    images = list(read_object(file).objects('images'))
    known = {image.text('split') for image in images}
    if unknown := set(splits) - known:
        raise ValueError(f'there is no split {sorted(unknown)}, expected splits of {sorted(known)}')
    for image in _with_progress(images, file):
        if image.text('split') in splits:
            path = Path(image.text('filepath', ''), image.name('filename'))
            captions = [sentence.text('raw') for sentence in image.objects('sentences')]
            image_id = image.id('cocoid', None)
            image_id = image.id('imgid', None) if image_id is None else image_id
            yield Entry(str(path), captions, _as_int(image_id))


def _merge_by_image(entries: Iterable[Entry], file: Path) -> Iterable[Entry]:
    """Merges the entries of an image, in the order in which the images first appear.

    Raises:
        ValueError: when an image has two ids; the index reports one id for two images.
    """
    merged: dict[str, Entry] = {}
    for entry in entries:
        first = merged.setdefault(entry.image, entry._replace(captions=[]))
        if first.image_id != entry.image_id:
            raise ValueError(
                f'{file}: {entry.image} has the image_id {first.image_id} and {entry.image_id}. '
                'Give an image one id, or leave out all ids where they are optional'
            )
        first.captions.extend(entry.captions)
    return merged.values()


def _as_int(image_id: int | str | None) -> int | None:
    """The id as an integer; None for other ids, for which the index numbers distinct images."""
    if isinstance(image_id, int):
        return image_id
    is_number = str(image_id).isdecimal() and len(image_id) < 19  # 64 bits
    return int(image_id) if is_number and str(int(image_id)) == image_id else None


def _with_progress(images: Collection, file: Path) -> Iterable:
    """The images with a progress bar when reading takes more than a second."""
    return tqdm(images, f'indexing {file.name}', unit=' images', leave=False, delay=1)
