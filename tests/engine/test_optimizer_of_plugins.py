"""Learning rates and weight decay of the parameters of a plug-in."""

import pytest
import torch
from torch import nn

from xmodal.engine.optim.constructor import NoDecayConstructor, layer_scales, undecayed_names
from xmodal.errors import ConfigError
from xmodal.models.backbones import Encoder


class Own(Encoder):
    """An encoder with two blocks in a list of a given name."""

    has_cls = True
    undecayed = ('places',)

    def __init__(self, blocks):
        super().__init__()
        self.places = nn.Parameter(torch.zeros(4, 8))
        self.add_module(blocks, nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]))
        self.last = nn.Linear(8, 8)

    def embed(self, *inputs):
        raise NotImplementedError

    encode = embed


class Around(Own):
    """An encoder around another one."""

    undecayed = ()

    def __init__(self, encoder):
        super().__init__('layers')
        self.encoder = encoder


class Model(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(8, 2)


RATES = {'places': 0.125, 'blocks.0': 0.25, 'blocks.1': 0.5, 'last': 1.0}


def rates_of(model):
    """The scales of a model's encoder, by parts of it."""
    found = {}
    for name, scale in layer_scales(model, 0.5).items():
        assert found.setdefault(name.removesuffix('.weight').removesuffix('.bias'), scale) == scale
    return found


def test_blocks_are_those_of_a_list_of_a_known_name(warned):
    assert rates_of(Model(Own('blocks'))) == {f'encoder.{k}': x for k, x in RATES.items()}
    assert not warned


def test_of_an_encoder_around_another_one_the_inner_layers_count():
    inner = {f'encoder.encoder.{name}': rate for name, rate in RATES.items()}
    around = dict.fromkeys(['places', 'layers.0', 'layers.1', 'last'], 1.0)
    own = {f'encoder.{name}': rate for name, rate in around.items()}
    assert rates_of(Model(Around(Own('blocks')))) == inner | own


def test_blocks_of_another_name_have_the_whole_rate_with_a_warning(warned):
    model = Model(Own('trunk'))
    model.other = Own('h')
    rates = rates_of(model)
    assert {rate for name, rate in rates.items() if name.startswith('encoder')} == {1.0}
    assert rates['other.places'] == 0.125
    (warning,) = warned
    assert 'encoder (Own) has the whole rate, as no list of its modules is called' in warning
    model.encoder.requires_grad_(False)
    warned.clear()
    layer_scales(model, 0.5)
    assert not warned


@pytest.fixture
def warned(monkeypatch):
    messages = []
    monkeypatch.setattr(
        'xmodal.engine.optim.constructor.print_log', lambda text, *_: messages.append(text)
    )
    return messages


def test_what_a_module_names_is_not_decayed():
    model = Model(Own('blocks'))
    cfg = dict(optimizer=dict(type='AdamW', lr=1.0, weight_decay=0.1))
    groups = NoDecayConstructor(cfg)(model).optimizer.param_groups
    decays = {x: group['weight_decay'] for group in groups for x in group['params']}
    for name, parameter in model.named_parameters():
        assert decays[parameter] == (0.1 if name.endswith('weight') else 0.0), name


@pytest.mark.parametrize('name', ['lookup_table', 'gamma', 'to_text_position'])
def test_names_of_positions_and_scales_mean_nothing_in_a_plug_in(name):
    model = Model(Own('blocks'))
    model.head.register_parameter(name, nn.Parameter(torch.zeros(4, 8)))
    assert f'head.{name}' not in undecayed_names(model)


def test_a_name_of_no_parameter_is_a_sentence():
    encoder = Own('blocks')
    encoder.undecayed = ('place',)
    with pytest.raises(ConfigError, match=r"Own.undecayed names 'place', .*has places, blocks.0"):
        NoDecayConstructor(dict(optimizer=dict(type='AdamW', lr=1.0)))(Model(encoder))
