"""The protocol of a pre-training objective: what is built, what is asked and what is refused."""

import pytest
import torch
from torch import nn

from xmodal.models.fusion import FusionRequest
from xmodal.models.heads import PretrainHead, PretrainHeads
from xmodal.models.heads.match_statistics import by_match
from xmodal.registry import MODELS

SIZES = dict(embed_dims=8, vocab_size=40, patch_size=4)


@MODELS.register_module()
class ConstantHead(PretrainHead):
    """Logs a constant by a name that its config gives."""

    def __init__(self, value=1.0, name='loss_constant'):
        super().__init__()
        self.value, self.name = value, name

    def loss(self, model, step):
        return {self.name: torch.tensor(self.value)}


@MODELS.register_module()
class SizedHead(ConstantHead):
    """Asks for two of the model's sizes."""

    def __init__(self, embed_dims, vocab_size, scale=1.0):
        super().__init__()
        self.sizes, self.scale = (embed_dims, vocab_size), scale


@MODELS.register_module()
class OptionedHead(SizedHead):
    """Passes what it does not know on, as a plug-in that extends a head of the package does."""

    def __init__(self, option, **options):
        super().__init__(**options)
        self.option = option


def test_a_constructor_gets_the_sizes_that_the_class_asks_for_which_it_extends():
    heads = PretrainHeads(dict(own=dict(type='OptionedHead', option=2, scale=0.5)), SIZES)
    head = heads['own']
    assert (head.sizes, head.scale, head.option) == ((8, 40), 0.5, 2)


def test_a_constructor_gets_the_sizes_that_it_asks_for():
    heads = PretrainHeads(
        dict(sized=dict(type='SizedHead', scale=0.5), constant=dict(type='ConstantHead')), SIZES
    )
    assert heads['sized'].sizes == (8, 40) and heads['sized'].scale == 0.5
    assert heads['constant'].value == 1.0


def test_a_class_is_accepted_instead_of_its_name():
    heads = PretrainHeads(dict(sized=dict(type=SizedHead)), SIZES)
    assert heads['sized'].sizes == (8, 40)


def test_values_of_all_active_heads_are_logged_in_the_order_of_the_config():
    configs = dict(
        first=dict(type=ConstantHead, value=1.0, name='loss_first'),
        second=dict(type=ConstantHead, value=2.0, name='accuracy_second'),
        third=dict(type=ConstantHead, value=3.0, name='loss_third'),
    )
    heads = PretrainHeads(configs, SIZES)
    values = heads.loss(None, None)
    assert {name: value.item() for name, value in values.items()} == {
        'loss_first': 1.0,
        'accuracy_second': 2.0,
        'loss_third': 3.0,
    }
    heads.active = frozenset(['third', 'first'])
    assert list(heads.loss(None, None)) == ['loss_first', 'loss_third']
    assert heads.active_heads() == [heads['first'], heads['third']]


def test_two_heads_that_log_one_name_are_refused():
    configs = dict(first=dict(type=ConstantHead), second=dict(type=ConstantHead))
    message = r"model\.heads\.second logs \['loss_constant'\], as another head or the sum"
    with pytest.raises(ValueError, match=message):
        PretrainHeads(configs, SIZES).loss(None, None)


def test_a_head_that_logs_the_name_of_the_sum_is_refused():
    heads = PretrainHeads(dict(only=dict(type=ConstantHead, name='loss')), SIZES)
    with pytest.raises(ValueError, match=r"model\.heads\.only logs \['loss'\], .* the sum of all"):
        heads.loss(None, None)


def test_a_head_of_another_kind_is_refused():
    message = r'model\.heads\.linear: Linear is no PretrainHead, whose loss\(model, step\)'
    with pytest.raises(ValueError, match=message):
        PretrainHeads(dict(linear=dict(type=nn.Linear, in_features=2, out_features=2)), SIZES)


class Misnamed(PretrainHead):
    """Its loss has another name."""

    def forward(self, model, step):
        return {'loss_misnamed': torch.zeros(())}


class Bare(PretrainHead):
    """Its loss has no name."""

    def loss(self, model, step):
        return torch.zeros(())


def test_a_head_without_a_loss_is_refused_when_it_is_built():
    message = r'model\.heads\.mine: Misnamed has no method loss\(model, step\)'
    with pytest.raises(ValueError, match=message):
        PretrainHeads(dict(mine=dict(type=Misnamed)), SIZES)


def test_a_loss_without_a_name_is_refused():
    message = r"model\.heads\.mine: the loss of Bare returned Tensor, .*'loss_mine'"
    with pytest.raises(ValueError, match=message.replace("'", '"')):
        PretrainHeads(dict(mine=dict(type=Bare)), SIZES).loss(None, None)


class Requesting(PretrainHead):
    """Requests pairs, and does nothing with them."""

    def request_fusion(self, model, step):
        return step


