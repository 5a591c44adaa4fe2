"""The interface of a position, and the names of the positions of the package."""

import pytest
import torch

from xmodal.models.necks import (
    AbsolutePosition,
    AbsoluteRelativePosition,
    AnchorAbsolutePosition,
    AnchorRelativePosition,
    NoPosition,
    RelativePosition,
    UniformPosition,
)
from xmodal.registry import MODELS
from xmodal.structures import Tokens


def test_a_plug_in_that_overrides_nothing_changes_nothing(tokens, build_position):
    image, text = tokens()
    position = build_position('none')
    assert position.embed_inputs(image, text) == (image, text)
    assert position.relate(image, text) is None
    assert position.self_bias(0, text) is None
    assert all(term is None for term in position.cross_terms(0, None, 'text'))
    assert position.statistics(None, text.attention_mask, image.content_mask()) == {}


@pytest.mark.parametrize('name', ['ape', 'rpe', 'ape+rpe', 'ace_rpe', 'anchor_ape'])
def test_regions_without_boxes_are_nowhere(build_position, name):
    image, text = (Tokens(torch.randn(1, n, 32), torch.ones(1, n) > 0) for n in (2, 3))
    position = build_position(name)
    with pytest.raises(ValueError, match="regions without boxes.* position but 'none' and 'uni"):
        position.embed_inputs(image, text)
        position.relate(image, text)


@pytest.mark.parametrize(
    ('position', 'alias'),
    [
        (NoPosition, 'none'),
        (AbsolutePosition, 'ape'),
        (RelativePosition, 'rpe'),
        (AbsoluteRelativePosition, 'ape+rpe'),
        (UniformPosition, 'uniform'),
        (AnchorRelativePosition, 'ace_rpe'),
        (AnchorAbsolutePosition, 'anchor_ape'),
    ],
)
def test_a_position_is_registered_by_its_class_and_a_short_name(position, alias):
    assert MODELS.get(position.__name__) is MODELS.get(alias) is position
