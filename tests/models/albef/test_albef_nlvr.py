"""Reasoning over several images, and text assignment."""

from importlib.util import find_spec

import pytest
import torch
from labelled import labelled
from torch.nn.functional import cross_entropy

from xmodal.lora import merge_lora
from xmodal.products import Linear, prefers_onednn
from xmodal.registry import MODELS


@pytest.fixture
def build(config):
    """Builds a tiny model of this file."""

    def make(kind='AlbefNLVR', position='ace_rpe', streams='both', fusion=(), **others):
        pretraining = config(position, streams=streams)
        pretraining['backbone']['fusion'].update(fusion)
        if kind == 'AlbefNLVR':
            others = {'head': dict(type='ClassificationHead', num_classes=2), **others}
        model = MODELS.build(
            dict(
                type=kind,
                data_preprocessor=pretraining['data_preprocessor'],
                backbone=pretraining['backbone'],
                **others,
            )
        )
        # A new position does nothing: give it something to do.
        for parameter in model.backbone.position.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        return model

    return make


@pytest.fixture
def several_images(batch):
    """A batch with K images a text, grouped by text."""

    def make(size=3, count=2, **others):
        data = batch(size=size, **others)
        return data._replace(images=torch.randn(size * count, 3, 24, 24))

    return make


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
@pytest.mark.parametrize('count', [1, 2, 3])
def test_each_text_is_fused_with_its_images_in_order(build, several_images, streams, count):
    model, data = build(streams=streams).eval(), several_images(count=count)
    actual = model(data)
    backbone, head = model.backbone, model.heads['classification']
    text = backbone.encode_text(data.input_ids, data.attention_mask).tokens
    images_of_text = data.images.view(3, count, 3, 24, 24).unbind(1)
    images = [backbone.encode_image(x).tokens for x in images_of_text]
    words = backbone.fuse_images(images, text)[0].text_tokens
    torch.testing.assert_close(actual, head(words), atol=1e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_with_one_image_it_is_the_classifier(build, several_images, config, streams):
    model, data = build(streams=streams, momentum=None).eval(), several_images(count=1)
    pretraining = config(streams=streams)
    classifier = MODELS.build(
        dict(
            type='AlbefClassifier',
            data_preprocessor=pretraining['data_preprocessor'],
            backbone=pretraining['backbone'],
            head=dict(type='ClassificationHead', num_classes=2),
            momentum=None,
        )
    ).eval()
    classifier.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(data), classifier(data))


@torch.no_grad()
def test_the_order_of_the_images_matters(build, several_images):
    model, data = build().eval(), several_images(size=1)
    for parameter in model.backbone.fusion.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    reversed_order = model(data._replace(images=data.images.flip(0)))
    assert not torch.allclose(model(data), reversed_order, atol=1e-4)


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_it_overfits_statements_about_the_order_of_the_images(build, several_images, streams):
    """Two texts, and two images in either order: a label depends on both text and order."""
    model = build(streams=streams, momentum=0.5).train()
    data = several_images(size=4)
    first, second = data.images[0], data.images[1]
    images = torch.stack([first, second, second, first, first, second, second, first])
    ids, mask = (x[[0, 0, 1, 1]] for x in (data.input_ids, data.attention_mask))
    data = data._replace(images=images, input_ids=ids, attention_mask=mask)
    labels = [0, 1, 1, 0]
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=True)
    for _ in range(90):
        loss = model(data, labelled(labels), mode='loss')['loss_classification']
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        model.update_momentum()
        if loss < 0.1:  # sure of every label
            break
    actual = model.eval()(data, labelled([0] * 4), mode='predict')
    assert [sample.predicted for sample in actual] == labels


