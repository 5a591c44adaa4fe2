"""The objects of scenes as COCO lists instances; categories are shapes."""

from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.scene import SHAPES

CATEGORIES = [
    {'id': category_id, 'name': name, 'supercategory': 'shape'}
    for category_id, name in enumerate(SHAPES, start=1)
]


def image_entry(record: Record, image: int) -> dict:
    """An entry of ``images``."""
    file_name = f'images/{record.image}'
    return {'id': image, 'file_name': file_name, 'width': record.size, 'height': record.size}


def annotations_of(record: Record, image: int, first_id: int) -> list[dict]:
    """Entries of ``annotations``, one for each object of a scene.

    Args:
        record: the scene.
        image: the image's id.
        first_id: id of the first entry; the others follow.
    """
    objects = zip(record.scene.objects, record.boxes, record.areas, strict=True)
    return [
        {
            'id': annotation_id,
            'image_id': image,
            'category_id': SHAPES.index(obj.shape) + 1,
            'bbox': list(box),
            'area': area,
            'iscrowd': 0,
        }
        for annotation_id, (obj, box, area) in enumerate(objects, start=first_id)
    ]
