"""Readers of image-caption sets, each in its own on-disk format."""

import random
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from tqdm import tqdm

from xmodal.datasets.base import SampleDataset, find_files, image_folder
from xmodal.datasets.coco import image_names
from xmodal.datasets.index import Entry, open_index
from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.text import clean_caption
from xmodal.files import explain_errors, read_json
from xmodal.registry import DATASETS


class CaptionDataset(SampleDataset):
    """Images with captions; a subclass says how its annotation file is read.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.
        pipeline: transforms, from ``img_path`` and ``text`` to ``inputs`` and ``data_samples``.
        captions: 'draw': an epoch shows every image once, with a caption drawn; 'each': it shows
            every caption once.
        test_mode: one sample an image with all its captions, nothing random.
        max_words: captions are cut after so many words.
        seed: of all random choices.

    Raises:
        FileNotFoundError: when an annotation file is not there, or no image, in test mode any.
        ValueError: when the annotation file is not of the format.
    """

    #: What the annotation file should look like; subclasses name their own in error messages.
    layout = ''

    def __init__(
        self,
        ann_file: str | list[str],
        data_root: str = '',
        data_prefix: dict[str, str] | None = None,
        pipeline: list[dict | Callable] = (),
        captions: str = 'draw',
        test_mode: bool = False,
        max_words: int = 30,
        seed: int = 0,
    ) -> None:
        if captions not in ('draw', 'each'):
            raise ValueError(f"dataset.captions='{captions}', expected 'draw' or 'each'")
        super().__init__(pipeline, test_mode, seed)
        self.image_root = image_folder(data_root, data_prefix)
        self.by_caption = captions == 'each' and not test_mode
        self.max_words = max_words
        files = find_files(self, ann_file, data_root)
        options = {
            'reader': type(self).__name__,
            'max_words': max_words,
            'by_image': test_mode,
            **self.index_options(),
        }
        self.index = open_index(files, options, self._indexed_entries)
        paths = [self.image_root / image for image in self.sampled(self.index.images)]
        self.check_images(paths, files[0])

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """Yields the images of an annotation file with their captions."""
        raise NotImplementedError

    def index_options(self) -> dict:
        """What changes the index, besides the files."""
        return {}

    def __len__(self) -> int:
        return len(self.index.texts if self.by_caption else self.index.images)

    def describe(self, index: int, chooser: random.Random) -> dict:
        """An image with a caption, in test mode with all of them."""
        image = self.index.owner(index) if self.by_caption else index
        if self.by_caption:
            text = self.index.texts[index]
        else:
            text = self.index.captions(image)
            text = text if self.test_mode else chooser.choice(text)
        return {
            'img_path': str(self.image_root / self.index.images[image]),
            'image_id': int(self.index.image_ids[image]),
            'text': text,
            'sample_index': index,
        }

    def _indexed_entries(self, file: Path) -> Iterable[Entry]:
        """What the index holds: as in the file, in test mode one entry an image."""
        entries = self._checked_entries(file)
        return _by_image(entries) if self.test_mode else entries

    def _checked_entries(self, file: Path) -> Iterable[Entry]:
        """``read_entries`` with clean captions, and errors that name file, place and format."""
        done = 0
        reader = type(self).__name__
        with explain_errors(file, self.layout, lambda: f' by {reader} after {done} images'):
            for entry in self.read_entries(file):
                entry.check()
                captions = [clean_caption(text, self.max_words) for text in entry.captions]
                yield entry._replace(captions=captions)
                done += 1


@DATASETS.register_module()
class AlbefJsonDataset(CaptionDataset):
    """ALBEF's format: a list of ``{image, caption, image_id?}``, the caption a string or a list."""

    layout = '[{"image": "path.jpg", "caption": "text" or ["text", …], "image_id": optional}, …]'

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """One entry an item of the list."""
        for item in stream_json_list(file):
            captions = item['caption']
            captions = [captions] if isinstance(captions, str) else captions
            yield Entry(item['image'], captions, _as_number(item.get('image_id')))


@DATASETS.register_module()
class KarpathyDataset(CaptionDataset):
    """Karpathy's splits: ``dataset_coco.json``, ``dataset_flickr30k.json`` and their like.

    Args:
        ann_file: the file.
        split: 'train', 'restval', 'val', 'test', or several.
        **others: see :class:`CaptionDataset`.
    """

    layout = '{"images": [{"filename", "filepath"?, "split", "sentences": [{"raw"}], …}, …]}'

    def __init__(self, ann_file: str, split: str | list[str], **others) -> None:
        self.splits = [split] if isinstance(split, str) else list(split)
        super().__init__(ann_file, **others)

    def index_options(self) -> dict:
        """The splits kept."""
        return {'splits': self.splits}

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """One entry an image of the splits."""
        return read_karpathy(file, self.splits)


@DATASETS.register_module()
class CocoCaptionDataset(CaptionDataset):
    """COCO's caption annotations: ``captions_train2017.json`` and its like."""

    layout = '{"images": [{"id", "file_name"}, …], "annotations": [{"image_id", "caption"}, …]}'

    def read_entries(self, file: Path) -> Iterable[Entry]:
        """One entry an image, in the file's order."""
        content = read_json(file)
        names = image_names(content['images'])
        captions: dict[int, list[str]] = {number: [] for number in names}
        for annotation in content['annotations']:
            captions[annotation['image_id']].append(annotation['caption'])
        for number, name in _shown(names.items(), file):
            yield Entry(name, captions[number], _as_number(number))


def read_karpathy(file: Path, splits: list[str]) -> Iterable[Entry]:
    """Yields the images of some splits of a file in Karpathy's layout.

    Raises:
        ValueError: when the file has no such split.
    """
    images = read_json(file)['images']
    found = {image['split'] for image in images}
    if missing := set(splits) - found:
        raise ValueError(f'there is no split {sorted(missing)}, split must be of {sorted(found)}')
    for image in _shown(images, file):
        if image['split'] in splits:
            path = Path(image.get('filepath', ''), image['filename'])
            captions = [sentence['raw'] for sentence in image['sentences']]
            number = image.get('cocoid', image.get('imgid'))
            yield Entry(str(path), captions, _as_number(number))


def _by_image(entries: Iterable[Entry]) -> Iterable[Entry]:
    """Entries of the same image as one, in the order of their first."""
    found: dict[tuple[str, int | None], Entry] = {}
    for entry in entries:
        key = entry.image, entry.image_id  # one id for two images is an error of the index
        found.setdefault(key, entry._replace(captions=[])).captions.extend(entry.captions)
    return found.values()


def _as_number(image_id: int | str | None) -> int | None:
    """Ids that are no numbers are left to the index, which numbers distinct images."""
    return int(image_id) if isinstance(image_id, int) or str(image_id).isdigit() else None


def _shown(images: Collection, file: Path) -> Iterable:
    """A progress bar, where it takes more than a moment."""
    return tqdm(images, f'indexing {file.name}', unit=' images', leave=False, delay=1)
