"""An objective from outside the package, beside those of the ALBEF family."""

import pytest
import torch
from torch import nn

from xmodal.models.heads import PretrainHead
from xmodal.registry import MODELS


@MODELS.register_module()
class TextLengthHead(PretrainHead):
    """Predicts the number of words of the text from the fused image tokens."""

    def __init__(self, embed_dims):
        super().__init__()
        self.linear = nn.Linear(embed_dims, 1)

    def loss(self, model, step):
        image_tokens = model.backbone.fuse(step.image.tokens, step.text.tokens).image_tokens
        counts = step.batch.attention_mask.sum(1).float()
        error = self.linear(image_tokens[:, 0])[:, 0] - counts
        return {'loss_length': error.square().mean(), 'length_error': error.detach().abs().mean()}


@pytest.fixture
def build_with_length(config):
    """Builds a tiny pre-trainer with the head of this file."""

    def make(**options):
        model = config(heads=['itc'], **options)
        model['heads']['length'] = dict(type='TextLengthHead')  # the one line
        return MODELS.build(model)

    return make


def test_its_gradient_reaches_the_backbone_and_its_values_are_logged(build_with_length, batch):
    model = build_with_length()
    values = model(batch(), mode='loss')
    assert set(values) == {'loss_itc', 'temperature', 'loss_length', 'length_error'}
    values['loss_length'].backward()
    for part in ('image_encoder', 'text_encoder', 'fusion', 'position'):
        gradients = [p.grad for p in getattr(model.backbone, part).parameters()]
        assert any(gradient is not None and gradient.any() for gradient in gradients), part


def test_its_loss_decreases(build_with_length, batch):
    model, data = build_with_length(), batch()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=3e-3)
    losses = []
    for _ in range(20):
        values = model(data, mode='loss')
        optimizer.zero_grad()
        (values['loss_itc'] + values['loss_length']).backward()
        optimizer.step()
        losses.append(values['loss_length'].item())
    assert losses[-1] < 0.5 * losses[0]


def test_a_hook_may_let_it_begin_later(build_with_length, batch):
    model = build_with_length()
    model.heads.active = frozenset(['itc'])
    assert 'loss_length' not in model(batch(), mode='loss')


def test_the_teacher_copies_it_if_it_says_so(build_with_length, monkeypatch):
    assert 'length' not in build_with_length().teacher.module
    monkeypatch.setattr(TextLengthHead, 'has_teacher', True)
    model = build_with_length()
    teacher_head = model.teacher_of(model.heads['length'])
    assert teacher_head is model.teacher.module['length']
    assert teacher_head.linear.weight.equal(model.heads['length'].linear.weight)


def test_its_check_sees_the_complete_model(build_with_length, monkeypatch):
    checked = []
    monkeypatch.setattr(
        TextLengthHead, 'check', lambda _, model: checked.append(model.contrastive_head)
    )
    model = build_with_length()
    assert checked == [model.heads['itc']]


def test_a_copy_that_the_teacher_does_not_have_is_named(build_with_length):
    model = build_with_length()
    with pytest.raises(ValueError, match=r'no copy of this TextLengthHead: .*has_teacher = True'):
        model.teacher_of(model.heads['length'])
    model = build_with_length(momentum=None)
    with pytest.raises(ValueError, match=r'TextLengthHead asks for its copy .*set model\.momentum'):
        model.teacher_of(model.heads['length'])
