"""Whether the maps of a model find what words name and what expressions refer to."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from xmodal import functional as F
from xmodal.errors import ConfigError
from xmodal.evaluation.first_captions import EncodedCaptions
from xmodal.evaluation.location import (
    map_aucs,
    read_objects,
    token_centres,
    tokens_on_referents,
    words_on_objects,
)
from xmodal.visualization.anchors import find_position
from xmodal.visualization.token_maps import SIMILARITY, text_maps, word_maps

MIDDLE = 'nearness to the middle, blind'


class Target(NamedTuple):
    """What the maps of a word or of an expression should find.

    Attributes:
        maps: by name, (M,) or (M, G).
        on_object: the tokens on the object, (M,) bool.
        on_others: the tokens on objects that other words alone name, or on other proposals, (M,)
            bool.
    """

    maps: dict[str, Tensor]
    on_object: Tensor
    on_others: Tensor


class Location(NamedTuple):
    """How well maps find objects.

    Attributes:
        count: number of words, or of expressions.
        aucs: by the name of a map, the mean of the AUCs of :func:`map_aucs`, (1,) or (1 + G,).
        anchors: shares of anchors on the object of a word and beside it, (2,); None for a position
            without a threshold, and for expressions.
        rivals: number of words that have tokens of their own beside such of other words; of
            expressions, beside tokens of other proposals.
        among: the AUCs of their maps over the former and the latter alone. A map that is the same
            for all words has about 0.5.
        scope: what the latter are on: 'among named objects', or 'among proposals'.
    """

    count: int
    aucs: dict[str, Tensor]
    anchors: Tensor | None
    rivals: int
    among: dict[str, Tensor]
    scope: str


def measure_location(
    model: nn.Module, captions: Iterable[EncodedCaptions], instances: Sequence[Path] = ()
) -> Location:
    """Measures the maps of words against the objects that they name, or of expressions.

    Args:
        model: in eval mode; relates images and texts, as AlbefPretrainer.
        captions: images with their first captions (:func:`encode_first_captions`); without
            instances those of a ``ReferringDataset`` in test mode.
        instances: files of COCO's instances of the images; without them the true box of each
            expression is looked for, by the mean of the maps of its words.

    Raises:
        ConfigError: when there is nothing to find in any image.
    """
    objects = None
    if instances:
        objects = defaultdict(list)  # of all files: an image may be in several
        for file in instances:
            for image, boxes in read_objects(file).items():
                objects[image] += boxes
    aucs, among, shares = [], [], []
    delta = getattr(find_position(model), 'delta', None)
    for maps, on_object, on_others in _targets(model, captions, objects):
        aucs.append({name: map_aucs(values, on_object) for name, values in maps.items()})
        on_one = on_object ^ on_others  # tokens on both are left out
        if (on_object & on_one).any() and (on_others & on_one).any():
            on_own = on_object[on_one]
            among.append({name: map_aucs(x[on_one], on_own) for name, x in maps.items()})
        if instances and delta is not None and SIMILARITY in maps:
            anchors = F.anchor_mask(maps[SIMILARITY], delta).float()
            shares.append(torch.stack([anchors[on_object].mean(), anchors[~on_object].mean()]))
    if not aucs:
        raise ConfigError(_nothing_found(instances))
    return Location(
        len(aucs),
        _means(aucs),
        torch.stack(shares).double().mean(0) if shares else None,
        len(among),
        _means(among),
        'among proposals' if objects is None else 'among named objects',
    )


def _means(aucs: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean AUC of each map."""
    return {
        name: torch.stack([of_target[name] for of_target in aucs]).double().mean(0)
        for name in (aucs[0] if aucs else ())
    }


@torch.no_grad()
def _targets(
    model: nn.Module, captions: Iterable[EncodedCaptions], objects: dict | None
) -> Iterator[Target]:
    """The targets of some samples, batch by batch: words, or without objects expressions."""
    for batch, samples, image, text in captions:
        if objects is not None:
            maps = word_maps(model, image, text)
            found = words_on_objects(model, batch, image, objects)
        else:
            maps = text_maps(model, image, text)
            referents = tokens_on_referents(batch, image, samples)
            found = ((row, ..., *masks) for row, *masks in referents)  # maps without words
        maps = {name: values.float().cpu() for name, values in maps.items()}
        for row, word, on_object, on_others in found:
            # Without the padding of regions.
            shown = {name: x[row, : len(on_object), word] for name, x in maps.items()}
            # Objects are in the middle more often than at the border.
            shown[MIDDLE] = -(token_centres(batch, image, row) - 0.5).norm(dim=1)
            yield Target(shown, on_object, on_others)


def _nothing_found(instances: Sequence[Path]) -> str:
    if instances:
        return (
            f'--instances {" ".join(map(str, instances))}: no word of the captions names an '
            'object of its image: are the ids of the images those of the test set?'
        )
    return (
        'no box of an expression has the centre of a patch or region inside and of another '
        'outside: the boxes are smaller than patches, or give more --images'
    )
