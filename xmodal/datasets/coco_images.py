"""Images of Visual Genome that are COCO's: half of them, so also of GQA's.

An image of a test can so be in a training set under another name.
"""

from pathlib import Path

from xmodal.datasets.base import find_files
from xmodal.datasets.questions import QuestionDataset
from xmodal.fields import Fields, as_objects
from xmodal.files import read_json, reads


class VisualGenomeImagesDataset(QuestionDataset):
    """Questions about images of Visual Genome, without those that a test asks about.

    Args:
        ann_file: file or files, below ``data_root``.
        image_data: Visual Genome's ``image_data.json``, below ``data_root``.
        exclude: VQA's questions, as published or of LXMERT, a file or files below ``data_root``:
            their images are left out, so that a test on them is one of unseen images.
        data_root: folder that paths are relative to.
        **kwargs: see :class:`QuestionDataset`.

    Raises:
        ValueError: for ``exclude`` without ``image_data``.
    """

    def __init__(
        self,
        ann_file: str | list[str],
        image_data: str | None = None,
        exclude: str | list[str] = (),
        data_root: str = '',
        **kwargs,
    ) -> None:
        if exclude and not image_data:
            raise ValueError("dataset.exclude needs dataset.image_data, which knows COCO's ids")
        self.image_data = image_data and find_files(self, image_data, data_root)[0]
        self.exclude = find_files(self, exclude, data_root)
        super().__init__(ann_file, data_root=data_root, **kwargs)

    def read_tables(self) -> dict:
        """``excluded``: ids in Visual Genome, as texts."""
        if not self.exclude:
            return {'excluded': frozenset()}
        asked = set().union(*map(read_asked, self.exclude))
        coco_ids = read_coco_ids(self.image_data)
        return {'excluded': frozenset(str(n) for n, coco in coco_ids.items() if coco in asked)}


@reads('[{"image_id", "coco_id", …}, …]')
def read_coco_ids(file: Path) -> dict[int, int | None]:
    """The COCO id of each image of Visual Genome's ``image_data.json``; None for the others."""
    images = as_objects(read_json(file))
    return {image.integer('image_id'): image.integer('coco_id', None) for image in images}


@reads('{"questions": [{"image_id", …}, …]}, or LXMERT\'s [{"img_id": "COCO_…_1", …}, …]')
def read_asked(file: Path) -> set[int]:
    """The numbers of the images that questions are about, as published or of LXMERT."""
    content = read_json(file)
    if isinstance(content, dict):
        return {item.integer('image_id') for item in Fields(content).objects('questions')}
    return {int(item.name('img_id').rsplit('_', 1)[-1]) for item in as_objects(content)}
