"""Single objects of images, for pre-training an image encoder."""

from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.boxes import read_box
from xmodal.datasets.coco import category_names, image_names, known_category, known_image
from xmodal.datasets.records import RecordDataset
from xmodal.fields import read_object
from xmodal.registry import DATASETS


@DATASETS.register_module()
class InstanceDataset(RecordDataset):
    """One sample per object: its image, its box and its tags (category and attributes).

    Reads COCO's instances; those of the embedded world also have ``attributes``, a list of names.

    Args:
        ann_file: ``instances_*.json``.
        tags: all tags, in the order of the classifier's outputs; any other tag is an error.
        **kwargs: see :class:`RecordDataset`.
    """

    layout = (
        '{"images": [{"id", "file_name"}, …], "categories": [{"id", "name"}, …], "annotations": '
        '[{"image_id", "category_id", "bbox", "attributes"?}, …]}'
    )

    def __init__(self, ann_file: str | list[str], tags: list[str], **kwargs) -> None:
        self.tag_ids = {tag: index for index, tag in enumerate(tags)}
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per object, with its box (x, y, width, height) and the ids of its tags."""
        content = read_object(file)
        images = image_names(content.objects('images'))
        names = category_names(content.objects('categories'))
        for index, annotation in enumerate(content.objects('annotations')):
            name = names[known_category(annotation, names)]
            tags = [name, *annotation.texts('attributes', [])]
            if unknown := set(tags) - set(self.tag_ids):
                raise ValueError(f'tags {sorted(unknown)} are not in dataset.tags')
            image_id = known_image(annotation, images)
            yield {
                'image': images[image_id],
                'image_id': image_id,
                'text': '',
                'box': read_box(annotation.items('bbox'), f'annotation {index}'),
                'tags': [self.tag_ids[tag] for tag in tags],
            }
