"""frozen=True in the config of any part of a model."""

import pytest
import torch

from xmodal.errors import ConfigError
from xmodal.registry import MODELS


def test_a_frozen_part_keeps_its_weights_and_stays_in_eval_mode(config, batch):
    tiny = config(heads=('itc',), dropout=0.5)
    tiny['backbone']['text_encoder']['frozen'] = True
    model = MODELS.build(tiny).train()
    text_encoder = model.backbone.text_encoder
    assert not any(module.training for module in text_encoder.modules())
    assert model.backbone.image_encoder.training
    before = {name: x.clone() for name, x in text_encoder.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = model.loss(batch())
    sum(x.mean() for name, x in losses.items() if 'loss' in name).backward()
    assert all(parameter.grad is None for parameter in text_encoder.parameters())
    assert any(
        parameter.grad is not None for parameter in model.backbone.image_encoder.parameters()
    )
    optimizer.step()
    for name, x in text_encoder.state_dict().items():
        assert torch.equal(x, before[name]), name


def test_parts_are_frozen_by_their_names(config):
    tiny = config()['backbone']['text_encoder']
    encoder = MODELS.build({**tiny, 'type': 'BertWordEncoder', 'frozen': ['bert.encoder']})
    trained = {name for name, x in encoder.named_parameters() if x.requires_grad}
    assert 'projection.weight' in trained and 'bert.embeddings.LayerNorm.weight' in trained
    assert not any(name.startswith('bert.encoder.') for name in trained)
    assert MODELS.build({**tiny, 'frozen': False}).bert.training


@pytest.mark.parametrize('frozen', ['yes', 1, ['layers'], None])
def test_another_value_is_an_error(config, frozen):
    tiny = config()['backbone']['text_encoder']
    with pytest.raises(ConfigError, match=r'frozen=.* of BertTextEncoder.*such as .*bert'):
        MODELS.build({**tiny, 'frozen': frozen})