def test_with_a_copy_of_the_layers_for_each_image_all_weights_learn_and_the_teacher_follows(
    build, several_images
):
    model = build(streams='text', fusion=dict(share_two_images=False)).train()
    model.distillation_weight = 0.4
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.loss(several_images(), labelled([1, 0, 1]))['loss_classification'].backward()
    for name, parameter in model.backbone.fusion.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
    before = {name: value.clone() for name, value in model.teacher.state_dict().items()}
    optimizer.step()
    model.update_momentum()
    for name, online in model.online_modules().state_dict().items():
        expected = before[f'module.{name}'] * 0.995 + online * 0.005
        torch.testing.assert_close(model.teacher.module.state_dict()[name], expected)


def test_both_copies_of_a_layer_start_from_the_layer_that_the_images_shared(build):
    shared = build(streams='text')
    for parameter in shared.parameters():
        torch.nn.init.normal_(parameter)
    weights = shared.state_dict()
    model = build(streams='text', fusion=dict(share_two_images=False))
    assert not model.load_state_dict(dict(weights), strict=False).missing_keys
    for part in ('', 'teacher.module.'):
        layers = model.get_submodule(f'{part}backbone.fusion.layers')
        assert len(layers) == 2 * shared.backbone.fusion.depth
        for index, layer in enumerate(layers):
            for name, value in layer.state_dict().items():
                expected = weights[f'{part}backbone.fusion.layers.{index // 2}.{name}']
                assert torch.equal(value, expected), (part, index, name)


def test_layers_with_a_copy_for_each_image_are_no_start_of_layers_that_images_share(build):
    copies = build(streams='text', fusion=dict(share_two_images=False)).state_dict()
    shared = build(streams='text')
    with pytest.raises(ValueError, match='has 4 fusion layers, a copy of each .* model has 2'):
        shared.load_state_dict(dict(copies), strict=False)
    rest = {name: x for name, x in copies.items() if 'fusion.layers' not in name}
    shared.load_state_dict(rest, strict=False)  # load_from_ignore
    deeper = build(streams='text', fusion=dict(depth=4)).backbone.fusion.state_dict(
        prefix='backbone.fusion.'
    )
    shared.load_state_dict(deeper, strict=False)


@pytest.mark.skipif(not find_spec('peft'), reason='LoRA needs the extra lora')
@torch.no_grad()
def test_lora_leaves_keys_and_values_shared_by_both_copies_of_a_layer(build, several_images):
    lora = dict(r=2, target_modules=['k_proj', 'fc1'])
    model = build(streams='text', fusion=dict(share_two_images=False, lora=lora)).eval()
    layers, data = model.backbone.fusion.layers, several_images()
    first, second = (layer.cross_attention.k_proj for layer in layers[:2])
    assert first is second and layers[0].feed_forward.fc1 is not layers[1].feed_forward.fc1
    torch.nn.init.normal_(first.lora_B.default.weight)
    expected = model(data)
    merge_lora(model)
    first, second = (layer.cross_attention.k_proj for layer in layers[:2])
    expected_type = Linear if prefers_onednn() else torch.nn.Linear
    assert first is second and type(first) is expected_type
    torch.testing.assert_close(model(data), expected, rtol=1e-4, atol=1e-5)


# text assignment


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_text_assignment_trains_backbone_and_head(build, batch, streams):
    model = build('TextAssignmentPretrainer', streams=streams).train()
    logs = model(batch(size=5), mode='loss')
    logs['loss_assignment'].backward()
    idle = ('backbone.image_proj', 'backbone.text_proj')
    for name, parameter in model.named_parameters():
        assert name.startswith(idle) == (parameter.grad is None), name
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


def test_the_text_belongs_to_the_first_image_the_second_or_none(build):
    model = build('TextAssignmentPretrainer')
    embeddings = torch.nn.functional.normalize(torch.randn(40, 8), dim=1)
    ids = torch.arange(40) // 2  # every image twice
    positives = ids[:, None] == ids
    pairs, labels, is_valid = model.sample_images(embeddings, positives)
    assert is_valid.all()
    rows = torch.arange(40)
    for position in (0, 1):
        assert ((pairs[:, position] == rows) == (labels == position)).all()
        is_other = labels != position
        assert not positives[rows, pairs[:, position]][is_other].any()
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_the_three_answers_are_equally_frequent(build):
    model = build('TextAssignmentPretrainer')
    embeddings, positives = torch.randn(3000, 4), torch.eye(3000, dtype=torch.bool)
    _, labels, _ = model.sample_images(embeddings, positives)
    shares = labels.bincount(minlength=3) / 3000
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), atol=0.04, rtol=0)


