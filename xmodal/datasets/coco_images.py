"""Images of Visual Genome that are COCO's: half of them, so also of GQA's.

An image of a test can so be in a training set under another name.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from xmodal.fields import as_objects
from xmodal.files import explain_errors, read_json

_IMAGES = '[{"image_id", "coco_id": number or null, …}, …]'
_QUESTIONS = '{"questions": [{"image_id", …}, …]}, or LXMERT\'s [{"img_id": "COCO_…_1", …}, …]'


def images_asked_about(image_data: Path | None, questions: Sequence[Path]) -> frozenset[str]:
    """Ids in Visual Genome of the COCO images that questions of VQA are about.

    Args:
        image_data: Visual Genome's ``image_data.json``.
        questions: files of VQA's questions, as published or of LXMERT; none for no images.

    Raises:
        ValueError: for questions without ``image_data``.
    """
    if not questions:
        return frozenset()
    if image_data is None:
        raise ValueError("dataset.exclude needs dataset.image_data, which knows COCO's ids")
    asked = {image for file in questions for image in _coco_ids(file)}
    with explain_errors(image_data, _IMAGES):
        return frozenset(
            str(image.integer('image_id'))
            for image in as_objects(read_json(image_data))
            if image.integer('coco_id', None) in asked
        )


def _coco_ids(file: Path) -> Iterable[int]:
    with explain_errors(file, _QUESTIONS):
        content = read_json(file)
        if isinstance(content, dict):
            return [item.integer('image_id') for item in as_objects(content['questions'])]
        return [int(item.name('img_id').rsplit('_', 1)[-1]) for item in as_objects(content)]
