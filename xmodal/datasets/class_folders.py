"""Images in one folder per class, as in ImageNet."""

import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from mmengine.logging import print_log

from xmodal.datasets.base import SampleDataset
from xmodal.datasets.image_file import IMAGE_SUFFIXES
from xmodal.fields import Fields
from xmodal.files import explain_errors, read_json
from xmodal.packaged import find_file
from xmodal.registry import DATASETS


@DATASETS.register_module()
class ClassFolderDataset(SampleDataset):
    """One sample per image; its class is its folder. Classes are sorted by folder name.

    Names that begin with '.' or '__' are skipped: programs create them, ``.ipynb_checkpoints``.

    Args:
        data_root: folder that contains the class folders.
        class_names: a JSON file, ``{"folder": "name", …}`` or a list of names in the order of the
            sorted folders (``n01440764`` … of ImageNet); None to use the folder names, in
            which ``_`` stands for a space.
        pipeline: transforms, from ``img_path`` to ``inputs`` and ``data_samples`` with ``label``.
        test_mode: whether nothing is random and a broken image is an error.
        seed: seed of all random choices; None for that of the run.

    Attributes:
        class_names: the name of each class.

    Raises:
        FileNotFoundError: when there is no folder, one without images, or no file of names.
        ValueError: when folders and names do not match.
    """

    def __init__(
        self,
        data_root: str,
        class_names: str | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(pipeline, test_mode, seed)
        paths = Path(data_root).glob('*')
        folders = sorted(path for path in paths if _is_visible(path.name) and path.is_dir())
        if not folders:
            raise FileNotFoundError(
                f"ClassFolderDataset: data_root='{data_root}' (relative to {Path.cwd()}) has no "
                'class folders with images'
            )
        self.images = [
            (path, label) for label, folder in enumerate(folders) for path in _images_in(folder)
        ]
        folder_names = [folder.name for folder in folders]
        self.class_names = (
            read_class_names(class_names, folder_names)
            if class_names
            else [name.replace('_', ' ') for name in folder_names]
        )

    def image_paths(self) -> Iterable[str]:
        """The images of all classes."""
        return (path for path, _ in self.images)

    def __len__(self) -> int:
        return len(self.images)

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """An image with the index of its class."""
        path, label = self.images[index]
        return {
            'img_path': path,
            'image_id': index,
            'text': '',
            'label': label,
            'sample_index': index,
        }


def _images_in(folder: Path) -> list[str]:
    """The images of a class, which needs some: its name competes for those of the others."""
    images = sorted(entry.path for entry in os.scandir(folder) if _is_image(entry))
    if not images:
        raise FileNotFoundError(
            f'{folder}: the folder of a class has no images ({", ".join(IMAGE_SUFFIXES)}): add '
            'some, or move the folder away'
        )
    return images


def _is_image(entry: os.DirEntry) -> bool:
    return (
        _is_visible(entry.name)
        and Path(entry.name).suffix.lower() in IMAGE_SUFFIXES
        and entry.is_file()
    )


def _is_visible(name: str) -> bool:
    """Whether it is not made by a program, as ``.ipynb_checkpoints``, ``__MACOSX``, ``._a.jpg``."""
    return not name.startswith(('.', '__'))


def read_class_names(file: str, folders: list[str]) -> list[str]:
    """The class names of folders, in their order.

    Raises:
        FileNotFoundError: when the file does not exist.
        ValueError: when a folder is missing, or a list has another length than the folders.
    """
    file = find_file(file)
    if not file.is_file():
        raise FileNotFoundError(
            f'dataset.class_names={file} does not exist (relative to {Path.cwd()}): a JSON file, '
            '{"folder": "name", …} or a list of names in the order of the sorted folders'
        )
    content = read_json(file)
    if isinstance(content, list):
        if len(content) != len(folders):
            raise ValueError(
                f'{file} lists {len(content)} names, and there are {len(folders)} folders, '
                f"'{folders[0]}' to '{folders[-1]}': expected one name per folder, in this order"
            )
        content = dict(zip(folders, content, strict=True))
    with explain_errors(file, '{"folder": "name", …} or a list of names'):
        names = Fields(content)
        if missing := [folder for folder in folders if folder not in names]:
            raise ValueError(
                f'it has no name for {len(missing)} of {len(folders)} folders: '
                f'{", ".join(missing[:5])}'
            )
        found = [names.name(folder) for folder in folders]
    if repeated := [name for name, count in Counter(found).items() if count > 1]:
        print_log(
            f"{file}: {len(repeated)} names have several folders, for instance '{repeated[0]}': no "
            'image of these folders can be right. Give each folder a name of its own',
            'current',
            logging.WARNING,
        )
    return found