def test_other_images_are_sampled_by_their_similarity(build):
    model = build('TextAssignmentPretrainer', temperature=0.5)
    embeddings = torch.tensor([[1.0, 0], [0.6, 0.8], [0, 1], [-1, 0]])
    positives = torch.eye(4, dtype=torch.bool)
    counts = torch.zeros(4)
    for _ in range(2000):
        pairs, labels, _ = model.sample_images(embeddings, positives)
        if labels[0] == 0:
            counts[pairs[0, 1]] += 1
    expected = ((embeddings @ embeddings[0]) / 0.5)[1:].softmax(0)
    torch.testing.assert_close(counts[1:] / counts.sum(), expected, atol=0.06, rtol=0)


def test_texts_without_enough_other_images_do_not_count(build, batch):
    model = build('TextAssignmentPretrainer')
    logs = model(batch(size=3, image_ids=[7, 7, 7]), mode='loss')
    assert logs['loss_assignment'] == 0 and logs['assignment_accuracy'] == 0
    logs['loss_assignment'].backward()
    # One other image is enough beside the right one, but not for two wrong images.
    embeddings, positives = torch.randn(2, 4), torch.eye(2, dtype=torch.bool)
    for _ in range(10):
        _, labels, is_valid = model.sample_images(embeddings, positives)
        assert (is_valid == (labels < 2)).all()


def test_the_loss_is_that_of_the_sampled_images(build, batch, monkeypatch):
    model, data = build('TextAssignmentPretrainer').eval(), batch(size=3)
    pairs, labels = torch.tensor([[0, 2], [2, 1], [0, 1]]), torch.tensor([0, 1, 2])
    is_valid = torch.tensor([True, True, False])
    monkeypatch.setattr(model, 'sample_images', lambda *_: (pairs, labels, is_valid))
    with torch.no_grad():
        actual = model(data, mode='loss')['loss_assignment']
        backbone = model.backbone
        image = backbone.encode_image(data.images).tokens
        text = backbone.encode_text(data.input_ids, data.attention_mask).tokens
        shown = [image.select(rows) for rows in pairs.unbind(1)]
        words = backbone.fuse_images(shown, text)[1].text_tokens
        logits = model.heads['assignment'](words[:, 0])
    torch.testing.assert_close(actual, cross_entropy(logits[:2], labels[:2]))


def test_text_assignment_overfits_a_few_pairs(build, batch, monkeypatch):
    model, data = build('TextAssignmentPretrainer').train(), batch(size=4)
    sampled = model.sample_images(torch.randn(4, 8), torch.eye(4, dtype=torch.bool))
    monkeypatch.setattr(model, 'sample_images', lambda *_: sampled)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for _ in range(80):
        logs = model(data, mode='loss')
        optimizer.zero_grad()
        logs['loss_assignment'].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if logs['loss_assignment'] < 0.1:
            break
    assert logs['loss_assignment'] < 0.1 and logs['assignment_accuracy'] == 1


def test_its_weights_initialise_the_nlvr_model_and_its_teacher(build):
    assigned, model = build('TextAssignmentPretrainer'), build()
    model.load_state_dict(assigned.state_dict(), strict=False)
    for name, value in assigned.backbone.state_dict().items():
        assert torch.equal(model.backbone.state_dict()[name], value)
        assert torch.equal(model.teacher.module['backbone'].state_dict()[name], value)


def test_text_assignment_only_trains(build, batch):
    with pytest.raises(ValueError, match=r"mode='predict', expected one of \['loss'\]"):
        build('TextAssignmentPretrainer')(batch(), mode='predict')