class Fusing(Requesting):
    """Has a loss of what it requested."""

    def fused_loss(self, model, step, request, fused):
        return {'loss_fusing': torch.zeros(())}


def test_a_head_that_requests_pairs_without_a_loss_of_them_is_refused():
    message = r'model\.heads\.mine: Requesting has no method fused_loss\(model, step, request, f'
    with pytest.raises(ValueError, match=message):
        PretrainHeads(dict(mine=dict(type=Requesting)), SIZES)


PAIRS, WORDS = torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3, 1, dtype=torch.int64)


@pytest.mark.parametrize(
    ('request_', 'message'),
    [
        ((PAIRS, WORDS), r'returned tuple, expected FusionRequest\(image, text, pairs, words\)'),
        (FusionRequest(None, None, PAIRS.T, WORDS), r'returned pairs \(2, 3\) of torch.int64, w'),
        (FusionRequest(None, None, PAIRS, WORDS[:, 0]), r'words \(3,\) of .*, expected \(P, 2\)'),
        (FusionRequest(None, None, PAIRS, WORDS[:2]), r'words \(2, 1\) of .* and \(P, W\), int64'),
        (FusionRequest(None, None, PAIRS > 0, WORDS), r'pairs \(3, 2\) of torch.bool'),
    ],
)
def test_a_request_that_cannot_be_fused_is_refused(request_, message):
    heads = PretrainHeads(dict(mine=dict(type=Fusing)), SIZES)
    with pytest.raises(ValueError, match=rf'model\.heads\.mine: Fusing.request_fusion .*{message}'):
        heads.loss(None, request_)


class Valued(PretrainHead):
    """Returns what the step is."""

    def loss(self, model, step):
        return step


def test_a_head_whose_values_are_not_added_up_is_refused():
    """Its objective would never be trained, and the log would show it."""
    heads = PretrainHeads(dict(mine=dict(type=Valued)), SIZES)
    value = torch.ones((), requires_grad=True)
    with pytest.raises(ValueError, match=r"heads\.mine trains nothing: .*\['contrast'\].*'loss_mi"):
        heads.loss(None, {'contrast': value})
    assert heads.loss(None, {'loss_mine': value, 'scale': value}) == {
        'loss_mine': value,
        'scale': value,
    }
    assert heads.loss(None, {'accuracy': value.detach()}) == {'accuracy': value}


def test_a_value_that_is_a_number_is_refused():
    heads = PretrainHeads(dict(mine=dict(type=Valued)), SIZES)
    message = r"heads\.mine: 'accuracy' of its loss is float, expected a tensor, without \.item"
    with pytest.raises(ValueError, match=message):
        heads.loss(None, {'loss_mine': torch.zeros(()), 'accuracy': 0.5})
    with pytest.raises(ValueError, match=r"mine: 'right' of its loss is of torch\.bool, expected"):
        heads.loss(None, {'loss_mine': torch.zeros(()), 'right': torch.tensor([True, False])})


MATCHED = torch.tensor([True, False, True])


@pytest.mark.parametrize(
    ('figures', 'message'),
    [
        ({'cosine': torch.ones(3, 1)}, r": 'cosine' is \(3, 1\), expected \(3,\), a figure of eac"),
        ({'cosine': torch.ones(())}, r": 'cosine' is \(\), expected \(3,\)"),
        ({'cosine': 0.5}, r": 'cosine' is float, expected \(3,\)"),
        ({'loss_cosine': torch.ones(3)}, ": 'loss_cosine' has 'loss' in its name, and would be a"),
        (None, ' returned NoneType, expected figures by name'),
    ],
)
def test_figures_of_a_position_that_are_none_of_pairs_are_refused(figures, message):
    """A column would be multiplied by the number of pairs, and a loss be trained."""
    with pytest.raises(ValueError, match=rf'position\.statistics{message}'):
        by_match(figures, MATCHED)


def test_a_head_that_is_none_is_left_out_and_no_head_at_all_is_refused():
    heads = PretrainHeads(dict(constant=dict(type=ConstantHead), sized=None), SIZES)
    assert list(heads) == ['constant']
    with pytest.raises(ValueError, match='model.heads is empty'):
        PretrainHeads(dict(sized=None), SIZES)


def test_the_order_of_the_heads_does_not_depend_on_the_config(config):
    sorted_keys, reversed_keys = config(), config()
    for model, reverse in ((sorted_keys, False), (reversed_keys, True)):
        model['heads'] = dict(sorted(model['heads'].items(), reverse=reverse))
    torch.manual_seed(0)
    one = MODELS.build(sorted_keys)
    torch.manual_seed(0)
    other = MODELS.build(reversed_keys)
    assert list(one.heads) == list(other.heads) == ['itc', 'ace', 'itm', 'mlm', 'mim']
    assert one.contrastive_head is one.heads['itc']
    assert other.contrastive_head is other.heads['itc']
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
