"""Maps of words over the patches, and where the objects are that the words name."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from xmodal.evaluation.location import patches_in_boxes
from xmodal.fields import read_object
from xmodal.files import reads
from xmodal.structures import ImageTextBatch, Tokens
from xmodal.visualization.grad_cam import grad_cam

# The words that name an object, and its box x, y, width, height in pixels.
NamedBox = tuple[set[str], list[float]]

SIMILARITY = 'AUC of the similarity S'


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


def word_maps(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """The maps of words: S_G of Eq. 3, -P of Eq. 7, and Grad-CAM of each layer that has them.

    Returns:
        By name, (B, h, w, N, G), and (B, h, w, N) for Grad-CAM.
    """
    relation = model.relate(image, text)
    maps = {
        SIMILARITY: relation.similarity[:, 1:, 1:],
        'AUC of the nearness -P': -relation.distance[:, 1:, 1:],
    }
    maps = {name: values.unflatten(1, image.grid_size) for name, values in maps.items()}
    if model.matching_head is not None:
        # In the last layer only [CLS] has a map.
        for layer in range(model.backbone.fusion.depth - 1):
            words, _ = grad_cam(model, image, text, layer)
            maps[f'AUC of Grad-CAM, layer {layer}'] = words[:, 1:].permute(0, 2, 3, 1)
    return maps


def similarity_map(model: nn.Module, image: Tokens, text: Tokens) -> Tensor:
    """S_G of Eq. 3 of each word, the mean over the groups, (B, h, w, N)."""
    similarity = model.relate(image, text).similarity[:, 1:, 1:]
    return torch.unflatten(similarity.mean(-1), 1, image.grid_size)
