"""Whether a map over an image finds an object: the area under the ROC curve of its tokens."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from xmodal.datasets.boxes import read_box
from xmodal.datasets.coco import category_names, known_category, known_image
from xmodal.evaluation.grounding import IOU_THRESHOLD, box_iou, box_tensor
from xmodal.fields import read_object
from xmodal.files import reads
from xmodal.structures import DataSample, ImageTextBatch, Regions, Tokens

# The words that name an object, and its box x1, y1, x2, y2 as shares of the image.
NamedBox = tuple[set[str], list[float]]
# What captions call the objects of COCO's largest category, which they seldom call by its name.
PERSONS = 'man men woman women boy boys girl girls child children people lady guy kid kids player'
WORDS = {'person': PERSONS.split()}


def location_auc(scores: Tensor, on_object: Tensor) -> Tensor:
    """The chance that a token on the object scores higher than one beside it; ties count half.

    It is the area under the ROC curve (Mann–Whitney U over the number of pairs): 1 if all tokens
    on the object come first, 0.5 for a map that says nothing, below for one that avoids the object.

    Args:
        scores: of each token, higher is nearer, infinities allowed, (M,) or (M, K) for K maps.
        on_object: (M,) bool, neither all True nor all False.

    Returns:
        () or (K,) float32.

    Raises:
        ValueError: when all tokens or none are on the object, or a score is NaN.
    """
    if on_object.all() or not on_object.any():
        raise ValueError('an AUC needs tokens on the object and beside it')
    if scores.isnan().any():
        raise ValueError(f'{int(scores.isnan().sum())} of {scores.numel()} scores are NaN')
    on, beside = scores[on_object][:, None], scores[~on_object][None]
    return ((on > beside).float() + 0.5 * (on == beside).float()).mean((0, 1))


def map_aucs(scores: Tensor, on_object: Tensor) -> Tensor:
    """The AUC of a map, and those of its groups if it has some, by :func:`location_auc`.

    Args:
        scores: (M,), or (M, G) for groups; higher is nearer.
        on_object: (M,) bool.

    Returns:
        (1,); of groups (1 + G,): that of the mean of the groups, then that of each.
    """
    if scores.ndim == 1:
        return location_auc(scores[:, None], on_object)
    return location_auc(torch.cat([scores.mean(1, keepdim=True), scores], 1), on_object)


def tokens_in_boxes(boxes: list[list[float]], centres: Tensor) -> Tensor:
    """The tokens whose centre is in one of the boxes, (M,) bool.

    Args:
        boxes: x1, y1, x2, y2 as shares of the image.
        centres: x and y of the tokens, (M, 2).
    """
    corners = torch.tensor(boxes).view(-1, 1, 4)
    inside = (corners[..., :2] <= centres) & (centres < corners[..., 2:])
    return inside.all(-1).any(0)


def token_centres(batch: ImageTextBatch, image: Tokens, row: int) -> Tensor:
    """x and y of the centres of the tokens of an image, (M, 2), as shares of it.

    Args:
        batch: its images or regions.
        image: the encoded images.
        row: of the image; its padding is left out.

    Raises:
        ValueError: when regions have no boxes.
    """
    if isinstance(batch.images, Regions):
        if batch.images.boxes is None:
            raise ValueError('the regions have no boxes: what words name cannot be looked for')
        boxes = batch.images.boxes[row][batch.images.attention_mask[row]].cpu()
        return (boxes[:, :2] + boxes[:, 2:]) / 2
    middle = 0 if image.at_corners else 0.5
    y, x = ((torch.arange(count) + middle) / count for count in image.grid_size)
    return torch.cartesian_prod(y, x).flip(-1)


@reads("COCO's instances")
def read_objects(file: str | Path) -> dict[int, list[NamedBox]]:
    """Reads the names, attributes and boxes of the objects of each image."""
    content = read_object(file)
    names = category_names(content.objects('categories'))
    sizes = {
        item.integer('id'): (item.integer('height'), item.integer('width'))
        for item in content.objects('images')
    }
    objects = defaultdict(list)
    for index, instance in enumerate(content.objects('annotations')):
        name, image = names[known_category(instance, names)], known_image(instance, sizes)
        box = _in_shares(read_box(instance.items('bbox'), f'annotation {index}'), sizes[image])
        tags = {name, *WORDS.get(name, ()), *instance.texts('attributes', [])}
        objects[image].append((tags, box))
    return objects


def _in_shares(box: Sequence[float], size: tuple[int, int]) -> list[float]:
    """A box x, y, width and height in pixels as x1, y1, x2, y2 in shares of an image (h, w)."""
    x, y, width, height = box
    rows, columns = size
    return [x / columns, y / rows, (x + width) / columns, (y + height) / rows]


def named_tokens(
    words: list[str], objects: list[NamedBox], centres: Tensor
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yields each word that names objects, and the image tokens on them and on others.

    Words whose objects have no token or all of them are left out.

    Args:
        words: N words, without padding.
        objects: of the image.
        centres: of its tokens, (M, 2).

    Yields:
        The index of the word, the tokens on its objects and those on objects that other words alone
        name, both (M,) bool.
    """
    named = [(tags, box) for tags, box in objects if not tags.isdisjoint(words)]
    for index, word in enumerate(words):
        on_object = tokens_in_boxes([box for tags, box in named if word in tags], centres)
        if on_object.any() and not on_object.all():
            others = [box for tags, box in named if word not in tags]
            yield index, on_object, tokens_in_boxes(others, centres)


def words_on_objects(
    model: nn.Module, batch: ImageTextBatch, image: Tokens, objects: dict[int, list[NamedBox]]
) -> Iterator[tuple[int, int, Tensor, Tensor]]:
    """Yields row and index of each word of a batch that names objects, with the tokens on them.

    Args:
        model: has the tokenizer.
        batch: images with one text each; the index counts from the word after [CLS].
        image: the encoded images.
        objects: by the id of the image.

    Yields:
        The tokens are those of :func:`named_tokens`, without [CLS] and padding.
    """
    for row, ids in enumerate(batch.input_ids[:, 1:]):
        words = model.data_preprocessor.words(ids[batch.attention_mask[row, 1:]])
        shown = objects.get(int(batch.image_ids[row]), [])
        centres = token_centres(batch, image, row)
        for found in named_tokens(words, shown, centres):
            yield row, *found


def tokens_on_referents(
    batch: ImageTextBatch, image: Tokens, samples: Sequence[DataSample]
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yields the row of each referring expression, and the tokens on its object and on others.

    Expressions whose object has no token or all of them are left out. Other objects are the
    proposals that would be a wrong answer.

    Args:
        batch: images with one expression each.
        image: the encoded images.
        samples: with ``box``, ``proposals`` and ``size``, those of ``ReferringDataset`` in test
            mode.

    Yields:
        Both masks are (M,) bool.
    """
    for row, sample in enumerate(samples):
        centres = token_centres(batch, image, row)
        on_object = tokens_in_boxes([_in_shares(sample.box, sample.size)], centres)
        if on_object.any() and not on_object.all():
            overlaps = box_iou(box_tensor(sample.proposals), box_tensor(sample.box))
            others = [
                _in_shares(box, sample.size)
                for box, overlap in zip(sample.proposals, overlaps.tolist(), strict=True)
                if overlap < IOU_THRESHOLD
            ]
            yield row, on_object, tokens_in_boxes(others, centres)
