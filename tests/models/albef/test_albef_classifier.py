"""The classifier of images with text."""

import pytest
import torch
from labelled import labelled
from torch.nn.functional import cross_entropy

from xmodal.registry import MODELS


@pytest.fixture
def build(config):
    """Builds a tiny classifier of three classes."""

    def make(position='ace_rpe', momentum=0.9, **others):
        pretraining = config(position, **others)
        return MODELS.build(
            dict(
                type='AlbefClassifier',
                data_preprocessor=pretraining['data_preprocessor'],
                backbone=pretraining['backbone'],
                head=dict(type='ClassificationHead', num_classes=3),
                momentum=momentum,
            )
        )

    return make


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_every_position_trains_with_finite_losses_and_gradients(
    build, batch, position_name, streams
):
    model = build(position_name, streams=streams).train()
    model.distillation_weight = 0.4
    logs = model(batch(size=3), labelled([0, 2, 1]), mode='loss')
    logs['loss_classification'].backward()
    assert set(logs) == {'loss_classification', 'accuracy'}
    missing = {
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    }
    idle = ('backbone.image_proj', 'backbone.text_proj')
    if streams == 'text':  # patches pass through no layer
        idle += ('backbone.position.image_bias',)
    assert all(name.startswith(idle) for name in missing)
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_it_overfits_a_few_pairs(build, batch, streams):
    model = build(streams=streams).train()
    data, samples = batch(size=6), labelled([0, 1, 2, 2, 1, 0])
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=3e-3)
    for _ in range(40):
        loss = model(data, samples, mode='loss')['loss_classification']
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_momentum()
    predicted = model.eval()(data, labelled([0] * 6), mode='predict')
    assert [sample.predicted for sample in predicted] == [0, 1, 2, 2, 1, 0]
    assert loss < 0.1


def test_the_class_with_the_largest_probability_is_predicted(build, batch):
    model, data = build().eval(), batch(size=4)
    with torch.no_grad():
        actual = model(data, labelled([0] * 4), mode='predict')
        expected = model(data).softmax(1)
    torch.testing.assert_close(torch.stack([s.probabilities for s in actual]), expected)
    assert [s.predicted for s in actual] == expected.argmax(1).tolist()


def test_the_teachers_softmax_is_part_of_the_target(build, batch):
    model, data, labels = build().eval(), batch(size=4), torch.tensor([0, 1, 2, 0])
    for parameter in model.teacher.parameters():
        parameter.mul_(1.5)
    model.distillation_weight = 0.4
    with torch.no_grad():
        logits = model(data)
        backbone = model.teacher.module['backbone']
        image = backbone.encode_image(data.images).tokens
        text = backbone.encode_text(data.input_ids, data.attention_mask).tokens
        teacher_logits = model.teacher.module['classification'](
            backbone.fuse(image, text).text_tokens
        )
        actual = model(data, labelled(labels.tolist()), mode='loss')['loss_classification']
    expected = 0.6 * cross_entropy(logits, labels) + 0.4 * cross_entropy(
        logits, teacher_logits.softmax(1)
    )
    torch.testing.assert_close(actual, expected)
    assert not torch.allclose(teacher_logits, logits)


def test_a_pre_trained_checkpoint_initialises_backbone_and_teacher(build, config):
    pretrained = MODELS.build(config(heads=['itc', 'mlm']))
    for parameter in pretrained.teacher.parameters():
        parameter.mul_(0.5)
    model = build()
    model.load_state_dict(pretrained.state_dict(), strict=False)
    for loaded, source in (
        (model.backbone, pretrained.backbone),
        (model.teacher.module['backbone'], pretrained.teacher.module['backbone']),
        (model.teacher.module['classification'], model.heads['classification']),
    ):
        for name, value in source.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], value), name


def test_an_unknown_mode_is_an_error(build, batch):
    modes = r"\['loss', 'predict', 'tensor'\] for AlbefClassifier"
    with pytest.raises(ValueError, match=f"mode='tenso', expected one of {modes}"):
        build()(batch(), mode='tenso')
