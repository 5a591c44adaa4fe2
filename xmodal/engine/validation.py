"""What is wrong with the images of a validation, found before the training begins."""

import logging
from collections.abc import Iterable, Iterator

from mmengine.dist import all_gather_object, get_rank, get_world_size
from mmengine.logging import print_log
from torch.utils.data import Dataset

from xmodal.datasets.base import SampleDataset, evenly_spaced
from xmodal.datasets.transforms import BrokenImageError, ForEachImage, LoadImage

MAX_READ = 1000  # images, which takes a few seconds


def check_validation(train: Dataset, validated: Iterable[Dataset]) -> None:
    """Reads images of a validation, and warns of those that are in the training set, too.

    Args:
        train: the training set.
        validated: the data sets of the validation.

    Raises:
        BrokenImageError: when an image is broken. Of more than a thousand some are read.
    """
    readers: dict[str, LoadImage | None] = {}
    for dataset in validated:
        for part in _parts(dataset):
            readers |= dict.fromkeys(part.image_paths(), _reader(part))
    _require_readable({path: reader for path, reader in readers.items() if reader})
    trained = _parts(train) if readers else ()
    shared = {path for part in trained for path in part.image_paths() if path in readers}
    if shared:
        print_log(
            f'{len(shared)} of {len(readers)} images of the validation are in the training set, '
            f'too, for instance {min(shared)}: figures of the validation are too good. Remove them '
            'from one of the two annotation files',
            'current',
            logging.WARNING,
        )


def _parts(dataset: Dataset) -> Iterator[SampleDataset]:
    """The data sets that a data set is made of; none where it is of another kind."""
    for part in getattr(dataset, 'datasets', [dataset]):
        if isinstance(part, SampleDataset):
            yield part


def _reader(dataset: SampleDataset) -> LoadImage | None:
    """What reads the files of a data set; None where it reads none, or replaces broken ones."""
    transforms = list(dataset.pipeline.transforms) if dataset.test_mode else []
    for several in [x for x in transforms if isinstance(x, ForEachImage)]:
        transforms += several.pipeline.transforms
    return next((x for x in transforms if type(x) is LoadImage), None)


def _require_readable(readers: dict[str, LoadImage]) -> None:
    """Reads images, evenly spaced if there are many; each rank has its share of them.

    Raises:
        BrokenImageError: on all ranks; says how many are broken, and names one.
    """
    paths = evenly_spaced(list(readers), MAX_READ)
    found = []
    for path in paths[get_rank() :: get_world_size()]:
        try:
            readers[path].transform({'img_path': path})
        except BrokenImageError as error:
            found.append(str(error))
    broken = [error for share in all_gather_object(found) for error in share]
    if broken:
        raise BrokenImageError(
            f'{len(broken)} of {len(paths)} images of the validation that were read are broken: '
            f'repair them, or remove them from the annotation file. The first: {broken[0]}'
        )
