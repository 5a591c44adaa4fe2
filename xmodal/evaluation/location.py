"""Whether a map over an image finds an object: the area under the ROC curve of its patches."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from xmodal.fields import read_object
from xmodal.files import reads
from xmodal.structures import ImageTextBatch, Tokens

# The words that name an object, and its box x, y, width, height in pixels.
NamedBox = tuple[set[str], list[float]]


def location_auc(scores: Tensor, on_object: Tensor) -> Tensor:
    """The chance that a patch on the object scores higher than one beside it; ties count half.

    It is the area under the ROC curve (Mann–Whitney U over the number of pairs): 1 if all patches
    on the object come first, 0.5 for a map that says nothing, below for one that avoids the object.

    Args:
        scores: of each patch, higher is nearer, infinities allowed, (h, w) or (h, w, K) for K maps.
        on_object: (h, w) bool, neither all True nor all False.

    Returns:
        () or (K,) float32.

    Raises:
        ValueError: when all patches or none are on the object, or a score is NaN.
    """
    if on_object.all() or not on_object.any():
        raise ValueError('an AUC needs patches on the object and beside it')
    if scores.isnan().any():
        raise ValueError(f'{int(scores.isnan().sum())} of {scores.numel()} scores are NaN')
    on, beside = scores[on_object][:, None], scores[~on_object][None]
    return ((on > beside).float() + 0.5 * (on == beside).float()).mean((0, 1))


def patches_in_boxes(
    boxes: list[list[float]], grid_size: tuple[int, int], patch_size: int
) -> Tensor:
    """The patches whose centre is in one of the boxes, (h, w) bool.

    Args:
        boxes: x, y, width, height in pixels of the image that the model sees.
        grid_size: h and w.
        patch_size: in pixels.
    """
    y, x = (patch_size * (torch.arange(count) + 0.5) for count in grid_size)
    covered = torch.zeros(grid_size, dtype=torch.bool)
    for left, top, width, height in boxes:
        inside = (top <= y) & (y < top + height)
        covered |= inside[:, None] & ((left <= x) & (x < left + width))[None]
    return covered


@reads("COCO's instances")
def read_objects(file: str | Path) -> dict[int, list[NamedBox]]:
    """Reads the names, attributes and boxes of the objects of each image."""
    content = read_object(file)
    names = {item.integer('id'): item.name('name') for item in content.objects('categories')}
    objects = defaultdict(list)
    for instance in content.objects('annotations'):
        tags = {names[instance.integer('category_id')], *instance.texts('attributes', [])}
        objects[instance.integer('image_id')].append((tags, instance.items('bbox')))
    return objects


def named_patches(
    words: list[str], objects: list[NamedBox], grid_size: tuple[int, int], patch_size: int
) -> Iterator[tuple[int, Tensor]]:
    """Yields each word that names objects, with their patches, (h, w) bool.

    Words whose objects have no patch or all of them are left out.

    Args:
        words: N words, without padding.
        objects: of the image.
        grid_size: h and w.
        patch_size: in pixels.
    """
    for index, word in enumerate(words):
        boxes = [box for tags, box in objects if word in tags]
        on_object = patches_in_boxes(boxes, grid_size, patch_size)
        if on_object.any() and not on_object.all():
            yield index, on_object


def words_on_objects(
    model: nn.Module, batch: ImageTextBatch, image: Tokens, objects: dict[int, list[NamedBox]]
) -> Iterator[tuple[int, int, Tensor]]:
    """Yields row and index of each word of a batch that names objects, with their patches.

    Args:
        model: has the tokenizer.
        batch: images with one text each; the index counts from the word after [CLS].
        image: the encoded images.
        objects: by the id of the image.
    """
    tokenizer = model.data_preprocessor.tokenizer
    patch_size = batch.images.shape[-1] // image.grid_size[1]
    for row, ids in enumerate(batch.input_ids[:, 1:]):
        words = tokenizer.convert_ids_to_tokens(ids[batch.attention_mask[row, 1:]].tolist())
        shown = objects.get(int(batch.image_ids[row]), [])
        for index, patches in named_patches(words, shown, image.grid_size, patch_size):
            yield row, index, patches
