"""Values are compared with the annotations of the class or function that takes them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Optional, Union

import numpy as np
import pytest
import torch
from mmengine.config import Config
from torch import nn

from xmodal.arguments import unknown_key, wrong_value
from xmodal.engine.components import check_components
from xmodal.errors import ConfigError
from xmodal.models.backbones import Encoder
from xmodal.registry import HOOKS, MODELS

NAN = float('nan')


@pytest.mark.parametrize(
    'annotation, right, wrong, words',
    [
        (int, [0, -3], [1.0, True, '1', None, [1]], 'a whole number'),
        (float, [0, 1.5, float('inf')], [True, '1', None, NAN], 'a number'),
        (bool, [True], [0, 'x', None], 'True or False'),
        (str, ['', 'x'], [1, None, ['x']], 'a string'),
        (str | Path | None, ['x', None], [1, {}], 'a string or None'),
        (Optional[int], [1, None], ['x'], 'a whole number or None'),  # noqa: UP045
        (list[int], [[], [1], (1,)], ['x', 1, ['x'], {}], 'a list, each item a whole number'),
        (Sequence[str], [['x']], ['x', [1]], 'a list, each item a string'),
        (tuple[int, int], [[1, 2], (1, 2)], [[1], [1, 'x'], 3], 'a list of 2: a whole number, a'),
        (tuple[int, ...], [[], [1, 2, 3]], [['x']], 'a list, each item a whole number'),
        (dict[str, int], [{}, {'a': 1}, {'a': None}], [[], {'a': 'x'}, 3], 'a dict'),
        (Literal['a', 'b'], ['a'], ['c', 1], "'a' or 'b'"),
        (Union[nn.Module, dict], [{}, nn.Identity()], [3, [], None], 'a dict'),  # noqa: UP007
        (float | torch.Tensor, [1, torch.ones(2)], ['x', {}], 'a number'),
        (list[dict | Callable], [[{}, print]], [{}, [3], ['x']], 'a list, each item a dict'),
        (Any, [1, 'x', None], [], ''),
        ('NoSuchName', [1, 'x', None], [], ''),
    ],
)
def test_a_value_fits_its_annotation_or_is_described(annotation, right, wrong, words):
    def component(key):
        """Takes one argument."""

    component.__annotations__['key'] = annotation
    for value in right:
        assert wrong_value(component, {'key': value, 'other': 1}) is None, value
    for value in wrong:
        key, expected = wrong_value(component, {'key': value})
        assert key == 'key' and expected.startswith(words), value


class Base:
    def __init__(self, width: int = None): ...  # noqa: RUF013


class Heir(Base):
    def __init__(self, name: str, **others):
        super().__init__(**others)


def test_an_empty_key_is_unknown_as_any_other():
    """As of ``model..heads=1`` on a command line; its error had no text."""

    def function(a):
        pass

    assert unknown_key(function, ['a']) is None
    assert unknown_key(function, ['']) == "function takes no key ''; it takes a"


def test_a_class_answers_for_its_bases_and_a_default_is_always_right():
    assert wrong_value(Heir, dict(name='x', width=None)) is None
    assert wrong_value(Heir, dict(name='x', width='y')) == ('width', 'a whole number')
    with pytest.raises(ConfigError, match=re.escape("Heir: width='y', expected a whole number")):
        MODELS.build(dict(type=Heir, name='x', width='y'))


def test_a_wrong_value_is_named_by_its_dotted_key_before_anything_is_built():
    config = Config(dict(val_cfg=dict(scorer=[dict(type='ITMReranker', topk='x')])))
    with pytest.raises(ConfigError, match=r": val_cfg\.scorer\.0\.topk='x', expected a whole"):
        check_components(config)
    with pytest.raises(ConfigError, match=r': test_dataloader\.num_workers=1\.5, expected a wh'):
        check_components(Config(dict(test_dataloader=dict(num_workers=1.5))))
    with pytest.raises(ConfigError, match=r': randomness\.deterministic=1, expected True or'):
        check_components(Config(dict(randomness=dict(deterministic=1))))


@pytest.mark.parametrize('array', [np.zeros(2), torch.zeros(2)])
def test_an_array_is_named_since_a_config_is_saved_as_text(array):
    config = Config(dict(model=dict(type='ImageTextPreprocessor', mean=array)))
    with pytest.raises(ConfigError, match=r': model\.mean is a .*: write a list'):
        check_components(config)


class Unfinished(Encoder):
    """A plug-in without one of the methods of an encoder."""

    has_cls = True

    def __init__(self, width):
        super().__init__()

    def embed(self, images):
        return images


def test_a_method_that_a_plug_in_lacks_is_named():
    with pytest.raises(ConfigError, match=r'Unfinished has no encode\(\), which its base class as'):
        MODELS.build(dict(type=Unfinished, width=3))


@pytest.mark.parametrize(
    'config, message',
    [
        (dict(type=torch.optim.SGD, params=[], lr=1), 'SGD refuses its values .*ValueError'),
        (
            dict(type=nn.Linear, in_features=-1, out_features=2),
            r'Linear .*in_features=-1.*negative',
        ),
    ],
)
def test_what_a_library_says_of_its_values_is_a_sentence(config, message):
    with pytest.raises(ConfigError, match=message):
        HOOKS.build(config)


class BrokenEncoder(nn.Module):
    """A plug-in: the last line of its ``__init__`` is wrong."""

    def __init__(self, mistake):
        super().__init__()
        self.scale = nn.Linear(1, 1)
        mistake(self)


@pytest.mark.parametrize(
    'mistake, error, message',
    [
        (lambda part: part.scales, AttributeError, "has no attribute 'scales'"),
        (lambda part: int('x'), ValueError, 'invalid literal'),
        (lambda part: nn.Linear(1), TypeError, "argument: 'out_features'"),
        (lambda part: nn.Linear(1, '4'), TypeError, 'must be tuple of ints'),
    ],
)
def test_a_mistake_in_a_plugin_stays_what_it_is_at_its_line(mistake, error, message):
    encoders = dict(
        image_encoder=dict(type=BrokenEncoder, mistake=mistake), text_encoder={}, fusion={}
    )
    config = dict(
        type='AlbefPretrainer',
        data_preprocessor=dict(type='BaseDataPreprocessor'),
        backbone=dict(**encoders, position=dict(type='none')),
        heads={},
    )
    with pytest.raises(error, match=message) as raised:
        MODELS.build(config)
    assert raised.type is error
    assert any(entry.frame.code.name == '<lambda>' for entry in raised.traceback)
